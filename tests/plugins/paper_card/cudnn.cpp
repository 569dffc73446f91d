// tests/plugins/paper_card/cudnn.cpp: the names of cuDNN that plugins/cuda opens. Descriptors keep
// what they are given; a plan convolves by loops. It refuses what NVIDIA's documents forbid: parts
// that are not finalized or gone, mixed types, shapes that do not fit, pointers that are not
// aligned as was said or not the card's, a workspace that is too small.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "card.hpp"
#include "numbers.hpp"

using namespace paper;

namespace {

enum {
  kGood = 0,
  kBadParam = 2000,
  kMisaligned = 2003,
  kNotFinalized = 2004,
  kTooSmall = 2006,
  kShapes = 2008,
  kNotSupported = 3000,
  kMixedTypes = 3003,
  kFailed = 5000
};
enum { kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9 };  // cudnnDataType_t
enum {                                                       // cudnnBackendDescriptorType_t
  kGeometry = 1,
  kEngine = 2,
  kConfiguration = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kPack = 16,
  kTensor = 17
};
// cudnnBackendAttributeName_t
enum { kCompute = 100, kDilations = 102, kStrides = 103, kPadsAfter = 104, kPads = 105 };
enum { kResults = 202, kGraphOfHeuristic = 201, kEngineOf = 300, kPlanOf = 401, kWorkspace = 402 };
enum { kOps = 801, kAlignment = 900, kType = 901, kSizes = 902, kSteps = 903, kId = 906 };
enum { kIds = 1000, kPointers = 1001, kRoom = 1003, kNotes = 1303 };
// cudnnBackendNumericalNote_t
enum { kTensorCore = 0, kDownConvert = 1, kNondeterministic = 4 };

constexpr int kDescriptor = 15;  // cudnnBackendAttributeType_t

struct Engine {
  std::vector<int> notes;
  int64_t workspace;
  bool works;
  int milliseconds;
};
// In the order of the heuristic.
const Engine kEngines[] = {{{kNondeterministic}, 0, true, 0},
                           {{kTensorCore, kDownConvert}, 2 << 20, true, 0},
                           {{}, 1 << 20, false, 0},
                           {{}, 3 << 20, true, 0},
                           {{}, 0, true, 3}};

struct Attribute {
  int64_t n;
  std::vector<char> bytes;
};
struct Part {
  int type;
  bool ready = false;
  size_t engine = 0;                             // of an engine or a configuration
  Part* of = nullptr;                            // the graph that a configuration is for
  std::vector<std::shared_ptr<Part>> kept = {};  // what it was given, which may be destroyed before
  std::map<int, Attribute> set;

  template <class T>
  std::vector<T> all(int name) const {
    auto it = set.find(name);
    if (it == set.end()) return {};
    std::vector<T> values(size_t(it->second.n));
    std::memcpy(values.data(), it->second.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  T one(int name, T otherwise = {}) const {
    std::vector<T> values = all<T>(name);
    return values.empty() ? otherwise : values[0];
  }
};

std::mutex lock;
auto& alive = *new std::map<Part*, std::shared_ptr<Part>>;  // for as long as the process lives
bool usable(Part* p) {
  std::lock_guard held(lock);
  return alive.contains(p) && p->ready;
}

size_t bytes_of_value(int type) {
  return type == 1 || type == 4 || type == 7 || type == 8 || type == 11 ? 4 : 8;
}
size_t bytes_of(int type) { return type == kDouble ? 8 : type == kFloat ? 4 : 2; }

struct Array {
  int type = kFloat;
  std::vector<int64_t> sizes, steps;
  int64_t alignment = 1, id = 0;
  explicit Array(const Part& p)
      : type(p.one<int>(kType, -1)),
        sizes(p.all<int64_t>(kSizes)),
        steps(p.all<int64_t>(kSteps)),
        alignment(p.one<int64_t>(kAlignment)),
        id(p.one<int64_t>(kId)) {}
  Array(int what, int n, const int* of_sizes, const int* of_steps)
      : type(what), sizes(of_sizes, of_sizes + n), steps(of_steps, of_steps + n) {}
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  size_t extent() const {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * steps[d];
    return size_t(last + 1) * bytes_of(type);
  }
  int64_t place(int64_t i) const {  // of the i-th element in C order
    int64_t at = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) at += i % sizes[d] * steps[d];
    return at;
  }
};

double read(const void* p, int type, int64_t at) {
  switch (type) {
    case kDouble:
      return static_cast<const double*>(p)[at];
    case kFloat:
      return static_cast<const float*>(p)[at];
    case kHalf:
      return double(float(static_cast<const Half*>(p)[at]));
    default:
      return float(static_cast<const BFloat16*>(p)[at]);
  }
}
void write(void* p, int type, int64_t at, double x) {
  switch (type) {
    case kDouble:
      static_cast<double*>(p)[at] = x;
      break;
    case kFloat:
      static_cast<float*>(p)[at] = float(x);
      break;
    case kHalf:
      static_cast<Half*>(p)[at] = Half(float(x));
      break;
    default:
      static_cast<BFloat16*>(p)[at] = BFloat16(float(x));
  }
}

// What an operation joins: small = big * weight.
struct Problem {
  int way;
  Array big, weight, small;
  std::vector<int64_t> stride, pad, dilation;
};
Part* part_of(const Part* op, int name) { return op->one<Part*>(name); }
Problem problem_of(const Part* op) {
  bool forward = op->type == kForward, data = op->type == kBackwardData;
  Part* geometry = part_of(op, forward ? 702 : data ? 708 : 714);
  return {op->type,
          Array(*part_of(op, forward ? 704
                             : data  ? 710
                                     : 716)),
          Array(*part_of(op, forward ? 703
                             : data  ? 709
                                     : 715)),
          Array(*part_of(op, forward ? 705
                             : data  ? 711
                                     : 717)),
          geometry->all<int64_t>(kStrides),
          geometry->all<int64_t>(kPads),
          geometry->all<int64_t>(kDilations)};
}

int check_tensor(const Part& p) {
  Array a(p);
  bool known = a.type == kFloat || a.type == kDouble || a.type == kHalf || a.type == kBFloat16;
  if (!known || a.sizes.size() < 4 || a.sizes.size() > 5 || a.steps.size() != a.sizes.size())
    return kBadParam;
  if (a.alignment < 1 || (a.alignment & (a.alignment - 1))) return kBadParam;
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] < 1 || a.steps[d] < 1) return kBadParam;
  return kGood;
}

int check_operation(const Part& op) {
  bool forward = op.type == kForward, data = op.type == kBackwardData;
  for (int name : forward ? std::vector{702, 703, 704, 705}
                  : data  ? std::vector{708, 709, 710, 711}
                          : std::vector{714, 715, 716, 717})
    if (!usable(part_of(&op, name))) return kNotFinalized;
  Problem p = problem_of(&op);
  if (p.big.type != p.weight.type || p.big.type != p.small.type) return kMixedTypes;
  int compute = part_of(&op, forward ? 702 : data ? 708 : 714)->one<int>(kCompute);
  if (compute != (p.big.type == kDouble ? kDouble : kFloat)) return kMixedTypes;
  size_t space = p.stride.size();
  for (size_t rank : {p.big.sizes.size(), p.weight.sizes.size(), p.small.sizes.size()})
    if (rank != space + 2) return kShapes;
  int64_t groups = p.big.sizes[1] / p.weight.sizes[1];
  if (p.big.sizes[1] % p.weight.sizes[1] || p.small.sizes[1] % groups ||
      p.small.sizes[1] != p.weight.sizes[0] || p.small.sizes[0] != p.big.sizes[0])
    return kShapes;
  for (size_t d = 0; d < space; ++d) {
    int64_t window = p.dilation[d] * (p.weight.sizes[d + 2] - 1) + 1;
    if (p.small.sizes[d + 2] != (p.big.sizes[d + 2] + 2 * p.pad[d] - window) / p.stride[d] + 1)
      return kShapes;
  }
  return kGood;
}

// A place of the window: where it stands in the weight of a filter, its channel of the group, and
// how far it is from the window's corner.
struct Tap {
  int64_t place, channel;
  std::vector<int64_t> away;
};
std::vector<Tap> taps_of(const Problem& p) {
  size_t space = p.stride.size();
  std::vector<Tap> taps(size_t(p.weight.numel() / p.weight.sizes[0]));
  for (size_t w = 0; w < taps.size(); ++w) {
    Tap& t = taps[w] = {0, 0, std::vector<int64_t>(space)};
    int64_t rest = int64_t(w);
    for (size_t d = space + 1; d >= 1; rest /= p.weight.sizes[d--]) {
      int64_t i = rest % p.weight.sizes[d];
      t.place += i * p.weight.steps[d];
      if (d > 1)
        t.away[d - 2] = i * p.dilation[d - 2];
      else
        t.channel = i;
    }
  }
  return taps;
}

void convolve(const Problem& p, void* big, void* weight, void* small, bool tf32) {
  const Array& out = p.way == kForward ? p.small : p.way == kBackwardData ? p.big : p.weight;
  std::vector<double> sums(size_t(out.numel()), 0);
  auto value = [&](const void* from, int64_t at) {
    double x = read(from, p.big.type, at);
    return tf32 ? double(as_tf32(float(x))) : x;
  };
  int64_t of_group = p.weight.sizes[1], groups = p.big.sizes[1] / of_group,
          filters = p.small.sizes[1] / groups;
  size_t space = p.stride.size();
  const std::vector<Tap> taps = taps_of(p);
  std::vector<int64_t> at(space + 2);
  for (int64_t s = 0; s < p.small.numel(); ++s) {
    for (int64_t d = int64_t(space) + 1, rest = s; d >= 0; rest /= p.small.sizes[size_t(d--)])
      at[size_t(d)] = rest % p.small.sizes[size_t(d)];
    const int64_t filter = at[1] * p.weight.steps[0];
    double mine = p.way == kForward ? 0 : value(small, p.small.place(s));
    for (size_t w = 0; w < taps.size(); ++w) {
      const Tap& t = taps[w];
      int64_t channel = at[1] / filters * of_group + t.channel;
      int64_t big_at = at[0] * p.big.sizes[1] + channel;
      int64_t big_place = at[0] * p.big.steps[0] + channel * p.big.steps[1];
      bool inside = true;
      for (size_t d = 0; d < space && inside; ++d) {
        int64_t i = at[d + 2] * p.stride[d] - p.pad[d] + t.away[d];
        inside = i >= 0 && i < p.big.sizes[d + 2];
        big_at = big_at * p.big.sizes[d + 2] + i;
        big_place += i * p.big.steps[d + 2];
      }
      if (!inside) continue;
      if (p.way == kForward)
        mine += value(big, big_place) * value(weight, filter + t.place);
      else if (p.way == kBackwardData)
        sums[size_t(big_at)] += mine * value(weight, filter + t.place);
      else
        sums[size_t(at[1]) * taps.size() + w] += mine * value(big, big_place);
    }
    if (p.way == kForward) sums[size_t(s)] = mine;
  }
  void* to = p.way == kForward ? small : p.way == kBackwardData ? big : weight;
  for (size_t i = 0; i < sums.size(); ++i) write(to, out.type, out.place(int64_t(i)), sums[i]);
}

struct Handle {
  Stream* stream = nullptr;
};

int run(Handle* h, const Part& plan, const Part& pack) {
  note("convolution");
  Part* configuration = plan.one<Part*>(kPlanOf);
  Part* op = configuration->of->one<Part*>(kOps);
  const Engine& engine = kEngines[configuration->engine];
  Problem p = problem_of(op);
  auto ids = pack.all<int64_t>(kIds);
  auto pointers = pack.all<void*>(kPointers);
  auto pointer = [&](const Array& a) {
    auto at = std::find(ids.begin(), ids.end(), a.id);
    return at == ids.end() ? nullptr : pointers[size_t(at - ids.begin())];
  };
  for (const Array* a : {&p.big, &p.weight, &p.small}) {
    void* at = pointer(*a);
    if (!at) return kBadParam;
    if (reinterpret_cast<uintptr_t>(at) % uintptr_t(a->alignment)) return kMisaligned;
    if (check_range(at, a->extent())) return kBadParam;
  }
  auto* room = pack.one<char*>(kRoom);
  if (engine.workspace && (!room || check_range(room, size_t(engine.workspace)))) return kTooSmall;
  ++counts.convolutions;
  bool tf32 = p.big.type == kFloat && !engine.notes.empty() && engine.notes[0] == kTensorCore;
  auto work = [=, big = pointer(p.big), weight = pointer(p.weight), small = pointer(p.small)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(engine.milliseconds));
    if (room) std::memset(room, 0x5a, size_t(engine.workspace));  // the library's while it works
    convolve(p, big, weight, small, tf32);
  };
  return orders.idle || !submit(h->stream, work) ? kGood : kFailed;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91300; }
size_t cudnnGetCudartVersion() { return 13000; }
const char* cudnnGetErrorString(int status) {
  return status == kMisaligned     ? "a pointer is not aligned"
         : status == kNotFinalized ? "a part is not finalized"
         : status == kTooSmall     ? "too small"
         : status == kShapes       ? "shapes do not fit"
         : status == kMixedTypes   ? "types do not fit"
         : status == kNotSupported ? "not supported"
         : status == kGood         ? "good"
                                   : "a bad parameter";
}
int cudnnCreate(Handle** out) {
  if (int wrong = ordered(__func__)) return wrong;
  return *out = new Handle, kGood;
}
int cudnnSetStream(Handle* h, Stream* s) {
  if (int wrong = ordered(__func__)) return wrong;
  return h->stream = s, kGood;
}

int cudnnCreateTensorDescriptor(Array** out) {
  return *out = new Array(-1, 0, nullptr, nullptr), kGood;
}
int cudnnSetTensorNdDescriptor(Array* a, int type, int n, const int* sizes, const int* steps) {
  return *a = Array(type, n, sizes, steps), n >= 4 ? kGood : kBadParam;
}
int cudnnDestroyTensorDescriptor(Array* a) { return delete a, kGood; }

// Of values a channel to all that is theirs, and back.
int cudnnAddTensor(Handle* h, const void*, const Array* channels, const void* bias, const void*,
                   const Array* to, void* out) {
  if (channels->type != to->type) return kBadParam;
  if (check_range(bias, channels->extent()) || check_range(out, to->extent())) return kBadParam;
  auto work = [=, a = *to, c = *channels] {
    for (int64_t i = 0, inner = a.numel() / a.sizes[0] / a.sizes[1]; i < a.numel(); ++i) {
      int64_t channel = i / inner % a.sizes[1], at = a.place(i);
      write(out, a.type, at, read(out, a.type, at) + read(bias, a.type, channel * c.steps[1]));
    }
  };
  return orders.idle || !submit(h->stream, work) ? kGood : kFailed;
}
int cudnnConvolutionBackwardBias(Handle* h, const void*, const Array* from, const void* grad,
                                 const void*, const Array* channels, void* bias) {
  if (channels->type != from->type) return kBadParam;
  if (check_range(bias, channels->extent()) || check_range(grad, from->extent())) return kBadParam;
  auto work = [=, a = *from, c = *channels] {
    std::vector<double> sums(size_t(a.sizes[1]), 0);
    for (int64_t i = 0, inner = a.numel() / a.sizes[0] / a.sizes[1]; i < a.numel(); ++i)
      sums[size_t(i / inner % a.sizes[1])] += read(grad, a.type, a.place(i));
    for (size_t i = 0; i < sums.size(); ++i) write(bias, a.type, int64_t(i) * c.steps[1], sums[i]);
  };
  return orders.idle || !submit(h->stream, work) ? kGood : kFailed;
}

int cudnnBackendCreateDescriptor(int type, Part** out) {
  std::lock_guard held(lock);
  auto made = std::make_shared<Part>(Part{type});
  alive[*out = made.get()] = made;
  return kGood;
}
int cudnnBackendDestroyDescriptor(Part* p) {
  std::lock_guard held(lock);
  return alive.erase(p) ? kGood : kBadParam;
}
int cudnnBackendSetAttribute(Part* p, int name, int type, int64_t n, const void* values) {
  if (p->ready || n < 0 || !values) return kBadParam;
  auto* from = static_cast<const char*>(values);
  p->set[name] = {n, {from, from + size_t(n) * bytes_of_value(type)}};
  std::lock_guard held(lock);
  for (int64_t i = 0; type == kDescriptor && i < n; ++i)
    if (auto it = alive.find(static_cast<Part* const*>(values)[i]); it != alive.end())
      p->kept.push_back(it->second);
    else
      return kBadParam;
  return kGood;
}
int cudnnBackendFinalize(Part* p) {
  if (int wrong = ordered(__func__)) return wrong;
  int status = kGood;
  switch (p->type) {
    case kTensor:
      status = check_tensor(*p);
      break;
    case kForward:
    case kBackwardFilter:
    case kBackwardData:
      status = check_operation(*p);
      break;
    case kGraph:
      status = usable(p->one<Part*>(kOps)) ? kGood : kNotFinalized;
      break;
    case kHeuristic:
      status = usable(p->one<Part*>(kGraphOfHeuristic)) ? kGood : kNotFinalized;
      break;
    case kPlan: {
      Part* configuration = p->one<Part*>(kPlanOf);
      if (!usable(configuration))
        status = kNotFinalized;
      else if (!kEngines[configuration->engine].works)
        status = kNotSupported;
      break;
    }
    case kPack:
      status = p->all<void*>(kPointers).size() == p->all<int64_t>(kIds).size() ? kGood : kBadParam;
      break;
    case kGeometry:
      if (p->all<int64_t>(kPads) != p->all<int64_t>(kPadsAfter)) status = kNotSupported;
      break;
    default:
      status = kBadParam;
  }
  p->ready = status == kGood;
  return status;
}
int cudnnBackendGetAttribute(Part* p, int name, int, int64_t wanted, int64_t* found, void* out) {
  if (!usable(p)) return kNotFinalized;
  auto parts = static_cast<Part**>(out);
  if (p->type == kHeuristic && name == kResults) {
    *found = std::min(wanted, int64_t(std::size(kEngines)));
    for (int64_t i = 0; i < *found; ++i) {
      if (parts[i]->type != kConfiguration) return kBadParam;
      parts[i]->engine = size_t(i);
      parts[i]->of = p->one<Part*>(kGraphOfHeuristic);
      parts[i]->kept = p->kept;
      parts[i]->ready = true;
    }
    return kGood;
  }
  if (p->type == kConfiguration && name == kEngineOf) {
    parts[0]->engine = p->engine;
    parts[0]->ready = true;
    return *found = 1, kGood;
  }
  if (p->type == kEngine && name == kNotes) {
    const std::vector<int>& notes = kEngines[p->engine].notes;
    *found = int64_t(notes.size());
    std::copy_n(notes.begin(), std::min(wanted, *found), static_cast<int*>(out));
    return kGood;
  }
  if (p->type == kPlan && name == kWorkspace) {
    *static_cast<int64_t*>(out) = kEngines[p->one<Part*>(kPlanOf)->engine].workspace;
    return *found = 1, kGood;
  }
  return kBadParam;
}
int cudnnBackendExecute(Handle* h, Part* plan, Part* pack) {
  if (int wrong = ordered(__func__)) return wrong;
  if (!usable(plan) || !usable(pack)) return kNotFinalized;
  return run(h, *plan, *pack);
}
}

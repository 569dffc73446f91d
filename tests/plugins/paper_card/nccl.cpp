// tests/plugins/paper_card/nccl.cpp: the names of NCCL that plugins/nccl opens, over the card's
// streams: processes exchange files of a folder, whose name is the unique id. A collective is work
// on a stream, and waits there for the others, as NCCL's kernels do.
//
// ADJOIN_PAPER_NCCL="1:hang=2 0:error=3 blocking=1": the second collective of rank 1 never ends, an
// error of the third of rank 0 comes late, and there is no ncclCommInitRankConfig's mode.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "card.hpp"
#include "numbers.hpp"

using namespace paper;
namespace fs = std::filesystem;

namespace {

enum { kGood = 0, kSystem = 2, kInvalid = 4, kUsage = 5, kRemote = 6, kBusy = 7 };
using Bytes = std::vector<char>;

int64_t ordered(int rank, const std::string& what) {
  const char* text = std::getenv("ADJOIN_PAPER_NCCL");
  std::istringstream words(text ? text : "");
  int64_t found = 0;
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':'), equals = word.find('=');
    if (colon != word.npos && std::atoi(word.c_str()) != rank) continue;
    const size_t begin = colon == word.npos ? 0 : colon + 1;
    if (word.substr(begin, equals - begin) == what) found = std::atoll(word.c_str() + equals + 1);
  }
  return found;
}

struct Comm {
  std::string folder;
  int rank = 0, size = 0;
  std::atomic<int> state{kBusy};
  std::atomic<bool> aborted{false};
  std::atomic<int64_t> started{0};
  int64_t round = 0;  // of the stream's thread
  std::map<std::string, int64_t> letters;
  std::map<int, double> factors;

  std::string file(const std::string& name) const { return folder + "/" + name; }
  void post(const std::string& name, const void* data, size_t n) const {
    const std::string part = file(name) + ".part" + std::to_string(rank);
    std::ofstream(part, std::ios::binary).write(static_cast<const char*>(data), long(n));
    std::error_code wrong;
    fs::rename(part, file(name), wrong);
  }
  bool take(const std::string& name, Bytes* out) const {  // false: it was broken off
    while (!fs::exists(file(name))) {
      if (aborted) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::ifstream in(file(name), std::ios::binary);
    out->assign(std::istreambuf_iterator<char>(in), {});
    return true;
  }
  // Everybody's bytes; when this round is over, nobody reads those of the one before.
  bool exchange(const void* mine, size_t n, std::vector<Bytes>* all) {
    const std::string now = "round" + std::to_string(++round) + ".";
    post(now + std::to_string(rank), mine, n);
    all->resize(size_t(size));
    for (int r = 0; r < size; r++)
      if (!take(now + std::to_string(r), &(*all)[size_t(r)])) return false;
    std::error_code gone;
    fs::remove(file("round" + std::to_string(round - 1) + "." + std::to_string(rank)), gone);
    return true;
  }
};

template <class T>
T joined(T a, T b, int op) {
  return op == 1 ? T(a * b) : op == 2 ? std::max<T>(a, b) : op == 3 ? std::min<T>(a, b) : T(a + b);
}

template <class T>
void reduce(const std::vector<Bytes>& all, size_t first, size_t count, void* out, int op,
            double factor) {
  std::vector<T> sum;
  for (const Bytes& bytes : all) {
    const T* x = reinterpret_cast<const T*>(bytes.data()) + first;
    for (size_t i = 0; i < count; i++) {
      const T y = op >= 100 ? T(x[i] * T(float(factor))) : x[i];
      if (&bytes == &all[0])
        sum.push_back(y);
      else
        sum[i] = joined<T>(sum[i], y, op);
    }
  }
  if (op == 4)
    for (T& x : sum) x = T(x / T(float(all.size())));
  std::memcpy(out, sum.data(), count * sizeof(T));
}

constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
constexpr int kTypes = 10;

void reduce_as(int type, const std::vector<Bytes>& all, size_t first, size_t count, void* out,
               int op, double factor) {
  switch (type) {
    case 0:
      return reduce<int8_t>(all, first, count, out, op, factor);
    case 1:
      return reduce<uint8_t>(all, first, count, out, op, factor);
    case 2:
      return reduce<int32_t>(all, first, count, out, op, factor);
    case 3:
      return reduce<uint32_t>(all, first, count, out, op, factor);
    case 4:
      return reduce<int64_t>(all, first, count, out, op, factor);
    case 5:
      return reduce<uint64_t>(all, first, count, out, op, factor);
    case 6:
      return reduce<Half>(all, first, count, out, op, factor);
    case 7:
      return reduce<float>(all, first, count, out, op, factor);
    case 8:
      return reduce<double>(all, first, count, out, op, factor);
    default:
      return reduce<BFloat16>(all, first, count, out, op, factor);
  }
}

// Of the calls between GroupStart and GroupEnd: they begin together.
thread_local int depth = 0;
struct Held {
  Stream* stream;
  std::function<void()> work;
  bool sends;
};
thread_local std::vector<Held> held;

int queue(Comm* c, Stream* s, std::function<void()> work, bool sends = false) {
  if (!c || c->aborted) return kInvalid;
  if (c->state != kGood) return c->state;
  if (depth) return held.push_back({s, std::move(work), sends}), kGood;
  const int64_t number = ++c->started;
  const bool hangs = ordered(c->rank, "hang") == number,
             fails = ordered(c->rank, "error") == number;
  const int submitted = submit(s, [=, work = std::move(work)] {
    while (hangs && !c->aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (fails) c->state = kRemote;
    while (fails && !c->aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!c->aborted) work();
  });
  return submitted ? kSystem : kGood;
}

bool wrong(const void* p, size_t count, int type) {
  return type < 0 || type >= kTypes || (count && check_range(p, count * kSizes[type]));
}

int meet(Comm* c) {
  c->post("here" + std::to_string(c->rank), "", 0);
  Bytes nothing;
  for (int r = 0; r < c->size; r++)
    if (!c->take("here" + std::to_string(r), &nothing)) return kSystem;
  return kGood;
}

struct Id {
  char bytes[128];
};
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

Comm* made(Comm** out, int size, const Id& id, int rank) {
  auto* c = new Comm;
  c->folder = id.bytes;
  c->rank = rank, c->size = size;
  return *out = c;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* v) { return *v = int(ordered(-1, "version")) ?: 22809, kGood; }
const char* ncclGetErrorString(int e) {
  return e == kGood     ? "no error"
         : e == kRemote ? "remote process exited or there was a network error"
         : e == kUsage  ? "invalid usage"
                        : "what the library of paper refuses";
}
const char* ncclGetLastError(Comm*) { return "said by the library of paper"; }

int ncclGetUniqueId(Id* id) {
  const char* root = std::getenv("TMPDIR");
  std::snprintf(id->bytes, sizeof id->bytes, "%s/paper-nccl-XXXXXX", root ? root : "/tmp");
  return mkdtemp(id->bytes) ? kGood : kSystem;
}
int ncclCommInitRank(Comm** out, int size, Id id, int rank) {
  if (rank < 0 || rank >= size) return kInvalid;
  Comm* c = made(out, size, id, rank);
  c->state = meet(c);
  return c->state;
}
int ncclCommInitRankConfig(Comm** out, int size, Id id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->size < sizeof(Config)) return kInvalid;
  if (config->blocking) return ncclCommInitRank(out, size, id, rank);
  Comm* c = made(out, size, id, rank);
  std::thread([c] { c->state = meet(c); }).detach();
  return kBusy;
}
int ncclCommGetAsyncError(Comm* c, int* out) { return *out = c->state, kGood; }
int ncclCommAbort(Comm* c) { return c->aborted = true, kGood; }
int ncclCommFinalize(Comm* c) { return c->state == kGood ? kGood : kInvalid; }
int ncclCommDestroy(Comm* c) {
  c->post("left" + std::to_string(c->rank), "", 0);
  int left = 0;
  std::error_code gone;
  for (int r = 0; r < c->size; r++) left += fs::exists(c->file("left" + std::to_string(r)), gone);
  if (left == c->size) fs::remove_all(c->folder, gone);
  return kGood;  // its last work may still look at it
}

int ncclGroupStart() { return ++depth, kGood; }
// What is sent lies in the folder until somebody takes it: when all sends go first, no order of the
// calls makes anybody wait for ever.
int ncclGroupEnd() {
  if (depth <= 0) return kUsage;
  if (--depth) return kGood;
  auto all = std::move(held);
  held.clear();
  for (bool sends : {true, false})
    for (Held& h : all)
      if (h.sends == sends && submit(h.stream, std::move(h.work))) return kSystem;
  return kGood;
}

int ncclRedOpCreatePreMulSum(int* op, void* factor, int type, int where, Comm* c) {
  if (where != 1 || type < 6) return kInvalid;
  double x = 0;
  if (type == 6) x = float(*static_cast<Half*>(factor));
  if (type == 7) x = *static_cast<float*>(factor);
  if (type == 8) x = *static_cast<double*>(factor);
  if (type == 9) x = float(*static_cast<BFloat16*>(factor));
  *op = 100 + int(c->factors.size());
  c->factors[*op] = x;
  return kGood;
}
int ncclRedOpDestroy(int op, Comm*) { return op >= 100 ? kGood : kInvalid; }

int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, Comm* c, Stream* s) {
  if (wrong(in, count, type) || wrong(out, count, type)) return kInvalid;
  const double factor = op >= 100 ? c->factors[op] : 1;
  return queue(c, s, [=] {
    std::vector<Bytes> all;
    if (c->exchange(in, count * kSizes[type], &all))
      reduce_as(type, all, 0, count, out, op, factor);
  });
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, Comm* c,
               Stream* s) {
  if (wrong(in, count, type)) return kInvalid;
  const double factor = op >= 100 ? c->factors[op] : 1;
  return queue(c, s, [=] {
    std::vector<Bytes> all;
    if (c->exchange(in, count * kSizes[type], &all) && c->rank == root)
      reduce_as(type, all, 0, count, out, op, factor);
  });
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, Comm* c,
                      Stream* s) {
  if (wrong(in, count * size_t(c->size), type) || wrong(out, count, type)) return kInvalid;
  const double factor = op >= 100 ? c->factors[op] : 1;
  return queue(c, s, [=] {
    std::vector<Bytes> all;
    if (c->exchange(in, count * kSizes[type] * size_t(c->size), &all))
      reduce_as(type, all, count * size_t(c->rank), count, out, op, factor);
  });
}
int ncclAllGather(const void* in, void* out, size_t count, int type, Comm* c, Stream* s) {
  if (wrong(in, count, type) || wrong(out, count * size_t(c->size), type)) return kInvalid;
  return queue(c, s, [=] {
    std::vector<Bytes> all;
    if (!c->exchange(in, count * kSizes[type], &all)) return;
    char* to = static_cast<char*>(out);
    for (const Bytes& b : all) to = std::copy(b.begin(), b.end(), to);
  });
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, Comm* c, Stream* s) {
  if (wrong(out, count, type) || (c->rank == root && wrong(in, count, type))) return kInvalid;
  return queue(c, s, [=] {
    std::vector<Bytes> all;
    if (c->exchange(in, c->rank == root ? count * kSizes[type] : 0, &all))
      std::memcpy(out, all[size_t(root)].data(), count * kSizes[type]);
  });
}

// A letter from one rank to another waits in the folder.
int ncclSend(const void* in, size_t count, int type, int peer, Comm* c, Stream* s) {
  if (wrong(in, count, type) || peer < 0 || peer >= c->size) return kInvalid;
  return queue(
      c, s,
      [=] {
        const std::string way =
            "from" + std::to_string(c->rank) + "to" + std::to_string(peer) + ".";
        c->post(way + std::to_string(c->letters[way]++), in, count * kSizes[type]);
      },
      true);
}
int ncclRecv(void* out, size_t count, int type, int peer, Comm* c, Stream* s) {
  if (wrong(out, count, type) || peer < 0 || peer >= c->size) return kInvalid;
  return queue(c, s, [=] {
    const std::string way = "from" + std::to_string(peer) + "to" + std::to_string(c->rank) + ".";
    const std::string name = way + std::to_string(c->letters["got " + way]++);
    Bytes bytes;
    if (!c->take(name, &bytes)) return;
    std::memcpy(out, bytes.data(), std::min(bytes.size(), count * kSizes[type]));
    std::error_code gone;
    fs::remove(c->file(name), gone);
  });
}
}

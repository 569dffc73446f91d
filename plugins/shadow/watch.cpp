// plugins/shadow/watch.cpp: runs an op where it is, then once more on another device, and compares.
#include "watch.hpp"

#include <adjoin/kit/call.hpp>
#include <adjoin/kit/dtype.hpp>
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "copies.hpp"

namespace adjoin::shadow {
namespace {

using namespace kit;

struct Settings {
  std::mutex lock;
  std::string device = "reference";
  Limits limits;
} settings;
std::atomic<int64_t> compared_{0}, left_out_{0};

// Memory that nobody has written yet, and functions on memory rather than on values.
const std::set<std::string_view> kNoValues = {"empty",     "empty_strided", "empty_like",
                                              "new_empty", "resize_",       "set_"};

aj_op_info info_of(const aj_op* op) {
  aj_op_info info = {};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  return info;
}

bool pointwise(const aj_op_info& info) {
  std::string_view kind = view_of(info.kind);
  return kind.starts_with("unary") || kind.starts_with("binary") || kind == "compare" ||
         kind == "pointwise";
}

// The one device of the arguments, where the call could run on the other one too; else why not.
const char* reason_to_leave_out(const aj_call* call, const aj_op_info& info, DLDevice other,
                                DLDevice* ours) {
  if (view_of(info.kind) == "view") return "a view computes nothing";
  if (kNoValues.contains(view_of(info.name)) || view_of(info.name).starts_with("shadow::"))
    return "its result has no values";
  *ours = call->device;
  auto equal = [](DLDevice a, DLDevice b) {
    return a.device_type == b.device_type && a.device_id == b.device_id;
  };
  bool several = false;
  auto look = [&](const aj_tensor* t) {
    if (t) several |= !equal(t->dl.device, *ours) || !(t->obj.flags & AJ_TENSOR_STRIDED);
  };
  for (uint32_t i = 0; i < call->nargs; ++i) {
    const aj_value& v = call->args[i];
    if (v.tag == AJ_TENSOR) look(v.v.tensor);
    if (v.tag == AJ_TENSORS)
      for (uint32_t j = 0; j < v.aux; ++j) look(v.v.tensors[j]);
    if (v.tag == AJ_DEVICE && !equal(v.v.device, *ours)) several = true;
  }
  if (several) return "it is between devices";
  if (equal(*ours, other)) return "it is on the other device already";
  return view_of(core().device_name(ours->device_type)) == "meta" ? "meta has no values" : nullptr;
}

// What is owned until it is handed on.
struct Results {
  std::vector<aj_value> values;
  explicit Results(uint32_t n) : values(n, aj_value{AJ_NONE, 0, {0}}) {}
  ~Results() {
    for (aj_value& v : values)
      if (v.tag >= AJ_TENSOR) core().release(v.v.object);
  }
  Results(const Results&) = delete;
};

// All tensors among the results, lists opened.
void collect(const aj_value* v, uint32_t n, std::vector<Tensor>* to) {
  for (uint32_t i = 0; i < n; ++i) {
    if (v[i].tag == AJ_TENSOR) to->push_back(Tensor::borrow(v[i].v.tensor));
    if (v[i].tag != AJ_LIST_OBJ) continue;
    uint32_t items = 0;
    const aj_value* list = core().list_get(v[i].v.object, &items);
    collect(list, items, to);
  }
}

// An argument that was written counts as a result.
void collect_written(const aj_call* call, const aj_value* args, std::vector<Tensor>* to) {
  for (uint32_t i = 0; i < call->nargs; ++i) {
    aj_param p = {};
    p.struct_size = sizeof p;
    check(dispatch().op_param(call->op, i, &p));
    if (!(p.flags & AJ_PARAM_WRITTEN)) continue;
    if (args[i].tag == AJ_TENSOR) to->push_back(Tensor::borrow(args[i].v.tensor));
    for (uint32_t j = 0; args[i].tag == AJ_TENSORS && j < args[i].aux; ++j)
      if (args[i].v.tensors[j]) to->push_back(Tensor::borrow(args[i].v.tensors[j]));
  }
}

bool differ(const aj_value& a, const aj_value& b) {
  if (a.tag != b.tag) return true;
  if (a.tag == AJ_FLOAT) return !(a.v.f == b.v.f || (a.v.f != a.v.f && b.v.f != b.v.f));
  return (a.tag == AJ_BOOL || a.tag == AJ_INT) && a.v.i != b.v.i;
}

struct Comparison {
  const aj_call* call;
  const aj_op_info& info;
  const Copies& copies;
  const Limits& limits;
  DLDevice ours, theirs;

  [[noreturn]] void stop(size_t result, const std::string& what) const {
    raise_as("AssertionError", AJ_DATA_LOSS, "shadow: ", view_of(info.name), " on ",
             core().device_name(ours.device_type), " and on ",
             core().device_name(theirs.device_type), " differ: result ", result, ", ", what,
             "; called with ", copies.describe());
  }
  void run(const aj_value* mine, const aj_value* other) const {
    std::vector<Tensor> a, b;
    collect(mine, call->nrets, &a);
    collect(other, call->nrets, &b);
    collect_written(call, call->args, &a);
    collect_written(call, copies.args().data(), &b);
    if (a.size() != b.size()) stop(0, text(a.size(), " and ", b.size(), " tensors come back"));
    for (uint32_t i = 0; i < call->nrets; ++i)
      if (differ(mine[i], other[i])) stop(i, "numbers differ");
    double largest = 0;
    if (!pointwise(info))
      for (const Tensor& t : copies.tensors()) largest = std::max(largest, largest_magnitude(t));
    for (size_t i = 0; i < a.size(); ++i) {
      // out= and in-place forms may have cast what an ordinary call returns.
      if (i < call->nrets && call->rets[i].tag == AJ_TENSOR && !same(a[i].dtype(), b[i].dtype()))
        b[i] = copied_to(b[i], theirs, a[i].dtype());
      std::string what = difference(a[i], b[i], limits, pointwise(info), largest);
      if (!what.empty()) stop(i, what);
    }
  }
};

void leave_out(const aj_op_info& info, std::string_view why) {
  left_out_.fetch_add(1);
  core().log(2, AJ_STR_LIT("shadow"), str(text(view_of(info.name), " was not compared: ", why)));
}

// Runs the call where it is, then there. What ours returns is kept in `mine`.
void twice(aj_call* call, const aj_op_info& info, DLDevice ours, DLDevice theirs,
           const Limits& limits, Results* mine) {
  Copies copies(call, theirs);
  Dice dice(call, ours, theirs);
  for (uint32_t i = 0; i < call->nrets; ++i) mine->values[i] = call->rets[i];
  aj_status* bad = dispatch().redispatch(call->op, call->keys, call->args, call->nargs,
                                         mine->values.data(), call->nrets);
  if (bad) {  // given tensors stay the caller's
    for (aj_value& v : mine->values) v = {AJ_NONE, 0, {0}};
    throw Error(bad);
  }
  Results other(call->nrets);
  dice.play_again();
  {
    Unrecorded off;
    bad = dispatch().call(call->op, copies.args().data(), call->nargs, other.values.data(),
                          call->nrets);
  }
  dice.put_back();
  if (bad) {
    leave_out(info, view_of(core().status_message(bad)));
    return core().status_free(bad);
  }
  compared_.fetch_add(1);
  Comparison{call, info, copies, limits, ours, theirs}.run(mine->values.data(),
                                                           other.values.data());
}

}  // namespace

void configure(std::string device, Limits limits) {
  int32_t type;
  check(core().device_find(str(device), &type));
  std::lock_guard held(settings.lock);
  settings.device = std::move(device);
  settings.limits = limits;
  compared_ = left_out_ = 0;
}

int64_t compared() { return compared_.load(); }
int64_t left_out() { return left_out_.load(); }

aj_status* watch(void*, aj_call* call) {
  bool forwarded = false;
  aj_status* result = nullptr;
  aj_status* bad = guard(std::string_view(), [&] {
    std::string device;
    Limits limits;
    {
      std::lock_guard held(settings.lock);
      device = settings.device, limits = settings.limits;
    }
    DLDevice theirs = {}, ours;
    int32_t type;
    check(core().device_find(str(device), &type));
    theirs.device_type = decltype(theirs.device_type)(type);
    aj_op_info info = info_of(call->op);
    if (const char* why = reason_to_leave_out(call, info, theirs, &ours)) {
      if (view_of(info.kind) != "view") leave_out(info, why);
      forwarded = true;
      result = dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                                     call->nrets);
      return;
    }
    Results mine(call->nrets);
    twice(call, info, ours, theirs, limits, &mine);
    for (uint32_t i = 0; i < call->nrets; ++i)
      call->rets[i] = std::exchange(mine.values[i], aj_value{AJ_NONE, 0, {0}});
  });
  return forwarded && !bad ? result : bad;
}

}  // namespace adjoin::shadow

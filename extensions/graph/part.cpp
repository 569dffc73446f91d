// extensions/graph/part.cpp: runs a part by its compiler's program, where nobody is between: no
// tape, no transform, no tensors of another kind than the program was captured with.
#include <algorithm>
#include <chrono>

#include "parts.hpp"

namespace adjoin::graph {
namespace {

// Do the strides descend, those of elements that stand for a whole dimension aside? Then what eager
// makes of it is in C order.
bool descends(const aj_tensor* t) {
  if (t->obj.flags & AJ_TENSOR_DENSE) return true;
  int64_t least = 1;
  for (int32_t d = t->dl.ndim; d-- > 0;) {
    if (t->dl.shape[d] == 1 || t->dl.strides[d] == 0) continue;
    if (t->dl.strides[d] < least) return false;
    least = t->dl.strides[d] * t->dl.shape[d];
  }
  return true;
}

// An input that lies as convolutions like it, if there is one.
const aj_tensor* in_free_order(const Part& part, const std::vector<Tensor>& regs) {
  for (uint32_t v : part.inputs)
    if (const aj_tensor* t = regs[v].get(); t && t->obj.flags & AJ_TENSOR_FREE_ORDER) return t;
  return nullptr;
}

// Where all lie alike and without gaps, numbers aside, the n-th element in memory is made of the
// n-th ones, whatever their order is. Who lies so may be turned by another thread that has it, so
// nobody else may have it.
bool lies_alike(const Part& part, const std::vector<Tensor>& regs, const DLTensor& free,
                const std::vector<int64_t>& sizes) {
  if (!part.by_element || part.device_type != kDLCPU) return false;
  const std::vector<int64_t> shape(free.shape, free.shape + free.ndim);
  for (const Type& type : part.output_types)
    if (shape_at(type, sizes) != shape) return false;
  return std::all_of(part.inputs.begin(), part.inputs.end(), [&](uint32_t v) {
    const aj_tensor* t = regs[v].get();
    if (!(t->obj.flags & AJ_TENSOR_FREE_ORDER)) return core().tensor_numel(t) == 1;
    return core().tensor_unique(t) && t->dl.ndim == free.ndim &&
           std::equal(shape.begin(), shape.end(), t->dl.shape) &&
           std::equal(free.strides, free.strides + free.ndim, t->dl.strides);
  });
}

bool takes(const Part& part, const std::vector<Tensor>& regs, const std::vector<int64_t>& sizes,
           bool calm) {
  uint64_t include, exclude;
  dispatch().thread_keys(&include, &exclude);
  static const uint64_t tape = dispatch().key_mask(AJ_STR_LIT("autograd"));
  const bool grad = !part.no_grad && autograd().grad_mode();
  const uint64_t ignored = exclude | (grad ? 0 : tape);
  for (size_t i = 0; i < part.inputs.size(); i++) {
    const aj_tensor* t = regs[part.inputs[i]].get();
    if (!t || int32_t(t->dl.device.device_type) != part.device_type) return false;
    const uint64_t flags = t->obj.flags;
    if (!(flags & AJ_TENSOR_STRIDED)) return false;
    if (((t->keys | include) & ~ignored) >> 24) return false;
    // A view may have got a history since.
    if (grad && !calm && flags & AJ_TENSOR_VIEW) return false;
    if (!has_shape(t, part.input_types[i], sizes)) return false;
    if (!(flags & AJ_TENSOR_FREE_ORDER) && !descends(t)) return false;
  }
  const aj_tensor* free = in_free_order(part, regs);
  return !free || lies_alike(part, regs, free->dl, sizes);
}

// Who has declined three times is asked now and then.
bool gave_up(const Part& part) {
  if (part.log->declined.load(std::memory_order_relaxed) < 3) return false;
  return part.log->declined.fetch_add(1, std::memory_order_relaxed) % 64 != 0;
}

uint64_t now() {
  return uint64_t(std::chrono::steady_clock::now().time_since_epoch() /
                  std::chrono::nanoseconds(1));
}

// Code 0: it ran. AJ_UNIMPLEMENTED is silent, the rest is said once for each part.
bool has_run(const Part& part, aj_status* status) {
  if (!status) return true;
  part.log->declined.fetch_add(1, std::memory_order_relaxed);
  const int32_t code = core().status_code(status);
  if (code == AJ_CANCELLED) check(status);
  if (code != AJ_UNIMPLEMENTED && !part.log->said.exchange(true)) {
    const std::string said =
        text("compiler '", part.name, "': ", view_of(core().status_message(status)),
             "; its calls are made one by one");
    core().log(1, AJ_STR_LIT("graph"), str(said));
  }
  core().status_free(status);
  return false;
}

}  // namespace

bool takes_part(const Part& part, const std::vector<Tensor>& regs,
                const std::vector<int64_t>& sizes, bool calm) {
  return takes(part, regs, sizes, calm) && !gave_up(part);
}

constexpr uint32_t kTrials = 24;

// Clearly: the least of a few times flatters who varies more, and what is as fast either way is
// left as eager has it.
static bool wins(const Part::Log& log) {
  const uint64_t apart = log.apart.load(std::memory_order_relaxed);
  return apart == ~uint64_t(0) ||
         double(log.together.load(std::memory_order_relaxed)) <= 0.75 * double(apart);
}
static bool is_small(const Part& part, const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (int64_t n : part.output_types[0].shape) elements *= n < 0 ? sizes[size_t(-1 - n)] : n;
  return elements < 1 << 16;
}
bool Turn::lost(const Part& part, const std::vector<int64_t>& sizes) {
  return part.log->runs.load(std::memory_order_relaxed) >= kTrials && is_small(part, sizes) &&
         !wins(*part.log);
}

// Of the first runs the first two go together, to warm up and to be seen; then in turns.
Turn::Turn(const Part& part, const std::vector<int64_t>& sizes, bool measure)
    : log_(*part.log), together_(true), measured_(false) {
  // What is not in the first caches wins by its memory.
  if (!measure || !is_small(part, sizes)) return;
  uint32_t run = log_.runs.load(std::memory_order_relaxed);
  if (run < kTrials) run = log_.runs.fetch_add(1, std::memory_order_relaxed);
  measured_ = run > 0 && run < kTrials;
  together_ = run < kTrials ? run < 2 || run % 2 : wins(log_);
  if (measured_) begin_ = now();
}
void Turn::end(bool ran_together) const {
  if (!measured_ || ran_together != together_) return;
  const uint64_t took = now() - begin_;
  std::atomic<uint64_t>& least = together_ ? log_.together : log_.apart;
  if (took < least.load(std::memory_order_relaxed)) least.store(took, std::memory_order_relaxed);
}

namespace {

// Results, until they are handed over.
struct Results {
  aj_tensor* t[kMostPorts];
  size_t n = 0;
  Results() = default;
  Results(const Results&) = delete;
  ~Results() {
    for (size_t i = 0; i < n; i++) core().release(t[i]);
  }
};

// The tensor's memory, as if it lay in C order.
Tensor as_it_lies(aj_tensor* t) {
  DLTensor like = t->dl;
  like.data = static_cast<char*>(like.data) + like.byte_offset;
  like.byte_offset = 0, like.strides = nullptr;
  const uint64_t bytes = uint64_t(core().tensor_numel(t)) * ((like.dtype.bits + 7u) / 8u);
  aj_tensor* made = nullptr;
  core().retain(t);
  aj_status* s = core().tensor_from_memory(
      &like, bytes, 0, t, [](void* of) { core().release(static_cast<aj_tensor*>(of)); }, &made);
  if (s) core().release(t);
  check(s);
  return Tensor::steal(made);
}

}  // namespace

bool run_part(const Part& part, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes) {
  aj_tensor* in[kMostPorts];
  Results out;
  const DLDevice device = part.inputs.empty() ? DLDevice{DLDeviceType(part.device_type), 0}
                                              : regs[part.inputs[0]].device();
  for (size_t i = 0; i < part.inputs.size(); i++) {
    in[i] = regs[part.inputs[i]].get();
    if (!(in[i]->dl.device == device)) return false;
  }
  const aj_tensor* free = in_free_order(part, regs);
  for (size_t i = 0; i < part.outputs.size(); i++) {
    const Type& type = part.output_types[i];
    int64_t shape[64];
    for (size_t d = 0; d < type.shape.size(); d++)
      shape[d] = type.shape[d] < 0 ? sizes[size_t(-1 - type.shape[d])] : type.shape[d];
    DLTensor like = {nullptr, device, int32_t(type.shape.size()), type.dtype, shape, nullptr, 0};
    if (free) like.strides = free->dl.strides;
    check(core().tensor_empty(&like, 0, &out.t[i]));
    if (free) out.t[i]->obj.flags |= AJ_TENSOR_FREE_ORDER;  // as its calls would leave it
    out.n++;
  }
  aj_tensor* to[kMostPorts];
  std::copy_n(out.t, out.n, to);
  std::vector<Tensor> lying;
  auto lie = [&](aj_tensor*& t) {
    if (t->obj.flags & AJ_TENSOR_FREE_ORDER) t = lying.emplace_back(as_it_lies(t)).get();
  };
  if (free) {
    std::for_each(in, in + part.inputs.size(), lie);
    std::for_each(to, to + out.n, lie);
  }
  void* stream = nullptr;
  if (part.device_type != kDLCPU) check(core().stream_current(device, &stream));
  const aj_compiler& c = *part.compiler;
  if (!has_run(part, c.run(c.self, part.program.get(), in, to, sizes.data(), stream))) return false;
  part.log->declined.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < out.n; i++) regs[part.outputs[i]] = Tensor::steal(out.t[i]);
  out.n = 0;
  return true;
}

}  // namespace adjoin::graph

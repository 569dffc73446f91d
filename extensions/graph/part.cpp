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
    if ((flags & (AJ_TENSOR_STRIDED | AJ_TENSOR_FREE_ORDER)) != AJ_TENSOR_STRIDED) return false;
    if (((t->keys | include) & ~ignored) >> 24) return false;
    // A view may have got a history since.
    if (grad && !calm && flags & AJ_TENSOR_VIEW) return false;
    if (!has_shape(t, part.input_types[i], sizes) || !descends(t)) return false;
  }
  return true;
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
  for (size_t i = 0; i < part.outputs.size(); i++) {
    const Type& type = part.output_types[i];
    int64_t shape[64];
    for (size_t d = 0; d < type.shape.size(); d++)
      shape[d] = type.shape[d] < 0 ? sizes[size_t(-1 - type.shape[d])] : type.shape[d];
    const DLTensor like = {nullptr, device, int32_t(type.shape.size()), type.dtype, shape,
                           nullptr, 0};
    check(core().tensor_empty(&like, 0, &out.t[i]));
    out.n++;
  }
  void* stream = nullptr;
  if (part.device_type != kDLCPU) check(core().stream_current(device, &stream));
  const aj_compiler& c = *part.compiler;
  if (!has_run(part, c.run(c.self, part.program.get(), in, out.t, sizes.data(), stream)))
    return false;
  part.log->declined.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < out.n; i++) regs[part.outputs[i]] = Tensor::steal(out.t[i]);
  out.n = 0;
  return true;
}

}  // namespace adjoin::graph

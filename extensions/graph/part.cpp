// extensions/graph/part.cpp: runs a part by its compiler's program, where nobody is between: no
// tape, no transform, no tensors of another kind than the program was captured with.
#include <algorithm>

#include "parts.hpp"

namespace adjoin::graph {
namespace {

bool has_shape(const aj_tensor* t, const Type& type, const std::vector<int64_t>& sizes) {
  if (!(t->dl.dtype == type.dtype) || t->dl.ndim != int32_t(type.shape.size())) return false;
  for (size_t d = 0; d < type.shape.size(); d++) {
    const int64_t n = type.shape[d];
    if (t->dl.shape[d] != (n < 0 ? sizes[size_t(-1 - n)] : n)) return false;
  }
  return true;
}

// Do the strides descend? Then what eager makes of it is in C order.
bool descends(const aj_tensor* t) {
  if (t->obj.flags & AJ_TENSOR_DENSE) return true;
  int64_t least = 1;
  for (int32_t d = t->dl.ndim; d-- > 0;) {
    if (t->dl.shape[d] == 1) continue;
    if (t->dl.strides[d] < least) return false;
    least = t->dl.strides[d] * t->dl.shape[d];
  }
  return true;
}

bool takes(const Part& part, const std::vector<Tensor>& regs, const std::vector<int64_t>& sizes) {
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
    if (grad && flags & AJ_TENSOR_VIEW) return false;
    if (!has_shape(t, part.input_types[i], sizes) || !descends(t)) return false;
  }
  return true;
}

// Who has declined three times is asked now and then.
bool gave_up(const Part& part) {
  if (part.log->declined.load(std::memory_order_relaxed) < 3) return false;
  return part.log->declined.fetch_add(1, std::memory_order_relaxed) % 64 != 0;
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

bool run_part(const Part& part, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes) {
  if (!takes(part, regs, sizes) || gave_up(part)) return false;
  aj_tensor *in[kMostPorts], *out[kMostPorts];
  const DLDevice device = part.inputs.empty() ? DLDevice{DLDeviceType(part.device_type), 0}
                                              : regs[part.inputs[0]].device();
  for (size_t i = 0; i < part.inputs.size(); i++) {
    in[i] = regs[part.inputs[i]].get();
    if (!(in[i]->dl.device == device)) return false;
  }
  std::vector<Tensor> made;
  made.reserve(part.outputs.size());
  for (size_t i = 0; i < part.outputs.size(); i++) {
    const Type& type = part.output_types[i];
    int64_t shape[64];
    for (size_t d = 0; d < type.shape.size(); d++)
      shape[d] = type.shape[d] < 0 ? sizes[size_t(-1 - type.shape[d])] : type.shape[d];
    const DLTensor like = {nullptr, device, int32_t(type.shape.size()), type.dtype, shape,
                           nullptr, 0};
    check(core().tensor_empty(&like, 0, &out[i]));
    made.push_back(Tensor::steal(out[i]));
  }
  void* stream = nullptr;
  if (part.device_type != kDLCPU) check(core().stream_current(device, &stream));
  const aj_compiler& c = *part.compiler;
  if (!has_run(part, c.run(c.self, part.program.get(), in, out, sizes.data(), stream)))
    return false;
  part.log->declined.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < made.size(); i++) regs[part.outputs[i]] = std::move(made[i]);
  return true;
}

}  // namespace adjoin::graph

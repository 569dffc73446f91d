// plugins/gpu/places.cuh: the places that an index tensor names in another tensor.
#ifndef ADJOIN_PLUGINS_GPU_PLACES_CUH
#define ADJOIN_PLUGINS_GPU_PLACES_CUH
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/indexing.hpp>

#include "element.cuh"

namespace adjoin::gpu {

constexpr int kScatterDims = 16;

template <class T>
Plain<T> start_from(const aj_call* call, TensorView input, MutView out) {
  if (input.get() != out.get()) copy(call, out, input);
  return Plain<T>(call, out, true);
}
// Element i of an index tensor names an element of a tensor of another shape; -1: none, reported.
struct Named {
  const int64_t* index;
  int32_t ndim, dim;
  int64_t size;                 // along dim
  Divisor sizes[kScatterDims];  // of the index
  int64_t steps[kScatterDims];  // into the other tensor
  int64_t source_steps[kScatterDims];
  Fault* fault;
  AJ_DEVICE int64_t place(int64_t i, int64_t* source) const {
    int64_t at = 0, from = 0, rest = i;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t c = sizes[d].split(&rest);
      from += c * source_steps[d];
      if (d == dim && (c = checked(index[i], size, dim, fault)) < 0) return -1;
      at += c * steps[d];
    }
    *source = from;
    return at;
  }
  AJ_DEVICE int64_t operator()(int64_t i) const {
    int64_t source;
    return place(i, &source);
  }
  AJ_DEVICE int64_t source(int64_t i) const {
    int64_t from = 0;
    for (int d = ndim - 1; d >= 0; --d) from += sizes[d].split(&i) * source_steps[d];
    return from;
  }
};
inline int64_t wrapped(int64_t dim, int64_t ndim) { return dim < 0 ? dim + ndim : dim; }

// What has no dimension is a line of one element.
inline Named named(const aj_call* call, const int64_t* index, TensorView of, Span shape,
                   Span source, int64_t dim) {
  if (of.ndim() > kScatterDims)
    raise(AJ_UNIMPLEMENTED, of.ndim(), " dimensions; at most ", kScatterDims, " are known");
  Named n = {};
  n.index = index;
  n.fault = fault_of(call);
  n.ndim = std::max(int32_t(of.ndim()), 1);
  n.dim = of.ndim() && !shape.empty() ? int32_t(dim) : 0;
  n.steps[0] = 1;
  auto steps = dense_strides(shape), source_steps = dense_strides(source);
  n.size = shape.empty() ? 1 : shape[size_t(dim)];
  for (int64_t d = 0; d < of.ndim(); ++d) {
    n.sizes[d] = of.size(d);
    if (size_t(d) < steps.size()) n.steps[d] = steps[size_t(d)];
    if (size_t(d) < source_steps.size()) n.source_steps[d] = source_steps[size_t(d)];
  }
  return n;
}

}  // namespace adjoin::gpu
#endif

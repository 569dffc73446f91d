// adjoin/kit/host.hpp: tables made on the host, as tensors beside another tensor.
#ifndef ADJOIN_KIT_HOST_HPP
#define ADJOIN_KIT_HOST_HPP
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/memory.hpp>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN ops {

template <class T>
Tensor from_host(const Tensor& like, const std::vector<T>& values, const Sizes& shape,
                 DLDataType dtype) {
  Tensor t = empty_dense(shape, dtype, DLDevice{kDLCPU, 0});
  std::copy(values.begin(), values.end(), t.data<T>());
  return to(t, std::nullopt, like.device());
}
inline Tensor indices_from_host(const Tensor& like, const std::vector<int64_t>& values,
                                const Sizes& shape) {
  return from_host(like, values, shape, int64);
}
inline Tensor numbers_from_host(const Tensor& like, const std::vector<double>& values,
                                const Sizes& shape, DLDataType dtype) {
  return to(from_host(like, values, shape, float64), dtype);
}

// What arithmetic on a dtype is done in.
inline DLDataType wide(DLDataType d) { return d.bits == 16 ? float32 : d; }

}  // namespace ops
}  // namespace adjoin
#endif

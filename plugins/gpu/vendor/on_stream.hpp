// plugins/gpu/vendor/on_stream.hpp: ops that a service runs beside its library's work.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_ON_STREAM_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_ON_STREAM_HPP
#include <adjoin/kit/make.hpp>

#include "status.hpp"

namespace adjoin::vendor {

using ops::Sizes;

// They are queued on a stream, and nothing is recorded of them.
class OnStream {
 public:
  OnStream(DLDevice device, Stream stream) : device_(device) {
    kit::check(kit::core().stream_current(device, &before_));
    if (before_ != stream) kit::check(kit::core().stream_set(device, stream));
    moved_ = before_ != stream;
  }
  ~OnStream() {
    if (moved_) kit::core().status_free(kit::core().stream_set(device_, before_));
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  NoGradGuard off_;
  DLDevice device_;
  void* before_ = nullptr;
  bool moved_ = false;
};

// Somebody's memory as a tensor, for the time of a call.
inline Tensor over(void* data, DLDevice device, DLDataType dtype, const Sizes& shape,
                   const Sizes& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  DLTensor like = {data,
                   device,
                   int32_t(shape.size()),
                   dtype,
                   const_cast<int64_t*>(shape.data()),
                   const_cast<int64_t*>(strides.data()),
                   0};
  aj_tensor* out = nullptr;
  kit::check(kit::core().tensor_from_memory(
      &like, uint64_t(last + 1) * dtype.bits / 8, 0, nullptr, [](void*) {}, &out));
  return Tensor::steal(out);
}

}  // namespace adjoin::vendor
#endif

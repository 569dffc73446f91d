// plugins/onednn/images.cpp: copies between the user's images and a primitive's.
#include "images.hpp"

#include <algorithm>

#include "transpose.hpp"

namespace adjoin::onednn {

using namespace kit;

Scratch::Scratch(int64_t floats) {
  int64_t shape[1] = {std::max<int64_t>(floats, 1)};
  tensor_ = new_tensor({kDLCPU, 0}, dtype_of<float>, shape);
}
Scratch::~Scratch() {
  if (tensor_) core().release(tensor_);
}
float* Scratch::data() const { return tensor_ ? MutView(tensor_).data<float>() : nullptr; }

void Images::gather(int64_t first, int64_t images, int64_t from, int64_t count, Order wanted,
                    float* to) const {
  for (int64_t n = first; n < first + images; ++n, to += count * pixels) {
    const float* image = data + n * each();
    if (order == Order::planes && wanted == Order::last)
      transpose(image + from * pixels, count, pixels, pixels, to, count);
    else if (order == Order::last && wanted == Order::planes)
      transpose(image + from, pixels, count, channels, to, pixels);
    else if (order == Order::planes)
      std::copy_n(image + from * pixels, count * pixels, to);
    else
      for (int64_t p = 0; p < pixels; ++p)
        std::copy_n(image + p * channels + from, count, to + p * count);
  }
}

void Images::scatter(int64_t first, int64_t images, int64_t from, int64_t count, Order given,
                     const float* part) const {
  for (int64_t n = first; n < first + images; ++n, part += count * pixels) {
    float* image = data + n * each();
    if (order == Order::planes && given == Order::last)
      transpose(part, pixels, count, count, image + from * pixels, pixels);
    else if (order == Order::last && given == Order::planes)
      transpose(part, count, pixels, pixels, image + from, channels);
    else if (order == Order::planes)
      std::copy_n(part, count * pixels, image + from * pixels);
    else
      for (int64_t p = 0; p < pixels; ++p)
        std::copy_n(part + p * count, count, image + p * channels + from);
  }
}

}  // namespace adjoin::onednn

// plugins/onednn/images.hpp: the images of a convolution as the user has them, and parts of them as
// a primitive wants them.
#ifndef ADJOIN_PLUGINS_ONEDNN_IMAGES_HPP
#define ADJOIN_PLUGINS_ONEDNN_IMAGES_HPP
#include <adjoin/kit/view.hpp>

#include "piece.hpp"

namespace adjoin::onednn {

// Memory for floats from the core's allocator, whose pages are warm.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t floats);
  ~Scratch();
  Scratch(Scratch&& other) noexcept : tensor_(other.tensor_) { other.tensor_ = nullptr; }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  float* data() const;
  explicit operator bool() const { return tensor_ != nullptr; }

 private:
  aj_tensor* tensor_ = nullptr;
};

struct Images {
  float* data;
  Order order;
  int64_t batch, channels, pixels;

  int64_t each() const { return channels * pixels; }
  // Can channels [from, from + count) of some images be used where they lie?
  bool fits(Order wanted, int64_t count) const {
    return (wanted == order || channels == 1 || pixels == 1) && count == channels;
  }
  // Copies a part into, or from, dense memory in the other order or with fewer channels.
  void gather(int64_t first, int64_t images, int64_t from, int64_t count, Order wanted,
              float* to) const;
  void scatter(int64_t first, int64_t images, int64_t from, int64_t count, Order given,
               const float* part) const;
};

}  // namespace adjoin::onednn
#endif

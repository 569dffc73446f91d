// plugins/cpu/image/few_channels.hpp: convolutions in groups of few channels, depthwise ones above
// all.
#ifndef ADJOIN_PLUGINS_CPU_IMAGE_FEW_CHANNELS_HPP
#define ADJOIN_PLUGINS_CPU_IMAGE_FEW_CHANNELS_HPP
#include <adjoin/kit/geometry.hpp>

namespace adjoin::cpu {

// Images are planes in C order, of one to three dimensions; T: float, double.
template <class T>
class FewChannels {
 public:
  static bool serves(const kit::ConvGeometry& g);
  explicit FewChannels(const kit::ConvGeometry& g) : g_(g) {}
  // Each begins with the channel's bias; no bias is zeros.
  void to_small(const T* big, const T* weight, const T* bias, T* small) const;
  void to_big(const T* small, const T* weight, const T* bias, T* big) const;
  void to_weight(const T* small, const T* big, T* weight) const;

 private:
  const kit::ConvGeometry& g_;
};

}  // namespace adjoin::cpu
#endif

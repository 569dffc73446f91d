// plugins/ops_image/cpu/grid_rows.cpp: images with their channels side by side, in vector code.
#include "grid_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_image/cpu/grid_rows.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
void read(const PlaceTaps<T>& t, const T* image, T* to) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < t.n; ++i, to += t.pitch)
    for (size_t c = 0; c < t.pitch; c += hn::Lanes(d)) {
      auto sum = hn::Zero(d);
      for (size_t k = i; k < i + t.taps * t.step; k += t.step)
        if (t.weight[k] != 0) {
          auto pixel = hn::LoadU(d, image + size_t(t.index[k]) * t.pitch + c);
          sum = hn::Add(sum, hn::Mul(hn::Set(d, t.weight[k]), pixel));
        }
      hn::StoreU(sum, d, to + c);
    }
}

template <class T>
void add(const PlaceTaps<T>& t, const T* g, T* image) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < t.n; ++i, g += t.pitch)
    for (size_t k = i; k < i + t.taps * t.step; k += t.step) {
      if (t.weight[k] == 0) continue;
      T* pixel = image + size_t(t.index[k]) * t.pitch;
      const auto w = hn::Set(d, t.weight[k]);
      for (size_t c = 0; c < t.pitch; c += hn::Lanes(d))
        hn::StoreU(hn::Add(hn::LoadU(d, pixel + c), hn::Mul(w, hn::LoadU(d, g + c))), d, pixel + c);
    }
}

template <class T, size_t kAxes>
void slopes_of(const PlaceTaps<T>& t, const T* image, const T* g, T* slopes) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < t.n; ++i, g += t.pitch) {
    decltype(hn::Zero(d)) sum[kAxes];
    for (auto& s : sum) s = hn::Zero(d);
    for (size_t k = 0; k < t.taps; ++k) {
      const T* pixel = image + size_t(t.index[k * t.step + i]) * t.pitch;
      auto product = hn::Zero(d);
      for (size_t c = 0; c < t.pitch; c += hn::Lanes(d))
        product = hn::Add(product, hn::Mul(hn::LoadU(d, pixel + c), hn::LoadU(d, g + c)));
      for (size_t a = 0; a < kAxes; ++a) {
        T w = t.weight[(a * t.taps + k) * t.step + i];
        if (w != 0) sum[a] = hn::Add(sum[a], hn::Mul(hn::Set(d, w), product));
      }
    }
    for (size_t a = 0; a < kAxes; ++a)
      slopes[a * t.step + i] = hn::GetLane(hn::SumOfLanes(d, sum[a]));
  }
}
template <class T>
void slopes(const PlaceTaps<T>& t, size_t axes, const T* image, const T* g, T* to) {
  return axes == 2 ? slopes_of<T, 2>(t, image, g, to) : slopes_of<T, 3>(t, image, g, to);
}

template <class T>
constexpr GridRows<T> kRows = {&read<T>, &add<T>, &slopes<T>};

}  // namespace

AJ_CODE(GridRows, grid_rows, kRows)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

AJ_CHOSEN_CODE(GridRows, grid_rows)

}  // namespace adjoin::cpu
#endif

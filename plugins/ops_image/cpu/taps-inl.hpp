// plugins/ops_image/cpu/taps-inl.hpp: per instruction set: weighted sums of elements read at
// indices. Include it, after "lanes.hpp" and "plane.hpp", from a file of vector code.
#if AJ_VECTORS
#if defined(ADJOIN_PLUGINS_OPS_IMAGE_CPU_TAPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef ADJOIN_PLUGINS_OPS_IMAGE_CPU_TAPS_INL_HPP
#else
#define ADJOIN_PLUGINS_OPS_IMAGE_CPU_TAPS_INL_HPP
#endif
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// to[i] = sum over taps of weight[tap, i] * in[index[tap, i]]; rows of both tables lie `step` apart
// and have whole vectors behind their end. A weight of zero hides what it is multiplied with.
template <class T>
void sum_taps(const T* in, const Offset<T>* index, const T* weight, size_t taps, size_t step,
              size_t n, T* to) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < taps; ++k) {
      auto w = hn::LoadU(d, weight + k * step + i);
      auto v = hn::GatherIndex(d, in, hn::LoadU(di, index + k * step + i));
      sum = hn::Add(sum, hn::IfThenZeroElse(hn::Eq(w, hn::Zero(d)), hn::Mul(w, v)));
    }
    store_n(sum, d, to + i, n - i);
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

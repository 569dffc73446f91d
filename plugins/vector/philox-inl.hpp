// plugins/vector/philox-inl.hpp: Philox 4x32-10 on vectors: the words that kit::Philox makes, and
// numbers of them.
#if defined(ADJOIN_PLUGINS_VECTOR_PHILOX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_PHILOX_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_PHILOX_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_PHILOX_INL_HPP
#endif
#include "math-inl.hpp"
#include "rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// Words of the blocks from `first` on, four a block; whole vectors are written: room for 8 blocks
// more. Counters stand in lanes of 64 bits of which multiplications read the low half, so what
// gathers in the high half need not be cleared.
inline void philox_words(uint64_t seed, uint64_t first, int64_t blocks, uint32_t* out) {
  const hn::ScalableTag<uint64_t> d;
  const hn::ScalableTag<uint32_t> d32;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  // Interleaving 128-bit lanes puts the even ones first: they take the first half of the blocks.
  HWY_ALIGN uint64_t order[hn::MaxLanes(d)];
  for (int64_t i = 0; i < lanes; ++i) order[i] = uint64_t(i / 2 + i % 2 * (lanes / 2));
  const V places = hn::Load(d, order), low = hn::Set(d, 0xffffffffu);
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  auto times = [&](V a, V b)
                   HWY_ATTR { return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)); };
  for (int64_t at = 0; at < blocks; at += lanes) {
    V c0 = hn::Set(d, first + uint64_t(at)) + places, c1 = hn::ShiftRight<32>(c0);
    V c2 = hn::Zero(d), c3 = hn::Zero(d);
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      V a = times(c0, m0), b = times(c2, m1);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d, k0));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d, k1));
      c1 = b;
      c3 = a;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    V left = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    V right = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    auto* to = reinterpret_cast<uint64_t*>(out + 4 * at);
    hn::StoreU(hn::InterleaveLower(d, left, right), d, to);
    hn::StoreU(hn::InterleaveUpper(d, left, right), d, to + lanes);
  }
}

// Uniform numbers of [0, 1) from the words at p.
template <class D>
HWY_INLINE hn::Vec<D> uniform_at(D d, const uint32_t* p) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    auto bits = hn::ShiftRight<8>(hn::LoadU(du, p));
    return hn::ConvertTo(d, hn::BitCast(di, bits)) * hn::Set(d, 0x1p-24f);
  } else {
    auto bits = hn::ShiftRight<11>(hn::LoadU(du, reinterpret_cast<const uint64_t*>(p)));
    return hn::ConvertTo(d, hn::BitCast(di, bits)) * hn::Set(d, 0x1p-53);
  }
}

// As kit::scaled, whose bits a product and a sum apart would not have.
template <class D, class V>
HWY_INLINE V scaled(D d, V x, V by, V start) {
  if constexpr (math::kFused) return hn::MulAdd(x, by, start);
  HWY_ALIGN hn::TFromD<D> xs[hn::MaxLanes(d)];
  hn::Store(x, d, xs);
  for (auto& one : xs) one = kit::scaled(one, hn::GetLane(by), hn::GetLane(start));
  return hn::Load(d, xs);
}

// The arithmetic of kit/normal.hpp on vectors. Nothing here is always inlined: the kit's functions
// are made for no instruction set, and join one only where they are inlined themselves.
template <class V>
struct Lanes {
  V x;
};
template <class V>
Lanes<V> operator+(Lanes<V> a, Lanes<V> b) {
  return {hn::Add(a.x, b.x)};
}
template <class V>
Lanes<V> operator-(Lanes<V> a, Lanes<V> b) {
  return {hn::Sub(a.x, b.x)};
}
template <class V>
Lanes<V> operator*(Lanes<V> a, Lanes<V> b) {
  return {hn::Mul(a.x, b.x)};
}
template <class V>
Lanes<V> operator/(Lanes<V> a, Lanes<V> b) {
  return {hn::Div(a.x, b.x)};
}
template <class V>
Lanes<V> operator&(Lanes<V> a, Lanes<V> b) {
  return {hn::And(a.x, b.x)};
}
template <class V>
Lanes<V> operator|(Lanes<V> a, Lanes<V> b) {
  return {hn::Or(a.x, b.x)};
}
template <class V>
Lanes<V> operator^(Lanes<V> a, Lanes<V> b) {
  return {hn::Xor(a.x, b.x)};
}
template <class D>
struct Many {
  using T = hn::TFromD<D>;
  using Words = hn::RebindToUnsigned<D>;
  using V = Lanes<hn::Vec<D>>;
  using I = Lanes<hn::Vec<Words>>;
  static V number(T x) { return {hn::Set(D(), x)}; }
  static I word(hn::TFromD<Words> x) { return {hn::Set(Words(), x)}; }
  static I bits(V x) { return {hn::BitCast(Words(), x.x)}; }
  static V of_bits(I x) { return {hn::BitCast(D(), x.x)}; }
  static V fma(V a, V b, V c) { return {hn::MulAdd(a.x, b.x, c.x)}; }
  static V sqrt(V x) { return {hn::Sqrt(x.x)}; }
  template <int N>
  static I right(I x) {
    return {hn::ShiftRight<N>(x.x)};
  }
  template <int N>
  static I left(I x) {
    return {hn::ShiftLeft<N>(x.x)};
  }
};

template <class T>
void uniform_row(const uint32_t* words, T* out, int64_t n, T low, T high, bool stream) {
  const hn::ScalableTag<T> d;
  const auto span = hn::Set(d, T(high - low)), start = hn::Set(d, low);
  for (int64_t i = 0; i < n; i += int64_t(hn::Lanes(d)))
    put(scaled(d, uniform_at(d, words + i * int64_t(sizeof(T) / 4)), span, start), d, out + i,
        stream);
}

// Box-Muller on pairs: the cosine to the even element, the sine to the odd one.
template <class T>
void normal_row(const uint32_t* words, T* out, int64_t n, T mean, T deviation, bool) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const auto m = hn::Set(d, mean), s = hn::Set(d, deviation);
  HWY_ALIGN T pairs[2 * hn::MaxLanes(d)];
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    const uint32_t* w = words + i * int64_t(sizeof(T) / 4);
    hn::Store(uniform_at(d, w), d, pairs);
    hn::Store(uniform_at(d, w + lanes * int64_t(sizeof(T) / 4)), d, pairs + lanes);
    Lanes<hn::Vec<decltype(d)>> u, v;
    if constexpr (math::kFused) {
      hn::LoadInterleaved2(d, pairs, u.x, v.x);
      kit::normal_pair<Many<std::remove_cv_t<decltype(d)>>>(&u, &v);
    } else {
      for (int64_t k = 0; k < 2 * lanes; k += 2)
        kit::normal_pair<kit::OneNumber<T>>(pairs + k, pairs + k + 1);
      hn::LoadInterleaved2(d, pairs, u.x, v.x);
    }
    hn::StoreInterleaved2(scaled(d, u.x, s, m), scaled(d, v.x, s, m), d, out + i);
  }
}

// x scale where the uniform number is at least `drop`, else 0; n of whole vectors.
template <class S>
void dropout_row(const uint32_t* words, const void* in, void* out, int64_t n, float drop,
                 float scale, bool stream) {
  const hn::ScalableTag<float> d;
  const auto border = hn::Set(d, drop), factor = hn::Set(d, scale);
  for (int64_t i = 0; i < n; i += int64_t(hn::Lanes(d))) {
    auto keep = hn::Ge(uniform_at(d, words + i), border);
    auto x = load_as<S>(d, static_cast<const S*>(in) + i) * factor;
    store_as<S>(d, hn::IfThenElseZero(keep, x), static_cast<S*>(out) + i, stream);
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

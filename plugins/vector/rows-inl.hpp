// plugins/vector/rows-inl.hpp: the loops of rows.hpp, for every instruction set. A functor is
// called as f(tag, vectors...) with vectors of the computing type; a condition comes as a mask, and
// a mask as a result becomes bool.
#if defined(ADJOIN_PLUGINS_VECTOR_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_ROWS_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_ROWS_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_ROWS_INL_HPP
#endif

#include <hwy/cache_control.h>

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without instructions for halves Highway's emulation rounds otherwise than kit::Half.
inline constexpr bool kHalfUnit = HWY_TARGET != HWY_SSE4;

// Elements of type S as vectors of D's type.
template <class S, class D>
HWY_INLINE hn::Vec<D> load_as(D d, const S* p) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<S, T>) {
    return hn::LoadU(d, p);
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<uint32_t, D> d32;
    auto bits = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  } else {
    static_assert(std::is_same_v<S, Half>);
    if constexpr (!kHalfUnit) {
      HWY_ALIGN float values[hn::MaxLanes(D())];
      for (size_t i = 0; i < hn::MaxLanes(d); ++i) values[i] = p[i];
      return hn::Load(d, values);
    }
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
  }
}

// The shortest store past the caches is of 16 bytes: Highway writes so many of a shorter vector
// too.
template <class V, class D, class T>
HWY_INLINE void put(V v, D d, T* p, bool stream) {
  if (stream && hn::MaxLanes(d) * sizeof(T) >= 16)
    hn::Stream(v, d, p);
  else
    hn::StoreU(v, d, p);
}

template <class S, class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, S* p, bool stream) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<S, T>) {
    put(v, d, p, stream);
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint16_t, D> d16;
    auto u = hn::BitCast(du, v);
    auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1u));
    auto rounded = hn::ShiftRight<16>(u + odd + hn::Set(du, 0x7fffu));
    rounded = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 0x7fc0u), rounded);
    put(hn::DemoteTo(d16, hn::BitCast(di, rounded)), d16, reinterpret_cast<uint16_t*>(p), stream);
  } else {
    static_assert(std::is_same_v<S, Half>);
    if constexpr (!kHalfUnit) {
      HWY_ALIGN float values[hn::MaxLanes(D())];
      hn::Store(v, d, values);
      for (size_t i = 0; i < hn::MaxLanes(d); ++i) p[i] = Half(values[i]);
      return;
    }
    const hn::Rebind<hwy::float16_t, D> d16;
    const hn::Rebind<uint16_t, D> du16;
    put(hn::BitCast(du16, hn::DemoteTo(d16, v)), du16, reinterpret_cast<uint16_t*>(p), stream);
  }
}

// Masks as bytes of 0 and 1.
template <class D, class M>
HWY_INLINE void store_mask(D d, M m, bool* p) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint8_t, D> d8;
    auto ones = hn::IfThenElseZero(hn::RebindMask(du, m), hn::Set(du, 1u));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(di, ones)), d8, reinterpret_cast<uint8_t*>(p));
  } else {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint8_t, D> d8;
    auto ones = hn::IfThenElseZero(hn::RebindMask(du, m), hn::Set(du, 1u));
    hn::StoreU(hn::TruncateTo(d8, ones), d8, reinterpret_cast<uint8_t*>(p));
  }
}

// As many masks as fill a vector of bytes, the k-th is mask(k): one store of a whole line of the
// cache instead of stores of its parts.
#if HWY_TARGET <= HWY_AVX3
template <class D, class Get>
HWY_INLINE hn::Vec<hn::ScalableTag<uint8_t>> mask_bytes(D d, const Get& mask) {
  const hn::ScalableTag<uint8_t> d8;
  uint64_t bits = 0;
  for (size_t k = 0; k < sizeof(hn::TFromD<D>); ++k)
    bits |= uint64_t(mask(k).raw) << (k * hn::Lanes(d));
  return hn::IfThenElseZero(hn::Mask512<uint8_t>{bits}, hn::Set(d8, 1));
}
#else
// The lower halves of the elements, again and again; all their bits are alike.
template <size_t kMasks, class D, class Get>
HWY_INLINE auto narrowed(D d, const Get& mask, size_t first) {
  if constexpr (kMasks == 1) {
    const hn::RebindToUnsigned<D> du;
    return hn::BitCast(du, hn::VecFromMask(d, mask(first)));
  } else {
    using Wide = hn::TFromD<D>;
    constexpr size_t size = sizeof(Wide) / kMasks;
    using Element =
        std::conditional_t<size == 4, uint32_t, std::conditional_t<size == 2, uint16_t, uint8_t>>;
    const hn::ScalableTag<Element> de;
    auto low = narrowed<kMasks / 2>(d, mask, first);
    auto high = narrowed<kMasks / 2>(d, mask, first + kMasks / 2);
    return hn::ConcatEven(de, hn::BitCast(de, high), hn::BitCast(de, low));
  }
}
template <class D, class Get>
HWY_INLINE hn::Vec<hn::ScalableTag<uint8_t>> mask_bytes(D d, const Get& mask) {
  const hn::ScalableTag<uint8_t> d8;
  return hn::And(narrowed<sizeof(hn::TFromD<D>)>(d, mask, 0), hn::Set(d8, 1));
}
#endif

template <class D>
HWY_INLINE hn::Mask<D> load_mask(D d, const bool* p) {
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<uint32_t, D> d32;
  auto wide = hn::PromoteTo(d32, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(p)));
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::RebindMask(d, hn::Ne(wide, hn::Zero(d32)));
  } else {
    const hn::Rebind<uint64_t, D> d64;
    return hn::RebindMask(d, hn::Ne(hn::PromoteTo(d64, wide), hn::Zero(d64)));
  }
}

// Bytes that rows from beyond the caches are asked for ahead of their use: the processor's own
// prefetching ends at pages, and threads that compute much reach too few lines ahead.
inline constexpr int64_t kAhead = 2048;

// An input: elements of S, or one value of the computing type.
template <bool Splat, class S, class D>
struct Input {
  const S* p;
  D d;
  using Value = hn::Vec<D>;
  Value splat;
  HWY_INLINE Input(D tag, const void* from) : p(static_cast<const S*>(from)), d(tag) {
    if constexpr (Splat) splat = hn::Set(d, *static_cast<const hn::TFromD<D>*>(from));
  }
  HWY_INLINE Value at(int64_t i) const {
    if constexpr (Splat)
      return splat;
    else
      return load_as<S>(d, p + i);
  }
  HWY_INLINE void fetch(int64_t i) const {
    if constexpr (!Splat) hwy::Prefetch(reinterpret_cast<const char*>(p + i) + kAhead);
  }
  static constexpr bool kWhole = Splat;
  static constexpr size_t kSize = sizeof(S);
};
template <bool Splat, class D>
struct Input<Splat, bool, D> {
  const bool* p;
  D d;
  HWY_INLINE Input(D tag, const void* from) : p(static_cast<const bool*>(from)), d(tag) {}
  HWY_INLINE hn::Mask<D> at(int64_t i) const { return load_mask(d, p + i); }
  HWY_INLINE void fetch(int64_t i) const {
    hwy::Prefetch(reinterpret_cast<const char*>(p + i) + kAhead);
  }
  static constexpr bool kWhole = false;
  static constexpr size_t kSize = 1;
};

template <class D, class V, class R>
HWY_INLINE void write(D d, V v, R* p, bool stream) {
  if constexpr (std::is_same_v<R, bool>)
    store_mask(d, v, p);
  else
    store_as<R>(d, v, p, stream);
}

// A row of F, computing in T, writing R, reading In...; bits of Mask: one value for all.
template <unsigned Mask, class F, class T, class R, class... In>
struct Row {
  using D = hn::ScalableTag<T>;
  static constexpr int64_t kLanes = int64_t(hn::MaxLanes(D()));

  // f(the functor, the inputs).
  template <class Use>
  static HWY_INLINE auto with(const void* functor, const void* const* in, Use use) {
    const F f = *static_cast<const F*>(functor);  // which no store changes
    return [&]<size_t... I>(std::index_sequence<I...>) HWY_ATTR {
      return use(f, Input<(Mask >> I & 1) != 0, In, D>(D(), in[I])...);
    }
    (std::index_sequence_for<In...>());
  }

  // The results of one vector, of the elements from `at` on. Ends of rows come here, so that a long
  // function stands here once and in the loop once.
  static void vector(const void* functor, R* to, const void* const* in, int64_t at) {
    with(functor, in, [&](const F& f, const auto&... x) HWY_ATTR {
      write(D(), f(D(), x.at(at)...), to, false);
    });
  }

  // Whole vectors, past the caches or not: what a long function's loop decides each time, a short
  // one's is made twice by the compiler.
  static void run(const void* functor, void* to, const void* const* in, int64_t n, bool stream) {
    R* out = static_cast<R*>(to);
    if (n < kLanes) return short_row(kShape, functor, to, in, n);
    if constexpr (std::is_same_v<R, bool>) return masks(functor, out, in, n, stream);
    const auto begin = reinterpret_cast<uintptr_t>(out);
    stream = stream && begin % sizeof(R) == 0;
    int64_t i = stream ? int64_t((0 - begin) / sizeof(R) % size_t(kLanes)) : 0;
    if (i) vector(functor, out, in, 0);
    // The last vector overlaps the one before it: computed first, since out may be an input.
    HWY_ALIGN R last[kLanes];
    const bool ragged = (n - i) % kLanes != 0;
    if (ragged) vector(functor, last, in, n - kLanes);
    with(functor, in, [&](const F& f, const auto&... x) HWY_ATTR {
      for (; i + kLanes <= n; i += kLanes) {
        if (stream) (x.fetch(i), ...);
        write(D(), f(D(), x.at(i)...), out + i, stream);
      }
    });
    if (ragged) std::memcpy(static_cast<void*>(out + n - kLanes), last, sizeof last);
  }

 private:
  static constexpr RowShape shape() {
    constexpr bool repeat = requires { F::kRepeat; };
    RowShape s = {&run, kLanes, sizeof...(In), sizeof(R), {sizeof(In)...}, repeat};
    for (size_t k = 0; k < sizeof...(In); ++k)
      if (Mask >> k & 1) s.in[k] = 0;
    return s;
  }
  static constexpr RowShape kShape = shape();

  // Bools, as vectors of bytes as far as those go. Reads are far more than stores here, and run
  // best on the processor's own prefetching.
  static HWY_INLINE void masks(const void* functor, bool* out, const void* const* in, int64_t n,
                               bool stream) {
    const hn::ScalableTag<uint8_t> d8;
    const auto bytes = int64_t(hn::Lanes(d8));
    uint8_t* to = reinterpret_cast<uint8_t*>(out);
    stream = stream && n >= 2 * bytes;
    int64_t i = 0;
    with(functor, in, [&](const F& f, const auto&... x) HWY_ATTR {
      // The first vector may reach into the second, from where on they lie in lines of the cache.
      int64_t step = stream ? int64_t((0 - reinterpret_cast<uintptr_t>(out)) % size_t(bytes)) : 0;
      if (step == 0) step = bytes;
      for (; i + bytes <= n; i += step, step = bytes) {
        const auto v = mask_bytes(
            D(), [&](size_t k) HWY_ATTR { return f(D(), x.at(i + int64_t(k) * kLanes)...); });
        if (stream && step == bytes)
          hn::Stream(v, d8, to + i);
        else
          hn::StoreU(v, d8, to + i);
      }
    });
    for (; i < n; i += kLanes) {
      i = std::min(i, n - kLanes);
      vector(functor, out + i, in, i);
    }
  }
};

template <class F, class T, class R, class... In>
constexpr LoopSet loop_set(DLDataType storage) {
  constexpr size_t n = sizeof...(In);
  LoopSet s = {storage, {&Row<0, F, T, R, In...>::run}};
  if constexpr (n == 2 || (n == 3 && requires { F::kFirstWhole; }))
    s.by_mask[1] = &Row<1, F, T, R, In...>::run;
  if constexpr (n > 1) s.by_mask[2] = &Row<2, F, T, R, In...>::run;
  if constexpr (n == 3)
    s.by_mask[4] = &Row<4, F, T, R, In...>::run, s.by_mask[6] = &Row<6, F, T, R, In...>::run;
  return s;
}

enum class Form { same, to_bool, choose };  // choose: the first of the inputs is a condition
template <class F, class T, class S, int N, Form K>
constexpr LoopSet loops_over() {
  constexpr DLDataType storage = dtype_of<S>;
  if constexpr (K == Form::choose)
    return loop_set<F, T, S, bool, S, S>(storage);
  else if constexpr (K == Form::to_bool)
    return loop_set<F, T, bool, S, S>(storage);
  else if constexpr (N == 1)
    return loop_set<F, T, S, S>(storage);
  else if constexpr (N == 2)
    return loop_set<F, T, S, S, S>(storage);
  else
    return loop_set<F, T, S, S, S, S>(storage);
}

// All loops of a functor that computes in T; floats are kept in three dtypes. Halves that take an
// element after the other to convert are converted apart.
template <class F, class T, int N, Form K = Form::same>
constexpr Loops loops_of() {
  Loops l = {&typed<T>, N, K == Form::to_bool, K == Form::choose, 1, {}};
  l.sets[0] = loops_over<F, T, T, N, K>();
  if constexpr (std::is_same_v<T, float>) {
    l.sets[l.nsets++] = loops_over<F, T, BFloat16, N, K>();
    if constexpr (kHalfUnit) l.sets[l.nsets++] = loops_over<F, T, Half, N, K>();
  }
  return l;
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

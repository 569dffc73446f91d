// plugins/vector/convert_rows.cpp: vector casts of contiguous rows between the dtypes that programs
// cast between; they give what kit::cast gives. AJ_FEW_CASTS: between floating-point ones alone.
#include "convert_rows.hpp"

#include "rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/convert_rows.cpp"
#include "simd.hpp"
// the functions of each set
#include "rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

template <class From, class D>
HWY_INLINE hn::Vec<D> read(D d, const From* p) {
  using T = hn::TFromD<D>;
  const hn::Rebind<int32_t, D> d32;
  if constexpr (std::is_integral_v<T>) {
    return hn::IfThenElseZero(load_mask(d, p), hn::Set(d, 1));
  } else if constexpr (std::is_same_v<T, double> && !std::is_same_v<From, double>) {
    const hn::Rebind<float, D> df;
    if constexpr (std::is_same_v<From, int64_t>)
      return hn::ConvertTo(d, hn::LoadU(hn::RebindToSigned<D>(), p));
    else if constexpr (std::is_same_v<From, int32_t>)
      return hn::PromoteTo(d, hn::LoadU(d32, p));
    else
      return hn::PromoteTo(d, read(df, p));
  } else if constexpr (std::is_same_v<From, bool>) {
    return hn::IfThenElseZero(load_mask(d, p), hn::Set(d, 1));
  } else if constexpr (std::is_same_v<From, int32_t>) {
    return hn::ConvertTo(d, hn::LoadU(d32, p));
  } else if constexpr (sizeof(From) == 1) {
    using Byte = std::conditional_t<std::is_same_v<From, int8_t>, int8_t, uint8_t>;
    const hn::Rebind<Byte, D> d8;
    return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, reinterpret_cast<const Byte*>(p))));
  } else {
    return load_as<From>(d, p);
  }
}

// What does not fit becomes the smallest integer.
template <class I, class D>
HWY_INLINE hn::Vec<D> in_range(D d, hn::Vec<D> v) {
  auto low = hn::Set(d, hn::TFromD<D>(std::numeric_limits<I>::min()));
  return hn::IfThenElse(hn::And(hn::Ge(v, low), hn::Lt(v, hn::Neg(low))), v, low);
}

template <class To, class D>
HWY_INLINE void give(D d, hn::Vec<D> v, To* p, bool stream) {
  using T = hn::TFromD<D>;
  const hn::Rebind<int32_t, D> d32;
  if constexpr (std::is_integral_v<T>) {
    put(v, d, p, stream);
  } else if constexpr (std::is_same_v<To, bool>) {
    store_mask(d, hn::Not(hn::Eq(v, hn::Zero(d))), p);  // a NaN is true
  } else if constexpr (std::is_same_v<To, int64_t>) {
    put(hn::ConvertTo(hn::RebindToSigned<D>(), in_range<int64_t>(d, v)), hn::RebindToSigned<D>(), p,
        stream);
  } else if constexpr (std::is_integral_v<To>) {
    hn::Vec<decltype(d32)> whole;
    if constexpr (std::is_same_v<T, double>)
      whole = hn::DemoteTo(d32, in_range<int32_t>(d, v));
    else
      whole = hn::ConvertTo(d32, in_range<int32_t>(d, v));
    if constexpr (std::is_same_v<To, uint8_t>) {
      const hn::Rebind<uint8_t, D> d8;
      hn::StoreU(hn::DemoteTo(d8, hn::And(whole, hn::Set(d32, 255))), d8, p);
    } else {
      put(whole, d32, p, stream);
    }
  } else if constexpr (std::is_same_v<T, double> && !std::is_same_v<To, double>) {
    const hn::Rebind<float, D> df;
    store_as<To>(df, hn::DemoteTo(df, v), p, stream);
  } else {
    store_as<To>(d, v, p, stream);
  }
}

// By a cast that stores plainly.
static void stream_casts(CastRow cast, int64_t to_size, int64_t from_size, void* to,
                         const void* from, int64_t n) {
  const char* in = static_cast<const char*>(from);
  auto row = [](const void* by, void* out, const void* const* in, int64_t m) {
    (*static_cast<const CastRow*>(by))(out, in[0], m, false);
  };
  stream_blocks({row, &cast, to_size, 1, {from_size}}, static_cast<char*>(to), &in, n);
}

// Through vectors of T; neither end overlaps the other. The ends of a row come to vector().
template <class To, class From, class T>
struct CastVectors {
  using D = hn::ScalableTag<T>;
  static constexpr int64_t kLanes = int64_t(hn::MaxLanes(D()));
  static void vector(To* to, const From* from) { give(D(), read(D(), from), to, false); }
  static void run(void* to, const void* from, int64_t n, bool stream) {
    const From* in = static_cast<const From*>(from);
    To* out = static_cast<To*>(to);
    if (n < kLanes) {
      for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(element<From>(in + i));
      return;
    }
    if (stream && sizeof(To) == 1) return stream_casts(&run, sizeof(To), sizeof(From), to, from, n);
    int64_t i = 0;
    if (stream) i = int64_t((0 - reinterpret_cast<uintptr_t>(out)) / sizeof(To) % size_t(kLanes));
    if (i) vector(out, in);
    for (; i + kLanes <= n; i += kLanes) {
      if (stream) hwy::Prefetch(reinterpret_cast<const char*>(in + i) + kAhead);
      give(D(), read(D(), in + i), out + i, stream);
    }
    if (i < n) vector(out + n - kLanes, in + n - kLanes);
  }
};

// What has no code of its own is left to the compiler, which vectorizes bytes and bools not.
template <class To, class From>
HWY_INLINE void plain_cast(To* HWY_RESTRICT to, const From* HWY_RESTRICT from, int64_t n) {
  if constexpr (std::is_same_v<From, bool>) {
    const uint8_t* HWY_RESTRICT bytes = reinterpret_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = To(bytes[i] != 0);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = cast<To>(from[i]);
  }
}

template <class To, class From>
void plain_cast_row(void* to, const void* from, int64_t n, bool stream) {
  if (stream) return stream_casts(&plain_cast_row<To, From>, sizeof(To), sizeof(From), to, from, n);
  plain_cast(static_cast<To*>(to), static_cast<const From*>(from), n);
}

// T, or where asked for the unsigned number of its size.
template <class T, bool kAsked>
struct Unsigned {
  using type = T;
};
template <class T>
requires(is_integer<T> && !std::is_same_v<T, bool>) struct Unsigned<T, true> {
  using type = std::make_unsigned_t<T>;
};

// What lies behind the last element is not read.
template <class T>
void every_other_of(T* HWY_RESTRICT to, const T* HWY_RESTRICT from, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = int64_t(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + kLanes < n; i += kLanes) {
    hn::Vec<decltype(d)> even, odd;
    hn::LoadInterleaved2(d, from + 2 * i, even, odd);
    hn::StoreU(even, d, to + i);
  }
  for (; i < n; ++i) to[i] = from[2 * i];
}
static void every_other(size_t size, void* to, const void* from, int64_t n) {
  if (size == 4)
    every_other_of(static_cast<uint32_t*>(to), static_cast<const uint32_t*>(from), n);
  else
    every_other_of(static_cast<uint64_t*>(to), static_cast<const uint64_t*>(from), n);
}

struct CastTable {
  CastRow row[15][15] = {};  // to, from
  template <class To, class From, class T>
  constexpr void set() {
    row[DTypeOf<To>::index][DTypeOf<From>::index] = &CastVectors<To, From, T>::run;
  }
  template <class From>
  constexpr void to_floats() {
    if constexpr (!std::is_same_v<From, float>) set<float, From, float>();
    if constexpr (!std::is_same_v<From, Half>) set<Half, From, float>();
    if constexpr (!std::is_same_v<From, BFloat16>) set<BFloat16, From, float>();
    set<double, From, double>();
  }
  template <class From>
  constexpr void to_integers() {
    set<uint8_t, From, float>();
    set<bool, From, float>();
    set<int32_t, From, float>();
    set<int64_t, From, double>();
  }
  // Of a whole number the low bits are taken, with whatever sign; its sign counts where it is
  // widened.
  template <class To, class From>
  constexpr void set_plain() {
    if constexpr (!std::is_same_v<To, From>) {
      constexpr bool bits = is_integer<From> && is_integer<To> && sizeof(From) >= sizeof(To);
      constexpr bool test = is_integer<From> && std::is_same_v<To, bool>;
      using Read = typename Unsigned<From, bits || test>::type;
      using Written = typename Unsigned<To, is_integer<From>>::type;
      row[DTypeOf<To>::index][DTypeOf<From>::index] = &plain_cast_row<Written, Read>;
    }
  }
  template <class... From>
  constexpr void plain(Types<From...>) {
    (plain_from<From>(), ...);
  }
  template <class From>
  constexpr void plain_from() {
    set_plain<bool, From>();
    set_plain<uint8_t, From>();
    set_plain<int8_t, From>();
    set_plain<int16_t, From>();
    set_plain<int32_t, From>();
    set_plain<int64_t, From>();
    set_plain<float, From>();
    set_plain<double, From>();
    set_plain<Half, From>();
    set_plain<BFloat16, From>();
  }
  constexpr CastTable() {
#if !defined(AJ_FEW_CASTS)
    plain(reals_bool());
    plain(halves());
    to_integers<float>();
    to_integers<Half>();
    to_integers<BFloat16>();
    to_floats<bool>();
    set<int32_t, bool, int32_t>();
    set<int64_t, bool, int64_t>();
    to_floats<uint8_t>();
    to_floats<int8_t>();
    to_floats<int32_t>();
    set<double, int64_t, double>();
    set<int32_t, double, double>();
    set<int64_t, double, double>();
    set<bool, double, double>();
#endif
    to_floats<float>();
    to_floats<Half>();
    to_floats<BFloat16>();
    set<float, double, double>();
    set<Half, double, double>();
    set<BFloat16, double, double>();
  }
};
constexpr CastTable casts;
CastRow cast_at(int to, int from) { return casts.row[to][from]; }
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
void every_other(size_t size, void* to, const void* from, int64_t n) {
  AJ_SIMD(every_other)(size, to, from, n);
}
CastRow find_cast_row(DLDataType to, DLDataType from) {
  auto index = [](DLDataType d) {
    return visit<stored>(d, []<class T>() { return DTypeOf<T>::index; });
  };
  return AJ_SIMD(cast_at)(index(to), index(from));
}
}  // namespace adjoin::cpu
#endif

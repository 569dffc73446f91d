// adjoin/kit/dtype.hpp: element types in C++ and the one visitor from a run-time dtype to them.
#ifndef ADJOIN_KIT_DTYPE_HPP
#define ADJOIN_KIT_DTYPE_HPP
#include <adjoin/kit/error.hpp>
#include <bit>
#include <cstdint>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)
#define AJ_HD __host__ __device__
#else
#define AJ_HD
#endif

namespace adjoin {
namespace AJ_HIDDEN kit {

// Storage types: arithmetic is done in float, with one rounding (to nearest, ties to even) on the
// way back.
struct Half {
  uint16_t bits;
  Half() = default;
  AJ_HD Half(float f) : bits(from_float(f)) {}
  AJ_HD operator float() const { return to_float(bits); }

  AJ_HD static uint16_t from_float(float f) {
#if defined(__F16C__) && !defined(__CUDA_ARCH__)
    return uint16_t(_cvtss_sh(f, 0));
#else
    uint32_t u = std::bit_cast<uint32_t>(f), a = u & 0x7fffffffu;
    uint32_t normal = (a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13;
    // Below 2^-14: adding 0.5 puts the last bit of a half (2^-24) at the last bit of a float, and
    // the adder rounds.
    uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;
    uint32_t h = a < 0x38800000u ? tiny : normal;
    h = a >= 0x477ff000u ? 0x7c00u : h;
    h = a > 0x7f800000u ? 0x7e00u : h;
    return uint16_t(h | ((u >> 16) & 0x8000u));
#endif
  }
  AJ_HD static float to_float(uint16_t h) {
#if defined(__F16C__) && !defined(__CUDA_ARCH__)
    return _cvtsh_ss(h);
#else
    uint32_t sign = uint32_t(h & 0x8000u) << 16, rest = uint32_t(h & 0x7fffu) << 13;
    float scaled = std::bit_cast<float>(rest) * 0x1p112f;  // also right for subnormal halves
    uint32_t u = rest >= 0x0f800000u ? (rest | 0x7f800000u) : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(u | sign);
#endif
  }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  AJ_HD BFloat16(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    bits = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
  AJ_HD operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

// Arithmetic without the recovery of infinities that std::complex does: that is what PyTorch
// computes, and it vectorizes.
template <class T>
struct Complex {
  using value_type = T;
  T re, im;
  Complex() = default;
  AJ_HD constexpr Complex(T r, T i = T(0)) : re(r), im(i) {}
  template <class U>
  AJ_HD explicit constexpr Complex(Complex<U> z) : re(T(z.re)), im(T(z.im)) {}
  AJ_HD friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  AJ_HD friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  AJ_HD friend Complex operator-(Complex a) { return {-a.re, -a.im}; }
  AJ_HD friend Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  AJ_HD friend Complex operator/(
      Complex a, Complex b) {  // scaled by the larger part, so that squares don't overflow
    bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
    if (wide && b.re == 0 && b.im == 0) return {a.re / b.re, a.im / b.re};
    T r = wide ? b.im / b.re : b.re / b.im, d = wide ? b.re + b.im * r : b.re * r + b.im;
    return wide ? Complex((a.re + a.im * r) / d, (a.im - a.re * r) / d)
                : Complex((a.re * r + a.im) / d, (a.im * r - a.re) / d);
  }
  AJ_HD Complex& operator+=(Complex b) { return *this = *this + b; }
  AJ_HD Complex& operator*=(Complex b) { return *this = *this * b; }
  AJ_HD friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
};
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<Complex<T>> = true;
template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || is_half<T>;
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T>;  // bool too

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

// What arithmetic on T is done in (halves in float32), and what its sums are kept in.
template <class T>
using Math = std::conditional_t<is_half<T>, float, T>;
template <class T>
using Sum = std::conditional_t<is_integer<T>, int64_t, Math<T>>;

template <class T>
struct DTypeOf;
#define AJ_DTYPE_ROW_(T, code_, bits_, index_)             \
  template <>                                              \
  struct DTypeOf<T> {                                      \
    static constexpr DLDataType value = {code_, bits_, 1}; \
    static constexpr int index = index_;                   \
  };
AJ_DTYPE_ROW_(bool, kDLBool, 8, AJ_DT_BOOL)
AJ_DTYPE_ROW_(uint8_t, kDLUInt, 8, AJ_DT_UINT8)
AJ_DTYPE_ROW_(int8_t, kDLInt, 8, AJ_DT_INT8)
AJ_DTYPE_ROW_(int16_t, kDLInt, 16, AJ_DT_INT16)
AJ_DTYPE_ROW_(int32_t, kDLInt, 32, AJ_DT_INT32)
AJ_DTYPE_ROW_(int64_t, kDLInt, 64, AJ_DT_INT64)
AJ_DTYPE_ROW_(Half, kDLFloat, 16, AJ_DT_FLOAT16)
AJ_DTYPE_ROW_(BFloat16, kDLBfloat, 16, AJ_DT_BFLOAT16)
AJ_DTYPE_ROW_(float, kDLFloat, 32, AJ_DT_FLOAT32)
AJ_DTYPE_ROW_(double, kDLFloat, 64, AJ_DT_FLOAT64)
AJ_DTYPE_ROW_(Complex64, kDLComplex, 64, AJ_DT_COMPLEX64)
AJ_DTYPE_ROW_(Complex128, kDLComplex, 128, AJ_DT_COMPLEX128)
AJ_DTYPE_ROW_(uint16_t, kDLUInt, 16, AJ_DT_UINT16)
AJ_DTYPE_ROW_(uint32_t, kDLUInt, 32, AJ_DT_UINT32)
AJ_DTYPE_ROW_(uint64_t, kDLUInt, 64, AJ_DT_UINT64)
#undef AJ_DTYPE_ROW_
template <class T>
inline constexpr DLDataType dtype_of = DTypeOf<T>::value;

inline bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
inline int64_t bytes_of(DLDataType d) { return (int64_t(d.bits) * d.lanes + 7) / 8; }

// A set of types: what a kernel is compiled for.
template <class... T>
struct Types {
  template <class U>
  static constexpr bool has = (std::is_same_v<U, T> || ...);
  static constexpr uint64_t own_mask = ((uint64_t(1) << DTypeOf<T>::index) | ... | 0);
  // A kernel that casts serves halves where it computes in float.
  static constexpr uint64_t mask =
      own_mask |
      (has<float> ? (uint64_t(1) << AJ_DT_FLOAT16) | (uint64_t(1) << AJ_DT_BFLOAT16) : 0);
  template <class... U>
  static Types<T..., U...> with(Types<U...>);
};
template <class A, class B>
using Join = decltype(A::with(B{}));

using integral = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using bool_only = Types<bool>;
using integral_bool = Join<integral, bool_only>;
using floating = Types<float, double>;
using complexes = Types<Complex64, Complex128>;
using halves = Types<Half, BFloat16>;
using reals = Join<integral, floating>;
using reals_bool = Join<reals, bool_only>;
using floating_complex = Join<floating, complexes>;
using numeric = Join<reals, complexes>;
using all_types = Join<numeric, bool_only>;
using stored = Join<all_types, halves>;  // everything that can lie in memory
using stored_floating = Join<floating, halves>;
using stored_numeric = Join<Join<numeric, halves>, bool_only>;

// What a switch over dtypes says of one that has no case; `known` has AJ_DT_ bits.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_all_but(uint64_t known, DLDataType d) {
  std::string have;
  for (unsigned i = 0; i < 15; ++i) {
    constexpr DLDataType all[] = {dtype_of<bool>,     dtype_of<uint8_t>,   dtype_of<int8_t>,
                                  dtype_of<int16_t>,  dtype_of<int32_t>,   dtype_of<int64_t>,
                                  dtype_of<Half>,     dtype_of<BFloat16>,  dtype_of<float>,
                                  dtype_of<double>,   dtype_of<Complex64>, dtype_of<Complex128>,
                                  dtype_of<uint16_t>, dtype_of<uint32_t>,  dtype_of<uint64_t>};
    if (!(known >> i & 1)) continue;
    if (!have.empty()) have += ", ";
    put(have, all[i]);
  }
  raise(AJ_UNIMPLEMENTED, "no kernel for ", d, "; it has ", have, "; cast with .to()");
}
template <class Set>
[[noreturn]] inline void refuse(DLDataType d) {
  refuse_all_but(Set::own_mask, d);
}

template <class Set, class T, class F>
decltype(auto) visit_one(DLDataType d, F& f) {
  if constexpr (Set::template has<T>) {
    return f.template operator()<T>();
  } else {
    refuse<Set>(d);
    return f.template operator()<typename decltype([]<class U, class... R>(Types<U, R...>) {
      return std::type_identity<U>{};
    }(Set{}))::type>();
  }
}

// Calls f.operator()<T>() for the T of d: the only switch over dtypes.
template <class Set, class F>
decltype(auto) visit(DLDataType d, F&& f) {
  switch (d.lanes == 1 ? (d.code << 8 | d.bits) : -1) {
    case kDLBool << 8 | 8:
      return visit_one<Set, bool>(d, f);
    case kDLUInt << 8 | 8:
      return visit_one<Set, uint8_t>(d, f);
    case kDLInt << 8 | 8:
      return visit_one<Set, int8_t>(d, f);
    case kDLInt << 8 | 16:
      return visit_one<Set, int16_t>(d, f);
    case kDLInt << 8 | 32:
      return visit_one<Set, int32_t>(d, f);
    case kDLInt << 8 | 64:
      return visit_one<Set, int64_t>(d, f);
    case kDLFloat << 8 | 16:
      return visit_one<Set, Half>(d, f);
    case kDLBfloat << 8 | 16:
      return visit_one<Set, BFloat16>(d, f);
    case kDLFloat << 8 | 32:
      return visit_one<Set, float>(d, f);
    case kDLFloat << 8 | 64:
      return visit_one<Set, double>(d, f);
    case kDLComplex << 8 | 64:
      return visit_one<Set, Complex64>(d, f);
    case kDLComplex << 8 | 128:
      return visit_one<Set, Complex128>(d, f);
    case kDLUInt << 8 | 16:
      return visit_one<Set, uint16_t>(d, f);
    case kDLUInt << 8 | 32:
      return visit_one<Set, uint32_t>(d, f);
    case kDLUInt << 8 | 64:
      return visit_one<Set, uint64_t>(d, f);
    default:
      return visit_one<Set, void>(d, f);
  }
}

// The same for T as what arithmetic on elements of d is done in: halves in float32, so that a
// kernel that loads and stores whatever there is is not compiled for each of them.
template <class Set>
struct WithHalves : Set {
  static constexpr uint64_t own_mask = Set::mask;
};
template <class Set, class F>
decltype(auto) visit_math(DLDataType d, F&& f) {
  const bool half = same(d, dtype_of<Half>) || same(d, dtype_of<BFloat16>);
  return visit<WithHalves<Set>>(half ? dtype_of<float> : d, f);
}

// For kernels that only move elements: by size, so that they are compiled five times and not
// fifteen.
struct Bytes16 {
  uint64_t words[2];
};
template <class F>
decltype(auto) visit_size(DLDataType d, F&& f) {
  switch (bytes_of(d)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
    default:
      raise(AJ_UNIMPLEMENTED, "no kernel for elements of ", bytes_of(d), " bytes (", d, ")");
  }
}

}  // namespace kit
}  // namespace adjoin
#endif

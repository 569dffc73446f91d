// adjoin/kit/convert.hpp: one element, or a row of them, from any dtype to any other.
//
// The rows are 15 x 15 loops. A library of many files compiles them once: it declares Convert<T>
// extern in its files and instantiates it in one of them.
#ifndef ADJOIN_KIT_CONVERT_HPP
#define ADJOIN_KIT_CONVERT_HPP
#include <adjoin/kit/dtype.hpp>
#include <limits>

namespace adjoin {
namespace AJ_HIDDEN kit {

// A float outside the integer's range, or NaN, becomes the smallest int32 (int64), as the
// processor's own conversion gives; narrower integers are the low bits of that.
template <class To, class From>
AJ_HD inline To cast(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_half<From>) {
    return cast<To>(float(x));
  } else if constexpr (is_complex<To>) {
    if constexpr (is_complex<From>)
      return To(x);
    else
      return To(cast<Real<To>>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (is_complex<From>)
      return x.re != 0 || x.im != 0;
    else
      return x != From(0);
  } else if constexpr (is_complex<From>) {
    return cast<To>(x.re);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (x >= From(9223372036854775808.0) && x < From(18446744073709551616.0))
        return uint64_t(x - From(9223372036854775808.0)) + (uint64_t(1) << 63);
    }
    using Through =
        std::conditional_t<sizeof(To) < 4 || std::is_same_v<To, int32_t>, int32_t, int64_t>;
    constexpr Through low = std::numeric_limits<Through>::min();
    return To(x >= From(low) && x < -From(low) ? Through(x) : low);
  } else if constexpr (is_half<To>) {
    return To(float(x));
  } else {
    return To(x);
  }
}

// An element as it lies in memory. Bools may be a view of bytes: every byte but 0 is true.
template <class T>
AJ_HD inline T element(const void* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *static_cast<const uint8_t*>(p) != 0;
  else
    return *static_cast<const T*>(p);
}

// A number of a schema as T.
template <class T>
T number(const aj_value& v) {
  switch (v.tag) {
    case AJ_BOOL:
    case AJ_INT:
      return cast<T>(v.v.i);
    case AJ_FLOAT:
      return cast<T>(v.v.f);
    case AJ_COMPLEX:
      return cast<T>(Complex128(v.v.c128[0], v.v.c128[1]));
    default:
      raise(AJ_WRONG_TYPE, "a number is wanted, the value has tag ", v.tag);
  }
}

// Strides in bytes.
template <class T>
struct Convert {
  static void load(void* into, const char* from, DLDataType dtype, int64_t stride, int64_t n) {
    T* to = static_cast<T*>(into);
    visit<stored>(dtype, [&]<class From>() {
      if (stride == int64_t(sizeof(From))) {
        const From* p = reinterpret_cast<const From*>(from);
        if constexpr (std::is_same_v<From, T> && !std::is_same_v<T, bool>) {
          std::memcpy(to, p, n * sizeof(T));
        } else {
          for (int64_t i = 0; i < n; ++i) to[i] = cast<T>(element<From>(p + i));
        }
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = cast<T>(element<From>(from + i * stride));
      }
    });
  }
  static void store(char* to, DLDataType dtype, int64_t stride, const void* out_of, int64_t n) {
    const T* from = static_cast<const T*>(out_of);
    visit<stored>(dtype, [&]<class To>() {
      if (stride == int64_t(sizeof(To))) {
        To* p = reinterpret_cast<To*>(to);
        if constexpr (std::is_same_v<To, T>) {
          std::memcpy(p, from, n * sizeof(T));
        } else {
          for (int64_t i = 0; i < n; ++i) p[i] = cast<To>(from[i]);
        }
      } else {
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(to + i * stride) = cast<To>(from[i]);
      }
    });
  }
};

// T as data, for drivers that are compiled once for all types.
struct Typed {
  DLDataType dtype;
  uint32_t size;
  void (*load)(void* to, const char* from, DLDataType dtype, int64_t stride, int64_t n);
  void (*store)(char* to, DLDataType dtype, int64_t stride, const void* from, int64_t n);
};
template <class T>
inline constexpr Typed typed = {dtype_of<T>, sizeof(T), Convert<T>::load, Convert<T>::store};
template <class Set = stored>  // a template, so that a library may say after this where Convert is
const Typed& typed_of(DLDataType d) {
  return *visit<Set>(d, []<class T>() { return &typed<T>; });
}

}  // namespace kit
}  // namespace adjoin
#endif

// plugins/vector/simd.hpp: vector code compiled for several instruction sets, one of them chosen
// when the process runs.
//
// A file of vector code has, after its other headers,
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "name_of_this_file.cpp"
//   #include "simd.hpp"
// and puts its vector functions into
//   #if AJ_VECTORS
//   HWY_BEFORE_NAMESPACE();
//   namespace adjoin::cpu::HWY_NAMESPACE { ... }
//   HWY_AFTER_NAMESPACE();
//   #endif
// The compiler reads it once per instruction set. What is there once (tables, entry points) stands
// in `#if HWY_ONCE`, and calls a function f of the chosen set as AJ_SIMD(f)(...).
//
// Highway's own dispatch would need its library; its headers are enough for this.
#ifndef ADJOIN_PLUGINS_VECTOR_SIMD_HPP
#define ADJOIN_PLUGINS_VECTOR_SIMD_HPP
#include "isa.hpp"
// SSE4.2 is the least (init refuses an older processor), AVX2, AVX-512. Highway's emulated vectors
// are not wanted anywhere.
#define HWY_BROKEN_EMU128 1
// A build for the machine at hand leaves some out (-Dcpu_leave_out): what one would have served,
// the next lesser one serves. isa() is a set that is there.
#if !defined(ADJOIN_WITHOUT_BASE)
#define AJ_BASE N_SSE4
#define AJ_NO_BASE 0
#elif !defined(ADJOIN_WITHOUT_AVX2)
#define AJ_BASE N_AVX2
#define AJ_NO_BASE HWY_SSE4
#else
#define AJ_BASE N_AVX3
#define AJ_NO_BASE HWY_SSE4
#endif
#if defined(ADJOIN_WITHOUT_AVX2)
#define AJ_AVX2 AJ_BASE
#define AJ_NO_AVX2 HWY_AVX2
#else
#define AJ_AVX2 N_AVX2
#define AJ_NO_AVX2 0
#endif
#if defined(ADJOIN_WITHOUT_AVX512)
#define AJ_AVX512 AJ_AVX2
#define AJ_NO_AVX512 HWY_AVX3
#else
#define AJ_AVX512 N_AVX3
#define AJ_NO_AVX512 0
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | AJ_NO_BASE | AJ_NO_AVX2 | AJ_NO_AVX512)

// In a namespace of an instruction set: `table`, a constant of Code<float> and Code<double>, is
// what the set offers as `name`.
#define AJ_CODE(Code, name, table)                                    \
  static const Code<float>* name##_single() { return &table<float>; } \
  static const Code<double>* name##_twice() { return &table<double>; }
// And outside, for the function template name<T>() that a header declares: that of the chosen set.
#define AJ_CHOSEN_CODE(Code, name)                                \
  template <>                                                     \
  const Code<float>& name<float>() {                              \
    static const Code<float>& chosen = *AJ_SIMD(name##_single)(); \
    return chosen;                                                \
  }                                                               \
  template <>                                                     \
  const Code<double>& name<double>() {                            \
    static const Code<double>& chosen = *AJ_SIMD(name##_twice)(); \
    return chosen;                                                \
  }

#endif

#include <hwy/foreach_target.h>
// after it, once per target
#include <hwy/highway.h>

#undef AJ_VECTORS
#define AJ_VECTORS (HWY_TARGET != HWY_SCALAR)
#undef AJ_SIMD
#if HWY_STATIC_TARGET == HWY_SCALAR
#define AJ_SIMD(f)                                     \
  (::adjoin::cpu::isa() == Isa::avx512 ? &AJ_AVX512::f \
   : ::adjoin::cpu::isa() == Isa::avx2 ? &AJ_AVX2::f   \
                                       : &AJ_BASE::f)
#else  // compiled for one processor
#define AJ_SIMD(f) (&HWY_STATIC_DISPATCH(f))
#endif

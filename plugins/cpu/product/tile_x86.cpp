// plugins/cpu/product/tile_x86.cpp: the tiles of products for each instruction set of x86
// processors; which set serves is chosen when the first product is computed.
#include "tile.hpp"
#include "vector/isa.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

// What stands between the two is compiled for the set, templates included.
#define AJ_PRAGMA_(x) _Pragma(#x)
#if defined(__clang__)
#define AJ_BEGIN_(set) \
  AJ_PRAGMA_(clang attribute push(__attribute__((target(set))), apply_to = function))
#define AJ_END_ _Pragma("clang attribute pop")
#else
#define AJ_BEGIN_(set) _Pragma("GCC push_options") AJ_PRAGMA_(GCC target(set))
#define AJ_END_ _Pragma("GCC pop_options")
#endif

namespace adjoin::cpu {
namespace {

AJ_BEGIN_("avx2,fma,f16c")
namespace avx2 {
#include "few_rows_body.hpp"
#include "tile_avx2.hpp"
#include "tile_body.hpp"
using Float = Single<FloatIn>;
constexpr Tiles float32 = table_of<Float, 6, 2>(), float64 = table_of<Double, 6, 2>(),
                bfloat16 = table_of<Single<BrainIn>, 6, 2, Float>(),
                float16 = table_of<Single<HalfIn>, 6, 2, Float>();
}  // namespace avx2
AJ_END_

AJ_BEGIN_("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
namespace avx512 {
#include "few_rows_body.hpp"
#include "tile_avx512.hpp"
#include "tile_body.hpp"
using Float = Single<avx2::FloatIn>;
constexpr Tiles float32 = table_of<Float, 14, 6>(), float64 = table_of<Double, 14, 6>(),
                bfloat16 = table_of<Single<avx2::BrainIn>, 14, 6, Float>(),
                float16 = table_of<Single<avx2::HalfIn>, 14, 6, Float>();
}  // namespace avx512
AJ_END_

AJ_BEGIN_("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace pairs {
#include "few_rows_body.hpp"
#include "tile_bf16.hpp"
#include "tile_body.hpp"
constexpr Tiles bfloat16 = table_of<Brain, 14, 6>();
}  // namespace pairs
AJ_END_

bool has_pairs() {
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16") != 0;
  }();
  return has;
}

}  // namespace

const Tiles* tiles(DLDataType d) {
  if (isa() < Isa::avx2 || d.lanes != 1) return nullptr;
  bool wide = isa() == Isa::avx512;
  if (d.code == kDLFloat && d.bits == 32) return wide ? &avx512::float32 : &avx2::float32;
  if (d.code == kDLFloat && d.bits == 64) return wide ? &avx512::float64 : &avx2::float64;
  if (d.code == kDLFloat && d.bits == 16) return wide ? &avx512::float16 : &avx2::float16;
  if (d.code == kDLBfloat && d.bits == 16)
    return wide && has_pairs() ? &pairs::bfloat16 : wide ? &avx512::bfloat16 : &avx2::bfloat16;
  return nullptr;
}

}  // namespace adjoin::cpu
#else
namespace adjoin::cpu {
const Tiles* tiles(DLDataType) { return nullptr; }
}  // namespace adjoin::cpu
#endif

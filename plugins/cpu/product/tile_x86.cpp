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

struct Set {
  const Tiles *float32, *float64, *bfloat16, *float16;
};

AJ_BEGIN_("avx2,fma,f16c")
namespace avx2 {
#include "few_rows_body.hpp"
#include "tile_avx2.hpp"
#include "tile_body.hpp"
using Float = Single<FloatIn>;
#if !defined(ADJOIN_WITHOUT_AVX2)
constexpr Tiles float32 = table_of<Float, 6, 2>(), float64 = table_of<Double, 6, 2>(),
                bfloat16 = table_of<Single<BrainIn>, 6, 2, Float>(),
                float16 = table_of<Single<HalfIn>, 6, 2, Float>();
constexpr Set tiles = {&float32, &float64, &bfloat16, &float16};
#endif
}  // namespace avx2
AJ_END_

#if !defined(ADJOIN_WITHOUT_AVX512)
AJ_BEGIN_("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
namespace avx512 {
#include "few_rows_body.hpp"
#include "tile_avx512.hpp"
#include "tile_body.hpp"
using Float = Single<avx2::FloatIn>;
constexpr Tiles float32 = table_of<Float, 14, 6>(), float64 = table_of<Double, 14, 6>(),
                bfloat16 = table_of<Single<avx2::BrainIn>, 14, 6, Float>(),
                float16 = table_of<Single<avx2::HalfIn>, 14, 6, Float>();
constexpr Set tiles = {&float32, &float64, &bfloat16, &float16};
}  // namespace avx512
AJ_END_

AJ_BEGIN_("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
namespace pairs {
#include "few_rows_body.hpp"
#include "tile_bf16.hpp"
#include "tile_body.hpp"
constexpr Tiles bfloat16 = table_of<Brain, 14, 6>();
constexpr Set tiles = {avx512::tiles.float32, avx512::tiles.float64, &bfloat16,
                       avx512::tiles.float16};
}  // namespace pairs
AJ_END_
#endif

// Those of the chosen set; NULL: it has none.
const Set* chosen() {
#if !defined(ADJOIN_WITHOUT_AVX512)
  __builtin_cpu_init();
  if (isa() == Isa::avx512)
    return __builtin_cpu_supports("avx512bf16") ? &pairs::tiles : &avx512::tiles;
#endif
#if !defined(ADJOIN_WITHOUT_AVX2)
  if (isa() == Isa::avx2) return &avx2::tiles;
#endif
  return nullptr;
}

}  // namespace

const Tiles* tiles(DLDataType d) {
  static const Set* const set = chosen();
  if (!set || d.lanes != 1) return nullptr;
  if (d.code == kDLFloat && d.bits == 32) return set->float32;
  if (d.code == kDLFloat && d.bits == 64) return set->float64;
  if (d.code == kDLFloat && d.bits == 16) return set->float16;
  if (d.code == kDLBfloat && d.bits == 16) return set->bfloat16;
  return nullptr;
}

}  // namespace adjoin::cpu
#else
namespace adjoin::cpu {
const Tiles* tiles(DLDataType) { return nullptr; }
}  // namespace adjoin::cpu
#endif

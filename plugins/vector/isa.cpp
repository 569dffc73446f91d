// plugins/vector/isa.cpp: asks the processor, once.
#include "isa.hpp"

#include <cstdlib>
#include <string_view>

namespace adjoin::cpu {
namespace {

Isa best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2")) return Isa::none;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    return Isa::base;
  for (bool has :
       {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512vl") != 0,
        __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512bw") != 0})
    if (!has) return Isa::avx2;
  return Isa::avx512;
#else
  return Isa::base;
#endif
}

// The best set of this build (-Dcpu_leave_out) that is no better than this one.
Isa built(Isa set) {
#if defined(ADJOIN_WITHOUT_AVX512)
  if (set == Isa::avx512) set = Isa::avx2;
#endif
#if defined(ADJOIN_WITHOUT_AVX2)
  if (set == Isa::avx2) set = Isa::base;
#endif
#if defined(ADJOIN_WITHOUT_BASE)
  if (set == Isa::base) set = Isa::none;
#endif
  return set;
}

Isa choose() {
  Isa have = best();
  const char* wanted = secure_getenv("ADJOIN_CPU_ISA");
  if (!wanted) return built(have);
  std::string_view w = wanted;
  Isa most = w == "base" ? Isa::base : w == "avx2" ? Isa::avx2 : Isa::avx512;
  return built(have < most ? have : most);
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace adjoin::cpu

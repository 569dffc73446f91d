// plugins/vector/isa.hpp: which instruction set vector code runs with.
#ifndef ADJOIN_PLUGINS_VECTOR_ISA_HPP
#define ADJOIN_PLUGINS_VECTOR_ISA_HPP

namespace adjoin::cpu {

enum class Isa { none, base, avx2, avx512 };  // none: older than what this build has

// The best that this processor and ADJOIN_CPU_ISA=base|avx2|avx512 allow.
Isa isa();

}  // namespace adjoin::cpu
#endif

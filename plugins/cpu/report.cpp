// plugins/cpu/report.cpp: the instruction set that vector code runs with, and the BLAS that was
// found.
#include "report.hpp"

#include <adjoin/kit/error.hpp>
#include <cstdlib>
#include <string>

#include "cpu/product/gemm.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::base:
      return "base (SSE4.2)";
    default:
      return "none";
  }
}

std::string vectors() {
  std::string text = std::string("vector kernels: ") + name_of(isa());
  if (const char* wish = secure_getenv("ADJOIN_CPU_ISA"))
    text += std::string(", by ADJOIN_CPU_ISA=") + wish;
  else if (isa() == Isa::base)
    text += ", all that this processor has; those for avx2 and avx512 are faster";
  return text + "\n";
}

std::string library() {
  const aj_blas* any = library_blas("");
  std::string path(kit::view_of(any->path(any->self)));
  if (!path.empty()) return "BLAS library: " + path + "\n";
  return "missing: a BLAS library (OpenBLAS, BLIS): our own products serve, which are slow for "
         "complex numbers and without AVX2; apt-get install libopenblas0-pthread\n";
}

aj_status* lines(void*, aj_object** out) {
  return kit::guard("cpu", [&] {
    std::string text = vectors() + library();
    kit::check(kit::core().string_new(kit::str(text), out));
  });
}

}  // namespace

const aj_report report = {sizeof(aj_report), 0, nullptr, lines};

}  // namespace adjoin::cpu

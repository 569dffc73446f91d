// adjoin/kit/kernel.hpp: a row of a kernel table.
#ifndef ADJOIN_KIT_KERNEL_HPP
#define ADJOIN_KIT_KERNEL_HPP
#include <adjoin/kit/env.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

struct Spec {  // how a kernel may be called: mask of AJ_DT_ bits (0: it checks by itself), flags
               // AJ_KERNEL_...
  aj_kernel_fn fn;
  uint64_t dtypes;
  uint32_t flags;
  int32_t (*can_run)(void*, const aj_call*) = nullptr;
};
struct Kernel {
  const char* op;
  Spec spec;
};

}  // namespace kit
}  // namespace adjoin
#endif

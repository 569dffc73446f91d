// adjoin/kit/kernel.hpp: a row of a kernel table, and tables that a plugin's init finds by itself.
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

// Clang puts constants of a kernel's source on the device as well, where the functions in them are
// not.
#ifdef __HIPCC__
#define AJ_TABLE
#else
#define AJ_TABLE const
#endif
#if defined(__has_attribute) && __has_attribute(retain)
#define AJ_RETAINED __attribute__((used, retain))
#else
#define AJ_RETAINED __attribute__((used))
#endif

// A table that announces itself; the name is the library's own, and the last row names no op:
//   AJ_KERNELS(sort_kernels) = {{"sort", custom<sort>}, {nullptr, {}}};
// A pointer to it stands in a section whose bounds the linker knows, so that no list of tables is
// kept and nothing runs before init. Registrar::kernels(key) takes them all.
#define AJ_KERNELS(name)                                                                   \
  extern AJ_TABLE ::adjoin::kit::Kernel name[];                                            \
  AJ_RETAINED __attribute__((                                                              \
      section("aj_kernels"))) static const ::adjoin::kit::Kernel* announced_##name = name; \
  AJ_TABLE ::adjoin::kit::Kernel name[]

// The section's bounds; both are null where no table announces itself.
extern const Kernel* announced_first[] __asm("__start_aj_kernels") __attribute__((weak));
extern const Kernel* announced_end[] __asm("__stop_aj_kernels") __attribute__((weak));

}  // namespace kit
}  // namespace adjoin
#endif

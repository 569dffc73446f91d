// plugins/gpu/fault.hpp: what kernels find wrong, as errors. A kernel notes the first finding and
// goes on with a harmless value, so the device stays usable; who waits next is told.
#ifndef ADJOIN_PLUGINS_GPU_FAULT_HPP
#define ADJOIN_PLUGINS_GPU_FAULT_HPP
#include <adjoin/kit/error.hpp>
#include AJ_GPU_TARGET  // named by who compiles: what the kernels are written over

namespace adjoin::gpu {

enum FaultCode : int { kNoFault, kIndexFault, kTargetFault, kDivisionFault };

inline aj_status* describe_fault(std::string_view op, const Fault& f) {
  std::string text = f.code == kIndexFault
                         ? kit::text(op, ": index ", f.a, " is out of range for dimension ", f.c,
                                     " with size ", f.b)
                         : kit::text(op, ": a target is out of range: classes are 0 to ", f.b - 1,
                                     ", it is ", f.a);
  return kit::core().status_new(AJ_OUT_OF_RANGE, kit::str("IndexError"), kit::str(text), __FILE__,
                                __LINE__);
}

}  // namespace adjoin::gpu
#endif

// plugins/gpu/fault.hpp: what kernels find wrong, as errors. A kernel notes the first finding and
// goes on with a harmless value, so the device stays usable; who waits next is told.
#ifndef ADJOIN_PLUGINS_GPU_FAULT_HPP
#define ADJOIN_PLUGINS_GPU_FAULT_HPP
#include <adjoin/kit/error.hpp>
#include AJ_GPU_TARGET  // named by who compiles: what the kernels are written over

namespace adjoin::gpu {

enum FaultCode : int { kNoFault, kIndexFault, kDivisionFault };

inline aj_status* describe_fault(std::string_view op, const Fault& f) {
  if (f.code == kDivisionFault)
    return kit::fail(AJ_INVALID_ARGUMENT, op,
                     ": integer division by zero; mask the zeros or divide as floats");
  return kit::make_status(AJ_OUT_OF_RANGE, "IndexError",
                          kit::text(op, ": index ", f.a, " is out of range for dimension ", f.c,
                                    " with size ", f.b));
}

}  // namespace adjoin::gpu
#endif

// plugins/gpu/fault.hpp: what kernels find wrong, as errors. A kernel notes the first finding and
// goes on with a harmless value, so the device stays usable; who waits next is told.
#ifndef ADJOIN_PLUGINS_GPU_FAULT_HPP
#define ADJOIN_PLUGINS_GPU_FAULT_HPP
#include <adjoin/kit/error.hpp>

namespace adjoin::gpu {

// In memory that the kernel writes and the host reads. The code comes last: who sees one sees all.
struct Fault {
  int code;
  int64_t a, b, c;
};
enum FaultCode : int { kNoFault, kIndexFault, kDivisionFault, kFaultBeingWritten = -1 };

// The target's: a place for what the launches of this call will find.
Fault* fault_of(const aj_call* call);

inline aj_status* describe_fault(std::string_view op, const Fault& f) {
  if (f.code == kDivisionFault)
    return kit::fail(AJ_INVALID_ARGUMENT, op,
                     ": integer division by zero; mask the zeros or divide as floats");
  return kit::make_status(
      AJ_OUT_OF_RANGE, "IndexError",
      kit::text(op, ": index ", f.a, " is out of range for dimension ", f.c, " with size ", f.b));
}

}  // namespace adjoin::gpu
#endif

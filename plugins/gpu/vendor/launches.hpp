// plugins/gpu/vendor/launches.hpp: how kernels are put into a stream, and what is remembered of it:
// which op and whose line it was, and what the kernel found wrong. Kernels run long after their
// call has returned.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_LAUNCHES_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_LAUNCHES_HPP
#include <adjoin/abi/op.h>

#include "status.hpp"

namespace adjoin::vendor {

constexpr size_t kMostArguments = 4096;  // bytes, of one kernel

// For error messages: the ops that were queued last on any device, the newest first, each
// with the user's line: "mm by a.py:3 in f, add by a.py:2 in f".
void note_launch(const aj_call* call);
std::string last_launches();

// What a kernel has found, as the status of an IndexError or the like; NULL if there is nothing. It
// is told once.
aj_status* take_fault(int32_t device);

// queue(stream) on the device of the call; raises what it returns.
template <class F>
void launch(const aj_call* call, F&& queue) {
  kit::check(ready());
  On here(call->device.device_id);
  auto result = here.failed() ? here.result() : Result(queue(static_cast<Stream>(call->stream)));
  if (result != kSuccess) kit::check(status_of(result, "launch"));
  note_launch(call);
}

}  // namespace adjoin::vendor
#endif

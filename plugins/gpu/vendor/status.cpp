// plugins/gpu/vendor/status.cpp: results of a vendor's runtime as statuses that say what it said.
#include "launches.hpp"
#include "libraries.hpp"

namespace adjoin::vendor {
namespace {

std::atomic<bool> was_used{false}, poisoned{false};

constexpr int kNoKernels = 209;  // none for this GPU's architecture

// The numbers are CUDA's; HIP uses the same ones for these.
int32_t code_of(int result) {
  switch (result) {
    case 1:    // invalid value
    case 101:  // invalid device
    case 400:  // invalid handle
      return AJ_INVALID_ARGUMENT;
    case 2:
      return AJ_OUT_OF_MEMORY;
    case 3:    // initialization
    case 35:   // the driver is too old
    case 46:   // devices are busy or unavailable
    case 100:  // no device
    case 999:  // unknown
      return AJ_UNAVAILABLE;
    case kNoKernels:
    case 801:
      return AJ_UNIMPLEMENTED;
    default:
      return AJ_INTERNAL;
  }
}

// After these the context is lost: no call on the device succeeds until the process ends. Others of
// their hundred are answers to a call: a launch that asks for too much (701, 703), peers (704, 705,
// 711), a context that is there already (708), pinned memory (712, 713).
bool loses_context(int result) {
  switch (result) {
    case 214:  // memory has an error that cannot be corrected
    case 220:  // so has a link
    case 700:  // an illegal address
    case 702:  // a kernel that took too long
    case 709:  // the context is destroyed
    case 710:  // an assertion
      return true;
    default:
      return result >= 714 && result <= 719;  // of the hardware, instructions, addresses; a failure
  }
}

}  // namespace

aj_status* status_of(Result result, std::string_view doing) {
  (void)runtime().GetLastError();
  const char *name = runtime().GetErrorName(result), *says = runtime().GetErrorString(result);
  std::string text =
      kit::text(kDevice, ": ", doing, ": ", kMaker, " says ", name ? name : "an unknown error",
                " (", int(result), "): ", says ? says : "nothing more");
  if (int(result) == kNoKernels)
    text += kit::text("; the plugin's kernels were compiled for ", AJ_GPU_ARCHS, why_no_image(),
                      ": build it with this GPU's architecture");
  if (loses_context(int(result)))
    text += kit::text(
        "; work that was queued before has failed and the device is lost to this "
        "process; the ops queued last are ",
        last_launches(), " (the newest first); start it again with ", kBlockingVariable,
        "=1 to see which call it was");
  return kit::make_status(code_of(int(result)), "", text);
}

// A question that answers with what was lost, and is no harm while a stream is captured.
void raise_if_lost(std::string_view doing) {
  size_t unused = 0, all = 0;
  Result result = runtime().MemGetInfo(&unused, &all);
  if (loses_context(int(result))) kit::check(status_of(result, doing));
}

aj_status* ready() {
  if (poisoned.load(std::memory_order_relaxed))
    return kit::fail(AJ_PRECONDITION, kDevice, ": this process was forked from one that had used ",
                     kMaker,
                     ", which does not survive a fork; use spawn: "
                     "multiprocessing.set_start_method('spawn')");
  if (was_used.load(std::memory_order_relaxed)) return nullptr;
  if (std::string why = missing(); !why.empty()) return kit::fail(AJ_UNAVAILABLE, why);
  mark_used();
  Result result = start();
  return result == kSuccess ? nullptr : status_of(result, "start");
}

bool used() { return was_used.load(std::memory_order_relaxed); }

void mark_used() { was_used.store(true, std::memory_order_relaxed); }

void poison_after_fork() {
  if (used()) poisoned.store(true, std::memory_order_relaxed);
}

}  // namespace adjoin::vendor

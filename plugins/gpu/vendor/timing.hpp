// plugins/gpu/vendor/timing.hpp: how long a library's offer takes, where that may be measured.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_TIMING_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_TIMING_HPP
#include "status.hpp"

namespace adjoin::vendor {

// Milliseconds of so many runs behind a first one, or a negative number if it does not run.
template <class F>
float milliseconds(Stream stream, int runs, F run) {
  const Runtime& r = runtime();
  Event from = nullptr, until = nullptr;
  if (r.EventCreateWithFlags(&from, 0) != kSuccess) return -1;
  if (r.EventCreateWithFlags(&until, 0) != kSuccess) return (void)r.EventDestroy(from), -1;
  float ms = -1;
  bool ran = run() && r.EventRecord(from, stream) == kSuccess;
  for (int i = 0; i < runs && ran; ++i) ran = run();
  ran = ran && r.EventRecord(until, stream) == kSuccess;
  if (!ran || r.EventSynchronize(until) != kSuccess ||
      r.EventElapsedTime(&ms, from, until) != kSuccess)
    ms = -1;
  (void)r.EventDestroy(from);
  (void)r.EventDestroy(until);
  return ms;
}

}  // namespace adjoin::vendor
#endif

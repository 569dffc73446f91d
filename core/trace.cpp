// core/trace.cpp: at the end of a traced process, the median of each step's ticks, and how long a tick is.
#include "core/trace.hpp"

#ifdef AJ_TRACE_CALL
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace adjoin {

constinit thread_local Trace* trace __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr const char* kNames[kSteps] = {"before", "keys",  "plan",  "output",  "kernel",
                                        "record", "leave", "after", "release", "empty"};
using Clock = std::chrono::steady_clock;

double median(Trace& t, int step) {
  uint32_t n = std::min(t.count[step], Trace::kKept);
  if (!n) return 0;
  std::nth_element(t.ticks[step], t.ticks[step] + n / 2, t.ticks[step] + n);
  return t.ticks[step][n / 2];
}

// Writes "STEP NANOSECONDS CALLS" lines to the file that ADJOIN_TRACE_CALL names; of the thread that ends the process.
struct AtEnd {
  Clock::time_point start = Clock::now();
  uint64_t ticks = __rdtsc();
  ~AtEnd() {
    const char* path = std::getenv("ADJOIN_TRACE_CALL");
    FILE* f = path && trace ? std::fopen(path, "w") : nullptr;
    if (!f) return;
    for (int i = 0; i < 1000; i++) mark(Step::empty);
    double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / double(__rdtsc() - ticks);
    double none = median(*trace, int(Step::empty));
    for (int s = 0; s < kSteps; s++)
      std::fprintf(f, "%s %.2f %u\n", kNames[s],
                   std::max(0.0, median(*trace, s) - (s == int(Step::empty) ? 0 : none)) * ns, trace->count[s]);
    std::fclose(f);
  }
} at_end;

}  // namespace

Trace& new_trace() {
  trace = new Trace;  // to the end of the process
  return *trace;
}

}  // namespace adjoin
#endif

// core/base/marks.cpp: at the end of a traced process, the mean of each step's ticks, and how long
// a tick is.
#include "core/base/marks.hpp"

#ifdef AJ_TRACE_CALL
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "core/base/plain.hpp"

namespace adjoin {

constinit thread_local Trace* trace __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr const char* kNames[kSteps] = {"before", "keys",  "plan",  "output",  "kernel",
                                        "record", "leave", "after", "release", "empty"};
using Clock = std::chrono::steady_clock;

// The mean without what interrupts add: clocks that advance in steps of many ticks leave no better
// figure.
double typical(Trace& t, int step) {
  uint32_t n = std::min(t.count[step], Trace::kKept);
  if (!n) return 0;
  uint32_t* first = t.ticks[step];
  std::nth_element(first, first + n / 2, first + n);
  const uint64_t most = uint64_t(first[n / 2]) + 500;
  double sum = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < n; i++)
    if (first[i] <= most) sum += first[i], used++;
  return sum / used;
}

// Writes "STEP NANOSECONDS CALLS" lines to the file that ADJOIN_TRACE_CALL names; of the thread
// that ends the process.
struct AtEnd {
  Clock::time_point start = Clock::now();
  uint64_t ticks = __rdtsc();
  ~AtEnd() {
    const char* path = secure_getenv("ADJOIN_TRACE_CALL");
    FILE* f = path && trace ? std::fopen(path, "w") : nullptr;
    if (!f) return;
    for (uint32_t i = 0; i < Trace::kKept; i++) mark(Step::empty);
    double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
                double(__rdtsc() - ticks);
    double none = typical(*trace, int(Step::empty));
    for (int s = 0; s < kSteps; s++)
      std::fprintf(
          f, "%s %s %u\n", kNames[s],
          fixed_text(std::max(0.0, typical(*trace, s) - (s == int(Step::empty) ? 0 : none)) * ns, 2)
              .c_str(),
          trace->count[s]);
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

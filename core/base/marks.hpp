// core/base/marks.hpp: marks on the call path, compiled in with -DAJ_TRACE_CALL and nothing
// otherwise. A mark gives the time since the mark before it, in ticks of the processor's clock, to
// a step; `libadjoin_traced.so` is such a build.
#pragma once

#ifdef AJ_TRACE_CALL
#include <x86intrin.h>

#include <cstdint>

namespace adjoin {

// The rows of the budget: bench/trace.py names them.
enum class Step { before, keys, plan, output, kernel, record, leave, after, release, empty };
constexpr int kSteps = 10;

struct Trace {
  static constexpr uint32_t kKept = 4096;  // of each step, the newest
  uint64_t last = 0;
  uint32_t count[kSteps] = {};
  uint32_t ticks[kSteps][kKept];
};
Trace& new_trace();
extern constinit thread_local Trace* trace __attribute__((tls_model("initial-exec")));

// Fenced, or a step's instructions would run in its neighbours' time: the steps add up to more than
// a call takes without marks.
inline void mark(Step step) {
  _mm_lfence();
  uint64_t now = __rdtsc();
  Trace& t = trace ? *trace : new_trace();
  t.ticks[int(step)][t.count[int(step)]++ % Trace::kKept] = uint32_t(now - t.last);
  _mm_lfence();
  t.last = __rdtsc();
  _mm_lfence();
}

}  // namespace adjoin
#define AJ_MARK(step) ::adjoin::mark(::adjoin::Step::step)
#else
#define AJ_MARK(step) ((void)0)
#endif

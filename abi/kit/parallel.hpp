// adjoin/kit/parallel.hpp: the core's thread pool for lambdas that may throw.
#ifndef ADJOIN_KIT_PARALLEL_HPP
#define ADJOIN_KIT_PARALLEL_HPP
#include <adjoin/kit/error.hpp>
#include <algorithm>

namespace adjoin {
namespace AJ_HIDDEN kit {

// Calls f(lo, hi) for the chunks [i * grain, (i + 1) * grain) of [0, n), from several threads.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  struct Body {  // f itself stands in here() alone
    [[gnu::noinline]] static void here(std::remove_reference_t<F>& f, int64_t lo, int64_t hi) {
      f(lo, hi);
    }
    static aj_status* run(void* self, int64_t lo, int64_t hi) {
      return guard(std::string_view(),
                   [&] { here(*static_cast<std::remove_reference_t<F>*>(self), lo, hi); });
    }
  };
  if (n <= grain) return Body::here(f, int64_t(0), n);
  check(core().parallel_for(n, grain, &Body::run, const_cast<void*>(static_cast<const void*>(&f))));
}

// How many items make a chunk worth waking a thread for, when one item touches so many elements.
inline int64_t grain_of(int64_t elements_per_item, int64_t elements_per_chunk = 32768) {
  return std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, elements_per_item));
}

}  // namespace kit
}  // namespace adjoin
#endif

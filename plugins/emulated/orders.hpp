// plugins/emulated/orders.hpp: what the user has ordered: how many devices, delays, and faults to
// come. Set by ADJOIN_OPTIONS_EMULATED and by the op emulated::configure.
#ifndef ADJOIN_PLUGINS_EMULATED_ORDERS_HPP
#define ADJOIN_PLUGINS_EMULATED_ORDERS_HPP
#include <atomic>
#include <cstdint>
#include <string_view>

struct aj_status;

namespace adjoin::emulated {

// "The n-th from now": counts down; true once, when it comes to 0.
class Countdown {
 public:
  void set(int64_t n) { left_ = n; }
  bool due() { return left_.load(std::memory_order_relaxed) > 0 && left_.fetch_sub(1) == 1; }

 private:
  std::atomic<int64_t> left_{0};
};

struct Orders {
  // Before the first tensor:
  std::atomic<int64_t> devices{2}, memory{int64_t(4) << 30};
  // At any time:
  Countdown fail_alloc, fail_kernel, fail_copy, hang;
  std::atomic<int64_t> fail_allocs{1};  // how many in a row, for who tries again
  std::atomic<int64_t> delay_us{0},
      deadline_ms{0};                 // before each piece of work; of a wait (0: none)
  std::atomic<bool> blocking{false};  // errors come from the call that made them
  std::atomic<bool> released{false};  // ends what hangs

  bool alloc_fails() {
    if (fail_alloc.due())
      more_fail = fail_allocs.load() - 1;
    else if (more_fail.load() <= 0 || more_fail.fetch_sub(1) <= 0)
      return false;
    return true;
  }
  std::atomic<int64_t> more_fail{0};
};
extern Orders orders;

// "fail_alloc=3 delay_us=200": separated by commas, blanks or line ends.
aj_status* set_orders(std::string_view text);

}  // namespace adjoin::emulated
#endif

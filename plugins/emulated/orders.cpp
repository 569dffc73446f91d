// plugins/emulated/orders.cpp: reads what the user orders.
#include "orders.hpp"

#include <adjoin/kit/error.hpp>

#include "fibers.hpp"

namespace adjoin::emulated {

Orders orders;

namespace {

struct Scheduling {
  std::atomic<int64_t> warp{32}, seed{0};
} scheduling;

bool set_one(std::string_view key, int64_t n) {
  auto is = [&](const char* name) { return key == name; };
  if (is("devices"))
    orders.devices = n;
  else if (is("memory"))
    orders.memory = n;
  else if (is("fail_alloc"))
    orders.fail_alloc.set(n), orders.more_fail = 0;
  else if (is("fail_allocs"))
    orders.fail_allocs = n;
  else if (is("fail_kernel"))
    orders.fail_kernel.set(n);
  else if (is("fail_copy"))
    orders.fail_copy.set(n);
  else if (is("hang"))
    orders.released = n == 0, orders.hang.set(n);
  else if (is("delay_us"))
    orders.delay_us = n;
  else if (is("deadline_ms"))
    orders.deadline_ms = n;
  else if (is("blocking"))
    orders.blocking = n != 0;
  else if (is("warp"))
    scheduling.warp = n;
  else if (is("seed"))
    scheduling.seed = n;
  else
    return false;
  if (is("warp") || is("seed")) set_order(unsigned(scheduling.warp), uint64_t(scheduling.seed));
  return true;
}

}  // namespace

aj_status* set_orders(std::string_view text) {
  constexpr std::string_view between = ", \t\n";
  while (!text.empty()) {
    size_t from = text.find_first_not_of(between);
    if (from == std::string_view::npos) break;
    text.remove_prefix(from);
    std::string_view item = text.substr(0, text.find_first_of(between));
    text.remove_prefix(item.size());
    size_t equals = item.find('=');
    int64_t n = 0;
    bool number = false;
    if (equals != std::string_view::npos) {
      auto [end, wrong] = std::from_chars(item.data() + equals + 1, item.data() + item.size(), n);
      number = wrong == std::errc() && end == item.data() + item.size() && n >= 0;
    }
    std::string_view key = item.substr(0, equals);
    bool fits = (key != "devices" || (n >= 1 && n <= 16)) && (key != "warp" || n == 32 || n == 64);
    if (!number || !fits || !set_one(key, n))
      return kit::fail(
          AJ_INVALID_ARGUMENT, "emulated: the option '", item,
          "' is not understood; there are devices=1..16, memory, fail_alloc, "
          "fail_allocs, fail_kernel, fail_copy, hang, delay_us, deadline_ms, blocking, warp=32|64, "
          "seed, each a number");
  }
  return nullptr;
}

}  // namespace adjoin::emulated

// core/op/settings.hpp: what holds for the whole process: deterministic mode, the order of memory.
#pragma once
#include <atomic>

namespace adjoin {

bool free_order_wanted();
struct Settings {
  std::atomic<bool> deterministic{false};
  bool free_order =
      free_order_wanted();  // ADJOIN_FREE_ORDER=0: results lie in memory as users see them, always
};
extern Settings settings;

}  // namespace adjoin

// core/base/transaction.hpp: what a plugin's init has registered so far, as those see it who
// register at once and may have to take it back.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace adjoin {

struct Transaction {
  std::string plugin;
  std::vector<std::function<void()>> undo;  // of what is seen at once: types, dtypes, frontends
};

// core/op/registry.cpp has both.
Transaction* transaction();                   // of the init that runs on this thread, or NULL
bool is_replaced(const std::string& plugin);  // its newer file is being loaded in its place

}  // namespace adjoin

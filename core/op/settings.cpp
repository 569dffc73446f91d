// core/op/settings.cpp: what holds for the whole process.
#include "core/op/settings.hpp"

#include <cstdlib>
#include <string_view>

namespace adjoin {

bool free_order_wanted() {
  const char* text = secure_getenv("ADJOIN_FREE_ORDER");
  return !text || std::string_view(text) != "0";
}

Settings settings;

}  // namespace adjoin

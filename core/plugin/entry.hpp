// core/plugin/entry.hpp: what every entry about plugins does first and last.
#pragma once

#include <exception>

#include "core/base/status.hpp"
#include "core/plugin/catalog.hpp"
#include "core/plugin/load_lock.hpp"

namespace adjoin::plugin {

// body() with the plugins found and nobody else changing them. No exception of ours may leave
// through a table.
template <class F>
aj_status* guarded(const char* what, F body) {
  try {
    Locked lock(load_lock());
    catalog().discover();
    return body();
  } catch (const std::exception& e) {
    return fail(AJ_INTERNAL, "plugins: ", what, ": ", e.what());
  }
}

}  // namespace adjoin::plugin

// core/plugin/replace.hpp: definitions that come while a process runs: the interface "x.plugins".
#pragma once
#include <adjoin/kit/experimental.hpp>

namespace adjoin::plugin {

const aj_x_plugins* experimental_table();

}  // namespace adjoin::plugin

// core/plugin/present.hpp: shows plugins the tables as an older libadjoin would have them, for
// tests of the contract.
#pragma once

#include <cstdint>

namespace adjoin::plugin {

// With ADJOIN_ABI_TRUNCATE=1, a copy of the interface's table that has only the fields it was first
// published with and ends where an unreadable page begins: a plugin that reads past struct_size
// faults. Without, the table itself.
const void* present(const char* name, const void* table);

}  // namespace adjoin::plugin

// core/interfaces.hpp: the tables that everybody else reaches the core through.
#pragma once
#include <adjoin/abi/capi.h>

#include <string_view>

namespace adjoin {

extern const aj_core core_table;
extern const aj_dispatch dispatch_table;

const void* core_query(const char* name, uint32_t major);  // NULL if there is none
void start();                                              // registers the built-in ops; once
void log_message(int32_t level, std::string_view who, std::string_view message);

}  // namespace adjoin

// core/op/tables.hpp: the tables that everybody else reaches the core through;
// core/interfaces/tables.cpp has all of it.
#pragma once
#include <adjoin/abi/capi.h>

namespace adjoin {

extern const aj_core core_table;
extern const aj_dispatch dispatch_table;

const void* core_query(const char* name, uint32_t major);  // NULL if there is none
void start();                                              // registers the built-in ops; once

}  // namespace adjoin

// core/op/tables.hpp: the tables that everybody else reaches the core through.
#pragma once
#include <adjoin/abi/capi.h>

#include <span>
#include <string_view>

namespace adjoin {

extern const aj_core core_table;
extern const aj_dispatch dispatch_table;

struct DType;
// Do all elements of such a view lie inside the memory of so many bytes?
bool inside(uint64_t bytes, const DType& t, std::span<const int64_t> shape, const int64_t* strides, int64_t first);
const void* core_query(const char* name, uint32_t major);  // NULL if there is none
void start();                                              // registers the built-in ops; once
void log_message(int32_t level, std::string_view who, std::string_view message);

}  // namespace adjoin

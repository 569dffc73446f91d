// core/op/trace.hpp: counts who serves which op. Costs nothing while it is off: kernels are
// wrapped when they are resolved.
#pragma once
#include <vector>

#include "core/op/op.hpp"

namespace adjoin {

bool tracing();
uint64_t bytes_of_call(const aj_call* call);  // of its operands, read and written
// Makes link, a copy of chain[i], count its calls.
void trace_kernel(const aj_op* op, int bit, const std::vector<const Kernel*>& chain, size_t i,
                  Kernel* link);
// An op that ran elsewhere through copies.
void trace_host(const aj_op* op, const std::string& device, const std::string& host,
                const std::string& why, uint64_t bytes, uint64_t ns);

aj_status* trace_ops(int32_t on, aj_object** out);
// ADJOIN_TRACE=FILE: counts from the start, and writes the file when the process ends.
void trace_from_environment();

}  // namespace adjoin

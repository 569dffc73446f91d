// core/op/thunk.hpp: kernels built against an older schema of their op.
#pragma once
#include "core/op/op.hpp"

namespace adjoin {

// Says why `built` cannot serve `op` (a parameter differs, or lacks), or NULL.
aj_status* check_built_schema(const aj_op* op, std::string_view built, std::string_view plugin);
// The kernel itself, or a wrapper that calls it with its own, shorter argument list while the rest
// equal their defaults.
Kernel* adapt_schema(const aj_op* op, std::string_view built, Kernel* k);

}  // namespace adjoin

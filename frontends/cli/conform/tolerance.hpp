// frontends/cli/conform/tolerance.hpp: how far a pointwise row's results may be from the
// reference's.
#pragma once

#include "rows.hpp"

namespace adjoin::cli::conform {

bool has_steps(DLDataType dtype);  // a float, or a complex number of two, that is built in
Tolerance tolerance_of(const Row& row, DLDataType dtype);

}  // namespace adjoin::cli::conform

// plugins/cpu/compare.cpp: comparisons and logic.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {

const Kernel compare_kernels[] = {
    {"eq", binary<scalar::Eq, all_types>},
    {"ne", binary<scalar::Ne, all_types>},
    {"lt", binary<scalar::Lt, reals_bool>},
    {"le", binary<scalar::Le, reals_bool>},
    {"gt", binary<scalar::Gt, reals_bool>},
    {"ge", binary<scalar::Ge, reals_bool>},
    {"logical_and", binary<scalar::LogicalAnd, all_types>},
    {"logical_or", binary<scalar::LogicalOr, all_types>},
    {"logical_xor", binary<scalar::LogicalXor, all_types>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

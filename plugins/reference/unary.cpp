// plugins/reference/unary.cpp: functions of one element.
#include <adjoin/kit/scalar_rows.hpp>

#include "element.hpp"

namespace adjoin::reference {

AJ_KERNELS(unary_kernels) = {
    AJ_UNARY_ROWS(one),
    AJ_MATH_ROWS(one),
    {nullptr, {}},
};

}  // namespace adjoin::reference

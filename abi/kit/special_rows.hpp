// adjoin/kit/special_rows.hpp: the rows of special functions whose kernels are a scalar function of
// the kit and nothing else, for every backend that goes element by element. A row stands in the
// header of its function.
#ifndef ADJOIN_KIT_SPECIAL_ROWS_HPP
#define ADJOIN_KIT_SPECIAL_ROWS_HPP
#include <adjoin/kit/scalar_airy.hpp>
#include <adjoin/kit/scalar_masked.hpp>
#include <adjoin/kit/scalar_special.hpp>

#define AJ_SPECIAL_ROWS(one, two) \
  AJ_SPECIAL_FUNCTION_ROWS(one, two), AJ_MASKED_ROWS(one, two), AJ_AIRY_ROWS(one, two)
#endif

// plugins/ops_image/resample.hpp: a dimension multiplied by a sparse matrix, by other ops.
#pragma once
#include <adjoin/kit/host.hpp>
#include <adjoin/kit/resample.hpp>

namespace adjoin::ops {

Tensor apply_taps(const Tensor& x, int64_t dim, const kit::Taps& taps);

}  // namespace adjoin::ops

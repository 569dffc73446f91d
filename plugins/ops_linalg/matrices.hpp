// plugins/ops_linalg/matrices.hpp: short words for stacks of matrices.
#ifndef ADJOIN_PLUGINS_OPS_LINALG_MATRICES_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_MATRICES_HPP
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>
#include <atomic>
#include <limits>

namespace adjoin::ops {

inline void want_matrix(const Tensor& t) {
  want(t.ndim() >= 2, "a matrix, or a stack of them, is wanted: the shape is ", shown(t));
}
inline void want_square(const Tensor& t) {
  want(t.ndim() >= 2 && t.size(-1) == t.size(-2), "square matrices are wanted, the shape is ",
       shown(t));
}
// The argument, if its numbers can be factored.
inline const Tensor& numbers_in(const kit::Values& v, uint32_t i) {
  const Tensor& t = v.tensor(i);
  const bool good = (t.is_floating_point() || t.is_complex()) && t.dtype().bits >= 32;
  if (!good || (t.is_complex() && t.dtype().bits < 64))
    kit::raise(AJ_UNIMPLEMENTED,
               "float32, float64, complex64 or complex128 is wanted, the dtype is ", t.dtype(),
               "; cast it with .to()");
  return t;
}

// A warning, once in a program; `said` is the op's own.
inline void deprecated(std::atomic_flag& said, std::string_view name, std::string_view instead) {
  if (said.test_and_set()) return;
  const std::string text = kit::text("deprecated: use ", instead);
  kit::env.core->log(1, kit::str(name), kit::str(text));
}

inline Sizes batch_of(const Tensor& t) { return Sizes(t.shape().begin(), t.shape().end() - 2); }
inline int64_t least_size(const Tensor& t) { return std::min(t.size(-2), t.size(-1)); }
inline Tensor adjoint_of(const Tensor& t) { return conjugate(transpose(t, -2, -1)); }

// An output whose matrices lie column by column, as LAPACK leaves them.
inline void out_by_columns(const Infer& c, uint32_t i, DLDataType dtype,
                           std::span<const int64_t> shape) {
  Sizes strides(shape.size());
  const size_t n = shape.size();
  int64_t step = std::max<int64_t>(shape[n - 1], 1) * std::max<int64_t>(shape[n - 2], 1);
  strides[n - 2] = 1, strides[n - 1] = std::max<int64_t>(shape[n - 2], 1);
  for (size_t d = n - 2; d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  kit::check(kit::env.op->declare(c.call(), i, dtype, int32_t(n), shape.data(), strides.data()));
}

// X with A X = B, or X A = B.
inline Tensor solve_triangle(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                             bool unit = false) {
  return solve_triangular_stack(a, b, upper, left, unit);
}
// The lower triangle and its mirror image; the diagonal once, real.
inline Tensor hermitian_of_lower(const Tensor& t) {
  Tensor below = tril(t, -1), diagonal = adjoin::diagonal(t, 0, -2, -1);
  if (t.is_complex()) diagonal = to(real(diagonal), t.dtype());
  return below + adjoint_of(below) + diag_embed(diagonal);
}

}  // namespace adjoin::ops
#endif

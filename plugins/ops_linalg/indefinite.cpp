// plugins/ops_linalg/indefinite.cpp: equations of symmetric matrices that need not be definite.
#include "matrices.hpp"

namespace adjoin::ops {

aj_status* ldl_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& a = numbers_in(c, 0);
    want_square(a);
    Sizes pivots = batch_of(a);
    out_by_columns(c, 0, a.dtype(), a.shape());
    c.out(2, int32, pivots);
    pivots.push_back(a.size(-1));
    c.out(1, int32, pivots);
  });
}

aj_status* ldl_factor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    auto [ld, pivots, info] =
        in_own_name([&] { return linalg::ldl_factor_ex(b.tensor(0), b.flag(1), true); });
    b.ret(0, ld);
    b.ret(1, pivots);
  });
}

aj_status* ldl_solve_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    numbers_in(c, 0);
    out_by_columns(c, 0, c.tensor(2).dtype(), c.tensor(2).shape());
  });
}

aj_status* ldl_solve_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor ld = numbers_in(b, 0), pivots = b.tensor(1), right = b.tensor(2);
    want_square(ld);
    want_matrix(right);
    want(right.dtype() == ld.dtype(), "dtypes differ: ", ld.dtype(), " and ", right.dtype());
    want(right.size(-2) == ld.size(-1), "sizes differ: LD is ", shown(ld), " and B is ",
         shown(right));
    want(std::ranges::equal(pivots.shape(), ld.shape().first(size_t(ld.ndim() - 1))),
         "pivots must be those of LD: LD is ", shown(ld), " and pivots are ", shown(pivots));
    Sizes batch = broadcast(batch_of(ld), batch_of(right));
    auto spread = [&](const Tensor& t, int64_t own) {
      Sizes shape = batch;
      shape.insert(shape.end(), t.shape().end() - own, t.shape().end());
      return expand(t, shape);
    };
    pivots = contiguous(spread(to(pivots, int32), 1));
    b.ret(0, in_own_name([&] {
            return ldl_solve_stack(contiguous(spread(ld, 2)), pivots, contiguous(spread(right, 2)),
                                   b.flag(3));
          }));
  });
}

}  // namespace adjoin::ops

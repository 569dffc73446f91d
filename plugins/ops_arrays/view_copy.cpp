// plugins/ops_arrays/view_copy.cpp: copies of views, and tensors written where a view looks.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

aj_status* copies_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    std::vector<Tensor> out;
    for (const Tensor& t : b.tensors(0)) out.push_back(clone(t));
    b.ret(0, out);
  });
}

namespace {

// A copy of t with src written where `look` looks.
Tensor written(const Tensor& t, const Tensor& src, auto look) {
  Tensor out = clone(t), part = look(out);
  want(std::ranges::equal(src.shape(), part.shape()), "src must have shape ", shown(part),
       ", it has ", shown(src));
  copy_(part, src);
  return out;
}

}  // namespace

aj_status* select_scatter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, written(b.tensor(0), b.tensor(1),
                     [&](const Tensor& t) { return select(t, b.integer(2), b.integer(3)); }));
  });
}

aj_status* slice_scatter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, written(b.tensor(0), b.tensor(1), [&](const Tensor& t) {
            return slice(t, b.integer(2), b.maybe<int64_t>(3), b.maybe<int64_t>(4), b.integer(5));
          }));
  });
}

aj_status* diagonal_scatter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, written(b.tensor(0), b.tensor(1), [&](const Tensor& t) {
            return diagonal(t, b.integer(2), b.integer(3), b.integer(4));
          }));
  });
}

aj_status* as_strided_scatter_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, written(contiguous(b.tensor(0)), b.tensor(1), [&](const Tensor& t) {
            return as_strided(t, b.ints(2), b.ints(3), b.maybe<int64_t>(4));
          }));
  });
}

}  // namespace adjoin::ops

// core/ops/pad.cpp: padding with a constant, with the tensor itself, and its derivative.
#include "core/ops/make.hpp"

namespace adjoin::ops {
namespace {

void check_pad(Ints pad, int64_t ndim) {
  want(pad.size() % 2 == 0, "pad must hold pairs: ", shown(pad));
  want(int64_t(pad.size() / 2) <= ndim, "pad ", shown(pad), " is for more than the ", ndim,
       " dimensions of input");
}

// The last `dims` dimensions grow by indices that reach back into them.
Tensor pad_by_index(const Tensor& input, Ints pad, std::string_view mode) {
  Tensor out = input;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = out.ndim() - 1 - int64_t(i), n = out.size(d), before = pad[2 * i],
            after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    want(n > 0, "dimension ", d, " is empty");
    if (mode == "reflect")
      want(before < n && after < n, "reflect needs less padding than the size ", n,
           " of dimension ", d, ": ", before, ", ", after);
    if (mode == "circular")
      want(before <= n && after <= n, "circular needs no more padding than the size ", n,
           " of dimension ", d, ": ", before, ", ", after);
    Tensor at = arange(-before, n + after, 1, int64, out.device());
    if (mode == "reflect")
      at = (n - 1) - abs(abs(at) - (n - 1));
    else if (mode == "replicate")
      at = clamp(at, 0, n - 1);
    else
      at = remainder(at, n);
    out = index_select(out, d, at);
  }
  return out;
}

}  // namespace

aj_status* pad_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints pad = b.ints(1);
    std::string_view mode = b.text(2);
    check_pad(pad, t.ndim());
    if (mode == "constant")
      return b.ret(0, constant_pad_nd(t, pad, b.given(3) ? b.scalar(3) : Scalar(0)));
    want(!b.given(3), "mode '", mode, "' takes no value");
    want(mode == "reflect" || mode == "replicate" || mode == "circular",
         "mode must be 'constant', 'reflect', 'replicate' or 'circular', it is '", mode, "'");
    want(int64_t(pad.size() / 2) < t.ndim(), "mode '", mode,
         "' pads the dimensions after the first: pad is ", shown(pad), ", input is ", shown(t));
    b.ret(0, pad_by_index(t, pad, mode));
  });
}

aj_status* constant_pad_nd_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = b.tensor(0);
    Ints pad = b.ints(1);
    check_pad(pad, t.ndim());
    Sizes shape = sizes_of(t);
    for (size_t i = 0; i < pad.size() / 2; ++i) {
      int64_t d = t.ndim() - 1 - int64_t(i);
      shape[d] = plus(shape[d], plus(pad[2 * i], pad[2 * i + 1]));
      want(shape[d] >= 0, "pad ", shown(pad), " cuts more than dimension ", d, " of ", shown(t),
           " has");
    }
    Tensor out = filled(t, shape, b.scalar(2), t.dtype()), inside = out;
    for (size_t i = 0; i < pad.size() / 2; ++i) {
      int64_t d = t.ndim() - 1 - int64_t(i), before = pad[2 * i], after = pad[2 * i + 1];
      inside = cut(inside, d, std::max<int64_t>(before, 0), shape[d] - std::max<int64_t>(after, 0));
      t = cut(t, d, std::max<int64_t>(negated(before), 0),
              t.size(d) - std::max<int64_t>(negated(after), 0));
    }
    copy_(inside, t);
    b.ret(0, out);
  });
}

aj_status* constant_pad_nd_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes back = b.ints(1).vec();
    for (int64_t& x : back) x = negated(x);
    b.ret(0, constant_pad_nd(b.tensor(0), back, 0));
  });
}

}  // namespace adjoin::ops

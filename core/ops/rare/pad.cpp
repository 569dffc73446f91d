// core/ops/rare/pad.cpp: padding with a constant, with the tensor itself, and its derivative.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/order.hpp>

namespace adjoin::ops {
namespace {

void check_pad(Ints pad, int64_t ndim) {
  want(pad.size() % 2 == 0, "pad must hold pairs: ", shown(pad));
  want(int64_t(pad.size() / 2) <= ndim, "pad ", shown(pad), " is for more than the ", ndim,
       " dimensions of input");
}

void check_dimension(int64_t d, int64_t n, int64_t before, int64_t after, std::string_view mode) {
  if (before == 0 && after == 0) return;
  want(n > 0, "dimension ", d, " is empty");
  if (mode == "reflect")
    want(before < n && after < n, "reflect needs less padding than the size ", n, " of dimension ",
         d, ": ", before, ", ", after);
  if (mode == "circular")
    want(before <= n && after <= n, "circular needs no more padding than the size ", n,
         " of dimension ", d, ": ", before, ", ", after);
}

void check_mode(std::string_view mode) {
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    kit::raise(AJ_UNIMPLEMENTED,
               "mode must be 'constant', 'reflect', 'replicate' or 'circular', it is '", mode, "'");
}

void check_edges(std::span<const int64_t> shape, Ints pad, std::string_view mode) {
  check_pad(pad, int64_t(shape.size()));
  check_mode(mode);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t d = shape.size() - 1 - i;
    want(pad[2 * i] >= 0 && pad[2 * i + 1] >= 0, "pad must not be negative: ", shown(pad));
    check_dimension(int64_t(d), shape[d], pad[2 * i], pad[2 * i + 1], mode);
  }
}

// The shape of t with so much around it.
Sizes padded(const Tensor& t, Ints pad) {
  check_pad(pad, t.ndim());
  Sizes shape = sizes_of(t);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t d = shape.size() - 1 - i;
    int64_t least = plus(shape[d], std::min(pad[2 * i], pad[2 * i + 1]));
    shape[d] = plus(shape[d], plus(pad[2 * i], pad[2 * i + 1]));
    want(shape[d] >= 0 && least >= 0, "pad ", shown(pad), " cuts more than dimension ", d, " of ",
         shown(t), " has");
  }
  return shape;
}

// The shape that a tensor had before its edges came.
Sizes without_pad(const Tensor& t, Ints pad, std::string_view mode) {
  Sizes shape = sizes_of(t);
  for (size_t i = 0; i < pad.size() / 2 && i < shape.size(); ++i)
    shape[shape.size() - 1 - i] -= pad[2 * i] + pad[2 * i + 1];
  check_edges(shape, pad, mode);
  return shape;
}

// What is cut off does not go round: negative amounts come first.
Tensor pad_what_is_left(const Tensor& input, Ints pad, std::string_view mode) {
  Tensor left = input;
  Sizes rest;
  for (size_t i = 0; i < pad.size(); ++i) {
    int64_t d = input.ndim() - 1 - int64_t(i / 2), off = std::max<int64_t>(negated(pad[i]), 0);
    want(off <= left.size(d), "pad ", shown(pad), " cuts more than dimension ", d, " of ",
         shown(input), " has");
    left = i % 2 ? cut(left, d, 0, left.size(d) - off) : cut(left, d, off, left.size(d));
    rest.push_back(std::max<int64_t>(pad[i], 0));
  }
  return pad_edges(left, rest, mode);
}

// The last dimensions shrink, or grow, by indices that reach back into them.
Tensor pad_by_index(const Tensor& input, Ints pad, std::string_view mode) {
  Tensor out = input;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = out.ndim() - 1 - int64_t(i), n = out.size(d), before = pad[2 * i],
            after = pad[2 * i + 1];
    if (before == 0 && after == 0) continue;
    check_dimension(d, n, before, after, mode);
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

// What goes round is joined in C order, as in PyTorch; the other modes keep the input's.
bool in_c_order(std::string_view mode) { return mode == "circular"; }

// How many neighbours are copied one by one: each is one strided copy, and none is made first.
constexpr int64_t kFew = 8;

// Dimension d of a padded tensor: n places after `before` others; f(edge, source) with places of
// equal contents, as ranges: few are single places, many of a reflection turned round.
struct Edges {
  Edges(const Tensor& padded, Ints pad, size_t i)
      : d(padded.ndim() - 1 - int64_t(i)),
        before(pad[2 * i]),
        after(pad[2 * i + 1]),
        n(padded.size(d) - before - after) {}

  struct Range {
    int64_t edge, source, count, width;  // width: of the source; 1 beside many is repeated
    bool turned;
  };
  std::vector<Range> ranges(std::string_view mode) const {
    int64_t end = before + n;
    if (mode == "circular")
      return {{0, n, before, before, false}, {end, before, after, after, false}};
    bool reflect = mode == "reflect";
    std::vector<Range> out;
    if (before > kFew)
      out.push_back(reflect ? Range{0, before + 1, before, before, true}
                            : Range{0, before, before, 1, false});
    for (int64_t k = 0; k < before && before <= kFew; ++k)
      out.push_back({k, reflect ? 2 * before - k : before, 1, 1, false});
    if (after > kFew)
      out.push_back(reflect ? Range{end, end - 1 - after, after, after, true}
                            : Range{end, end - 1, after, 1, false});
    for (int64_t k = 0; k < after && after <= kFew; ++k)
      out.push_back({end + k, reflect ? end - 2 - k : end - 1, 1, 1, false});
    return out;
  }
  int64_t d, before, after, n;
};

// Without the padding of the dimensions of the pairs [first, last).
Tensor without_edges(Tensor t, Ints pad, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    Edges e(t, pad, i);
    t = cut(t, e.d, e.before, e.before + e.n);
  }
  return t;
}

// Something of input goes to every edge: dimension by dimension, from the last, whose edges are
// then part of the next one's.
Tensor pad_with_edges(const Tensor& input, Ints pad, std::string_view mode) {
  size_t pairs = pad.size() / 2;
  auto room = [&](const Sizes& shape) { return empty(shape, input.dtype(), input.device()); };
  Sizes shape = padded(input, pad);
  Tensor out = in_c_order(mode) ? room(shape) : made_in_order(input, shape, room);
  copy_(without_edges(out, pad, 0, pairs), input);
  for (size_t i = 0; i < pairs; ++i) {
    Tensor filled = without_edges(out, pad, i + 1, pairs);
    Edges e(filled, pad, i);
    for (const auto& r : e.ranges(mode)) {
      if (r.count == 0) continue;
      Tensor from = cut(filled, e.d, r.source, r.source + r.width);
      copy_(cut(filled, e.d, r.edge, r.edge + r.count), r.turned ? flip(from, {e.d}) : from);
    }
  }
  return out;
}

}  // namespace

aj_status* pad_edges_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    check_edges(t.shape(), c.ints(1), c.text(2));
    Sizes shape = padded(t, c.ints(1));
    in_c_order(c.text(2)) ? c.out(0, t.dtype(), shape) : c.out_in_order(0, t.dtype(), shape, t);
  });
}

aj_status* pad_edges_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& g = c.tensor(0);
    c.out(0, g.dtype(), without_pad(g, c.ints(1), c.text(2)));
  });
}

aj_status* pad_edges_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    check_edges(t.shape(), b.ints(1), b.text(2));
    b.ret(0, pad_with_edges(t, b.ints(1), b.text(2)));
  });
}

aj_status* pad_edges_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Ints pad = b.ints(1);
    without_pad(b.tensor(0), pad, b.text(2));
    Tensor all = clone(b.tensor(0));
    for (size_t i = pad.size() / 2; i-- > 0;) {
      Edges e(all, pad, i);
      for (const auto& r : e.ranges(b.text(2))) {
        if (r.count == 0) continue;
        Tensor edge = cut(all, e.d, r.edge, r.edge + r.count);
        if (r.turned) edge = flip(edge, {e.d});
        if (r.width < r.count) edge = sum(edge, {e.d}, true);
        add_(cut(all, e.d, r.source, r.source + r.width), edge);
      }
      all = cut(all, e.d, e.before, e.before + e.n);
    }
    b.ret(0, contiguous(all));
  });
}

aj_status* pad_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor t = brought_together(b.tensor(0));
    Ints pad = b.ints(1);
    std::string_view mode = b.text(2);
    check_pad(pad, t.ndim());
    if (mode == "constant")
      return b.ret(0, constant_pad_nd(t, pad, b.given(3) ? b.scalar(3) : Scalar(0)));
    want(!b.given(3) || !b.scalar(3).to_bool(), "mode '", mode, "' takes no value");
    check_mode(mode);
    want(int64_t(pad.size() / 2) < t.ndim(), "mode '", mode,
         "' pads the dimensions after the first: pad is ", shown(pad), ", input is ", shown(t));
    bool cuts = std::any_of(pad.begin(), pad.end(), [](int64_t n) { return n < 0; });
    b.ret(0, in_own_name([&] {
            if (!cuts) return pad_edges(t, pad, mode);
            if (in_c_order(mode)) return pad_what_is_left(t, pad, mode);
            return in_order_of(t, pad_by_index(t, pad, mode));
          }));
  });
}

aj_status* constant_pad_nd_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    c.out_in_order(0, t.dtype(), padded(t, c.ints(1)), t);
  });
}

aj_status* constant_pad_nd_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = b.tensor(0);
    Ints pad = b.ints(1);
    Sizes shape = padded(t, pad);
    Tensor out = made_in_order(
        t, shape, [&](const Sizes& s) { return filled(t, s, b.scalar(2), t.dtype()); });
    Tensor inside = out;
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

// core/ops/rare/scatter.cpp: scatter_reduce and its derivative, and writing by flat places.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

aj_status* scatter_reduce_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &index = c.tensor(2), &src = c.tensor(3);
    std::string_view how = c.text(4);
    want(how == "sum" || how == "prod" || how == "mean" || how == "amax" || how == "amin",
         "reduce must be sum, prod, mean, amax or amin: '", how, "'");
    want(!t.is_complex() || how[0] != 'a', "complex numbers have no order");
    want(t.dtype() != boolean || how != "mean",
         "truth values have no mean; cast them with .to(), or take amax or amin");
    want(t.dtype() == src.dtype(), "src must be ", t.dtype(), ", it is ", src.dtype());
    if (index.numel()) {
      int64_t n = std::max<int64_t>(t.ndim(), 1), dim = c.integer(1);
      for (const Tensor* other : {&index, &src})
        want(std::max<int64_t>(other->ndim(), 1) == n, "input, index and src must have as many ",
             "dimensions: ", shown(t), ", ", shown(index), " and ", shown(src));
      for (int64_t d = 0; d < index.ndim(); ++d)
        want((d == dim || !t.ndim() || index.size(d) <= t.size(d)) &&
                 (!src.ndim() || index.size(d) <= src.size(d)),
             "index ", shown(index), " is larger than input ", shown(t), " or src ", shown(src),
             " in dimension ", d);
    }
    c.out(0, t.dtype(), t.shape());
  });
}

namespace {

Tensor joined(std::string_view how, const Tensor& a, const Tensor& b) {
  if (how == "prod") return to(a * b, a.dtype());
  if (how == "amax") return maximum(a, b);
  return how == "amin" ? minimum(a, b) : to(a + b, a.dtype());
}

}  // namespace

// Where a device has no kernel: an element of every line after the other, which share no place.
aj_status* scatter_reduce_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(2), &src = b.tensor(3);
    std::string_view how = b.text(4);
    if (index.numel() == 0) return b.ret(0, clone(t));
    bool flat = t.ndim() == 0;
    int64_t dim = flat ? 0 : wrap_dim(b.integer(1), t.ndim());
    auto line = [&](const Tensor& x) { return x.ndim() ? x : reshape(x, {1}); };
    Tensor out = line(t), at = line(index), from = line(src);
    Tensor count = full(out.shape(), b.flag(5), int64, t.device());
    for (int64_t k = 0; k < at.size(dim); ++k) {
      Tensor place = cut(at, dim, k, k + 1), value = cut(from, dim, k, k + 1);
      for (int64_t d = 0; d < at.ndim(); ++d) value = cut(value, d, 0, place.size(d));
      Tensor before = gather(out, dim, place), hits = gather(count, dim, place);
      Tensor next = where(eq(hits, 0), value, joined(how, before, value));
      out = scatter(out, dim, place, next);
      count = scatter(count, dim, place, Operand(hits + 1));
    }
    if (how == "mean") {
      Tensor n = clamp(count, 1);
      Tensor mean = is_integral(t) ? floor_divide(out, n) : out / to(n, real_of(t.dtype()));
      out = where(gt(count, 1), to(mean, t.dtype()), out);
    }
    b.ret(0, reshape(out, t.shape()));
  });
}

namespace {

std::string_view joining(std::string_view how) {
  want(how == "add" || how == "multiply", "reduce must be 'add' or 'multiply', it is '", how, "'");
  return how == "add" ? "sum" : "prod";
}

}  // namespace

aj_status* scatter_joined_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    std::string_view how = joining(b.text(4));
    b.ret(0, scatter_reduce(b.tensor(0), b.integer(1), b.tensor(2), b.tensor(3), how));
  });
}

aj_status* scatter_joined_value_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(2);
    std::string_view how = joining(b.text(4));
    Tensor src = expand(filled(t, {}, b.scalar(3), t.dtype()), index.shape());
    b.ret(0, scatter_reduce(t, b.integer(1), index, src, how));
  });
}

namespace {

struct Written {  // what a derivative of scatter_reduce is told
  const Tensor &g, &x, &index, &src, &out;
  int64_t dim;
  bool self;

  Tensor at(const Tensor& t) const { return gather(t, dim, index); }
  // src where index reaches.
  Tensor read() const {
    Tensor part = src;
    for (int64_t d = 0; d < src.ndim(); ++d)
      if (src.size(d) != index.size(d)) part = cut(part, d, 0, index.size(d));
    return part;
  }
  Tensor untouched(const Tensor& t) const { return scatter(t, dim, index, 0); }
  Tensor own(const Tensor& t) const { return self ? t : untouched(t); }
  // A gradient of what index reaches, in the shape of src.
  Tensor whole(const Tensor& t) const {
    Sizes pad;
    for (int64_t d = src.ndim() - 1; d >= 0; --d)
      pad.insert(pad.end(), {0, src.size(d) - index.size(d)});
    bool same = std::ranges::equal(src.shape(), index.shape());
    return same ? t : constant_pad_nd(t, pad);
  }
  Tensor product(const Tensor& start, const Tensor& factors, bool with_start) const {
    return scatter_reduce(start, dim, index, factors, "prod", with_start);
  }
};

void mean_gradients(kit::Grad& d, const Written& w) {
  Tensor count = w.own(ones_like(w.g, int64));
  count = clamp(scatter_add(count, w.dim, w.index, ones_like(w.index)), 1);
  Tensor share = w.g / count;
  if (d.need(0)) d.set(0, w.own(share));
  if (d.need(2)) d.set(2, w.whole(w.at(share)));
}

// In equal parts to those that are the extreme.
void extreme_gradients(kit::Grad& d, const Written& w) {
  Tensor of_self = w.own(to(eq(w.x, w.out), w.g.dtype()));
  Tensor of_src = to(eq(w.read(), w.at(w.out)), w.g.dtype());
  Tensor count = scatter_add(of_self, w.dim, w.index, of_src);
  Tensor share = w.g / where(eq(count, 0), 1, count);
  // What no element is written to keeps its value without the input when it is left out.
  if (d.need(0)) d.set(0, of_self * share);
  if (d.need(2)) d.set(2, w.whole(of_src * w.at(share)));
}

// Products of the others by division, but where the element itself is the only zero.
void product_gradients(kit::Grad& d, const Written& w) {
  Tensor src = w.read();
  if (d.need(0)) d.set(0, w.own(w.g * conjugate(w.product(ones_like(w.x), src, true))));
  if (!d.need(2)) return;
  Tensor zero = eq(src, 0),
         zeros = scatter_add_(zeros_like(w.x, int64), w.dim, w.index, to(zero, int64));
  Tensor only = logical_and(zero, eq(w.at(zeros), 1));
  Tensor others = w.product(w.x, where(only, 1, src), w.self);
  Tensor divided = w.at(w.g * conjugate(w.out)) / conjugate(where(zero, 1, src));
  d.set(2, w.whole(where(only, w.at(w.g * conjugate(others)), divided)));
}

}  // namespace

aj_status* scatter_reduce_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    Written w{d.grad(0),   d.tensor(0),  d.tensor(1), d.tensor(2),
              d.tensor(3), d.integer(4), d.flag(6)};
    std::string_view how = d.text(5);
    if (w.index.numel() == 0) {
      d.set(0, w.g);
      return d.set(2, zeros_like(w.src));
    }
    if (how == "mean") return mean_gradients(d, w);
    if (how == "prod") return product_gradients(d, w);
    if (how != "sum") return extreme_gradients(d, w);
    if (d.need(0)) d.set(0, w.own(w.g));
    if (d.need(2)) d.set(2, w.whole(w.at(w.g)));
  });
}

aj_status* index_reduce_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(2), &source = b.tensor(3);
    std::string_view how = b.text(4);
    int64_t dim = b.integer(1);
    want(how == "prod" || how == "mean" || how == "amax" || how == "amin",
         "reduce must be prod, mean, amax or amin: '", how, "'");
    want(index.ndim() <= 1, "index must be a vector, its shape is ", shown(index));
    Sizes shape = sizes_of(t), place(size_t(t.ndim()), 1);
    if (t.ndim()) shape[size_t(dim)] = place[size_t(dim)] = index.numel();
    want(std::ranges::equal(source.shape(), shape), "source must have shape ", shown(shape),
         ", it has ", shown(source));
    Tensor places = expand(reshape(index, place), shape);
    b.ret(0, in_own_name([&] {
            // An index out of range is one also where nothing is written.
            if (t.ndim() && source.numel() == 0)
              index_select(zeros({t.size(dim)}, boolean, t.device()), 0, index);
            return scatter_reduce(t, dim, places, source, how, b.flag(5));
          }));
  });
}

aj_status* put_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(1), &source = b.tensor(2);
    want(index.numel() == source.numel(), "index has ", index.numel(), " elements, source has ",
         source.numel());
    want(t.dtype() == source.dtype(), "source must be ", t.dtype(), ", it is ", source.dtype());
    std::vector<Tensor> places{reshape(index, {-1})};
    Tensor out = index_put(reshape(t, {-1}), places, reshape(source, {-1}), b.flag(3));
    b.ret(0, reshape(out, t.shape()));
  });
}

namespace {

// Of each sample: a place goes to the row of its rank among the elements that are not zero, to one
// behind the last if there is none for it.
Tensor places_by_ranks(const Tensor& t, int64_t n, int64_t fill) {
  if (t.ndim() == 0 || t.numel() == 0) return filled(t, {n, t.ndim()}, fill, int64);
  Tensor found = ne(reshape(t, {-1}), 0), ranks = cumsum(found, 0);
  Tensor rows = where(logical_and(found, le(ranks, n)), ranks - 1, n);
  Tensor none = filled(t, {n + 1}, -1, int64);
  Tensor places = cut(scatter(none, 0, rows, Operand(counting(t, t.numel()))), 0, 0, n);
  std::vector<Tensor> columns;
  for (int64_t d = 0, rest = t.numel(); d < t.ndim(); ++d) {
    const int64_t size = rest;
    rest /= t.size(d);
    columns.push_back(floor_divide(remainder(places, Scalar(size)), Scalar(rest)));
  }
  return where(unsqueeze(lt(places, 0), 1), Scalar(fill), stack(columns, 1));
}

}  // namespace

aj_status* nonzero_static_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t n = b.integer(1);
    // How many there are differs between samples of a batch, and replays of a graph.
    if (!b.tensor(0).has_memory() || b.call()->flags & AJ_CALL_CAPTURING)
      return b.ret(0, places_by_ranks(b.tensor(0), n, b.integer(2)));
    Tensor found = nonzero(b.tensor(0));
    int64_t missing = n - found.size(0);
    if (missing <= 0) return b.ret(0, cut(found, 0, 0, n));
    b.ret(0, cat({found, full({missing, found.size(1)}, b.integer(2), int64, found.device())}, 0));
  });
}

}  // namespace adjoin::ops

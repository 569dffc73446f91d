// plugins/ops_sparse/slices.cpp: parts of COO tensors: by an index, by one number, by a range; and
// their derivatives.
#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

const Parts& coo(const Tensor& t, std::string_view op) {
  const Parts& p = parts_of(t, "input");
  if (!p.is_coo()) refuse(op, p, "it is there for COO tensors");
  return p;
}

// The elements of a dimension that an index names, each in as many places as it is named. As in
// PyTorch a negative one counts from the end, which it does not in strided tensors.
Parts selected(const Parts& p, int64_t dim, const Tensor& index) {
  Parts made = p;
  made.size[size_t(dim)] = index.numel();
  const int64_t sd = p.sparse_dim(), n = p.size[size_t(dim)], times = index.numel();
  Tensor flat = reshape(index, {-1});
  if (times) {
    const int64_t low = amin(flat).item<int64_t>(), high = amax(flat).item<int64_t>();
    if (low < -n || high >= n)
      kit::raise_as("IndexError", AJ_OUT_OF_RANGE, "index ", low < -n ? low : high,
                    " is out of range for size ", n);
    if (low < 0) flat = where(lt(flat, 0), flat + n, flat);
  }
  if (dim >= sd) {
    made.values = index_select(p.values, dim - sd + 1, flat);
    return made;
  }
  // Sorted by where they point, the index's entries for one place lie beside each other.
  auto [sorted, order] = sort(flat, 0, false, true);
  Tensor mine = contiguous(select(p.indices, 0, dim));
  Tensor first = search(sorted, mine, false), many = search(sorted, mine, true) - first;
  Tensor which = repeat_interleave(counting(many, p.count()), many);
  Tensor ends = cumsum(many, 0);
  Tensor nth = counting(which, which.numel()) - index_select(ends - many, 0, which);
  Tensor place = index_select(order, 0, index_select(first, 0, which) + nth);
  made.indices = index_select(p.indices, 1, which);
  copy_(select(made.indices, 0, dim), place);
  made.values = index_select(p.values, 0, which);
  made.coalesced = made.count() < 2;
  return made;
}

aj_status* index_select_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = coo(v.tensor(0), "index_select");
    Parts made = selected(p, wrap_dim(v.integer(1), v.tensor(0).ndim()), v.tensor(2));
    return wrapped(p.coalesced ? coalesced(made) : std::move(made));
  });
}

// Where dimension d of p's size stands among the dimensions of its values: d is a dense one.
int64_t among_values(const Parts& p, int64_t d) {
  return d - p.batch() - p.sparse_dim() + p.values.ndim() - p.dense_dim();
}

// Of compressed matrices: one of a stack, or a dense part of each.
Parts compressed_slice(const Parts& p, int64_t d, int64_t index) {
  const int64_t at = p.batch();
  Parts made = p;
  made.size.erase(made.size.begin() + d);
  if (d < at) {
    made.indices = contiguous(select(p.indices, d, index));
    made.plain = contiguous(select(p.plain, d, index));
    made.values = select(p.values, d, index);
    return made;
  }
  made.values = select(p.values, among_values(p, d), index);
  return made;
}

// The slice at one index; strided where no sparse dimension is left.
Tensor slice_at(const Tensor& t, int64_t dim, int64_t index) {
  const Parts& given = any_parts_of(t, "input");
  const int64_t d = wrap_dim(dim, t.ndim()), n = given.size[size_t(d)];
  if (index < -n || index >= n)
    kit::raise_as("IndexError", AJ_OUT_OF_RANGE, "index ", index, " is out of range for dimension ",
                  dim, " of size ", n);
  if (index < 0) index += n;
  if (!given.is_coo() && (d < given.batch() || d >= given.batch() + 2))
    return wrapped(compressed_slice(given, d, index), t);
  if (given.batch())
    refuse("select", given, "rows and columns of a stack are not taken, select a matrix first");
  const Parts p = coo_of(given);
  const int64_t sd = p.sparse_dim();
  Parts made = p;
  if (!given.is_coo()) made.coalesced = true;  // one line of a matrix is in order in every layout
  made.size.erase(made.size.begin() + d);
  if (d >= sd) {
    made.values = select(p.values, among_values(p, d), index);
    return wrapped(std::move(made), t);
  }
  Tensor here = reshape(nonzero(eq(select(p.indices, 0, d), index)), {-1});
  made.values = index_select(p.values, 0, here);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < sd; ++i)
    if (i != d) rows.push_back(i);
  if (rows.empty())  // whole numbers and truths stay what they are
    return reshape(sum(made.values, {0}, false, p.values.dtype()), made.size);
  made.indices = index_select(index_select(p.indices, 0, indices_of(p.indices, rows)), 1, here);
  return wrapped(std::move(made), t);
}

aj_status* select_kernel(void*, aj_call* call) {
  return kernel(
      call, [](const kit::Values& v) { return slice_at(v.tensor(0), v.integer(1), v.integer(2)); });
}

aj_status* unbind_kernel(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < t.size(wrap_dim(b.integer(1), t.ndim())); ++i)
      slices.push_back(slice_at(t, b.integer(1), i));
    b.ret(0, slices);
  });
}

struct Range {
  int64_t start, end, step;
  Range(const kit::Values& v, uint32_t at, int64_t n) : step(v.integer(at + 2)) {
    want(step > 0, "step must be above 0, it is ", step);
    auto clipped = [&](uint32_t i, int64_t otherwise) {
      const int64_t x = v.given(i) ? v.integer(i) : otherwise;
      return std::clamp<int64_t>(x < 0 ? x + n : x, 0, n);
    };
    start = clipped(at, 0);
    end = std::max(start, clipped(at + 1, n));
  }
  int64_t count() const { return (end - start + step - 1) / step; }
};

aj_status* slice_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor& t = v.tensor(0);
    const Parts& p = coo(t, "slice");
    const int64_t d = wrap_dim(v.integer(1), t.ndim()), sd = p.sparse_dim();
    const Range r(v, 2, p.size[size_t(d)]);
    Parts made = p;
    made.size[size_t(d)] = r.count();
    if (d >= sd) {
      made.values = slice(p.values, d - sd + 1, r.start, r.end, r.step);
      return wrapped(std::move(made), t);
    }
    Tensor at = select(p.indices, 0, d) - r.start;
    Tensor in = logical_and(ge(at, 0), lt(at, r.end - r.start));
    if (r.step > 1) in = logical_and(in, eq(remainder(at, r.step), 0));
    Tensor here = reshape(nonzero(in), {-1});
    made.values = index_select(p.values, 0, here);
    made.indices = index_select(p.indices, 1, here);
    copy_(select(made.indices, 0, d), floor_divide(index_select(at, 0, here), r.step));
    return wrapped(std::move(made), t);
  });
}

// A slice's gradient in its place: index i of dimension d becomes start + step i.
Parts stretched(const Parts& p, int64_t d, int64_t start, int64_t step, int64_t n) {
  Parts made = p;
  made.size[size_t(d)] = n;
  const int64_t sd = p.sparse_dim();
  if (d < sd) {
    made.indices = clone(p.indices);
    copy_(select(made.indices, 0, d), select(p.indices, 0, d) * step + start);
    return made;
  }
  Sizes shape = sizes_of(p.values);
  shape[size_t(d - sd + 1)] = n;
  made.values = zeros_of(p.values, shape);
  const int64_t m = p.values.size(d - sd + 1);
  copy_(slice(made.values, d - sd + 1, start, start + (m ? (m - 1) * step + 1 : 0), step),
        p.values);
  return made;
}

aj_status* slice_backward_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = coo(v.tensor(0), "slice_backward");
    const int64_t d = wrap_dim(v.integer(2), v.tensor(0).ndim()), n = v.ints(1)[size_t(d)];
    const Range r(v, 3, n);
    return wrapped(stretched(p, d, r.start, r.step, n));
  });
}

Parts lifted(const Parts& p, int64_t at) {  // a dimension of size 1 before `at`
  Parts made = p;
  made.size.insert(made.size.begin() + at, 1);
  if (at <= p.sparse_dim())
    made.indices = cat({slice(p.indices, 0, 0, at),
                        zeros({1, p.count()}, int64, p.indices.device()), slice(p.indices, 0, at)},
                       0);
  else
    made.values = unsqueeze(p.values, at - p.sparse_dim() + 1);
  return made;
}

aj_status* select_backward_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = coo(v.tensor(0), "select_backward");
    const int64_t d = wrap_dim(v.integer(2), int64_t(v.ints(1).size())), n = v.ints(1)[size_t(d)],
                  i = v.integer(3);
    return wrapped(stretched(lifted(p, d), d, i < 0 ? i + n : i, 1, n));
  });
}

aj_status* unsqueeze_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor& t = v.tensor(0);
    return wrapped(lifted(coo(t, "unsqueeze"), wrap_dim(v.integer(1), t.ndim() + 1)), t);
  });
}

// saved: input, dim, index.
aj_status* select_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    Tensor g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    const Parts& p = any_parts_of(d.tensor(0), "input");
    const int64_t dim = wrap_dim(d.integer(1), int64_t(p.size.size()));
    if (dim >= p.batch() + p.sparse_dim()) {
      Sizes shape = sizes_of(p.values), part = shape;
      const int64_t at = among_values(p, dim);
      part.erase(part.begin() + at);
      Tensor values = reshape(sparse_at(g, places(p)), part);
      return d.set(0, with_places(p, select_backward(values, shape, at, d.integer(2))));
    }
    const Parts* given = maybe_parts(g);
    if (given && !given->is_coo()) g = sparse_convert(g, int64_t(Layout::sparse_coo));
    Tensor made = select_backward(g, p.size, dim, d.integer(2));
    d.set(0, p.is_coo() ? made : with_places(p, values_like(made, p)));
  });
}

// saved: input's shape, dim.
aj_status* unsqueeze_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    const int64_t at = wrap_dim(d.integer(1), int64_t(d.ints(0).size()) + 1);
    d.set(0, select(d.grad(0), at, 0));
  });
}

// saved: input's shape, dim, index.
aj_status* index_select_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    Sizes shape(d.ints(0));
    const int64_t dim = wrap_dim(d.integer(1), int64_t(shape.size()));
    const Tensor& index = d.tensor(2);
    const Parts* p = maybe_parts(g);
    if (!p) return d.set(0, index_add(zeros(shape, g.dtype(), g.device()), dim, index, g));
    if (dim >= p->sparse_dim()) {
      Sizes inner = sizes_of(p->values);
      inner[size_t(dim - p->sparse_dim() + 1)] = shape[size_t(dim)];
      Tensor values = index_add(zeros(inner, g.dtype(), g.device()), dim - p->sparse_dim() + 1,
                                index, _values(g));
      return d.set(0, sparse_coo(p->indices, values, shape, p->coalesced));
    }
    Tensor places = clone(p->indices);
    copy_(select(places, 0, dim),
          index_select(reshape(index, {-1}), 0, select(p->indices, 0, dim)));
    d.set(0, sparse_coo(places, _values(g), shape, false));
  });
}

}  // namespace

void define_slice_vjps(const aj_plugin_env* env) {
  static const aj_save three[] = {{AJ_SAVE_SHAPE, 0, 0}, {AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_ARG, 2, 0}};
  static const aj_save whole[] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_ARG, 2, 0}};
  define_vjp(env, "select", whole, 3, select_vjp, nullptr);
  define_vjp(env, "unsqueeze", three, 2, unsqueeze_vjp, nullptr);
  define_vjp(env, "index_select", three, 3, index_select_vjp, nullptr);
}

Table slice_kernels[] = {{"select", at(select_kernel)},
                         {"unbind", at(unbind_kernel)},
                         {"slice", at(slice_kernel)},
                         {"slice_backward", at(slice_backward_kernel)},
                         {"select_backward", at(select_backward_kernel)},
                         {"unsqueeze", at(unsqueeze_kernel)},
                         {"index_select", at(index_select_kernel)},
                         {nullptr, {}}};

}  // namespace adjoin::ops::sparse

// plugins/ops_sparse/shape.cpp: copies, casts, transposes, slices and joins of COO tensors.
#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

const Parts& coo(const Tensor& t, std::string_view op) {
  const Parts& p = parts_of(t, "input");
  if (!p.is_coo()) refuse(op, p, "it is there for COO tensors");
  return p;
}

aj_status* clone_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Parts p = any_parts_of(v.tensor(0), "input");
    p.indices = clone(p.indices);
    if (p.plain.defined()) p.plain = clone(p.plain);
    p.values = clone(p.values);
    return wrapped(std::move(p));
  });
}

aj_status* alias_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    return wrapped(any_parts_of(v.tensor(0), "input"), v.tensor(0));
  });
}

aj_status* to_copy_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Parts p = any_parts_of(v.tensor(0), "input");
    const DLDevice device = v.device(2);
    if (kit::view_of(kit::core().device_name(device.device_type)) == "meta")  // no elements there
      return wrapped(nothing_like(p, p.layout, v.dtype(1), device));
    p.indices = to(p.indices, std::nullopt, device);
    if (p.plain.defined()) p.plain = to(p.plain, std::nullopt, device);
    p.values = to(p.values, v.dtype(1), device, v.flag(4), true);
    return wrapped(std::move(p));
  });
}

// zeros_like, and empty_like of COO: nothing is kept.
aj_status* nothing_like_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = any_parts_of(v.tensor(0), "input");
    return wrapped(nothing_like(p, p.layout, v.maybe<DLDataType>(1).value_or(p.dtype()),
                                v.maybe<DLDevice>(2).value_or(p.values.device())));
  });
}

aj_status* zero_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = any_parts_of(v.tensor(0), "input");
    return wrapped(nothing_like(p, p.layout, p.dtype(), p.values.device()));
  });
}

// Other numbers in the same places: randn_like, and what compressed layouts alone have.
Tensor in_places_of(const Parts& p, aj_call* call) {
  std::vector<aj_value> mine(call->args, call->args + call->nargs);
  mine[0] = kit::value(p.values);
  Tensor values = kit::run(call->op, mine.data(), call->nargs);
  if (values.device() == p.values.device()) return wrapped(with_values(p, values));
  return wrapped(nothing_like(p, p.layout, values.dtype(), values.device()));
}

aj_status* drawn_like_kernel(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    return in_places_of(any_parts_of(v.tensor(0), "input"), call);
  });
}

const Parts& compressed(const Tensor& t, std::string_view op) {
  const Parts& p = any_parts_of(t, "input");
  if (p.is_coo()) refuse(op, p, "its elements may stand twice, or anywhere");
  return p;
}

aj_status* filled_like_kernel(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    return in_places_of(compressed(v.tensor(0), "a tensor of one number"), call);
  });
}

aj_status* empty_like_kernel(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    const Parts& p = any_parts_of(v.tensor(0), "input");
    if (!p.is_coo()) return in_places_of(p, call);
    return wrapped(nothing_like(p, p.layout, v.maybe<DLDataType>(1).value_or(p.dtype()),
                                v.maybe<DLDevice>(2).value_or(p.values.device())));
  });
}

aj_status* fill_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Parts& p = compressed(v.tensor(0), "fill_");
    return wrapped(with_values(p, fill_(clone(p.values), v.operand(1))));
  });
}

aj_status* copy_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Operand from = v.operand(1);
    const Parts* to_parts = maybe_parts(v.tensor(0));
    want(to_parts, "a sparse tensor is not copied into a strided one; call to_dense() first");
    want(from.is_tensor() && is_sparse(from.tensor()),
         "a strided tensor is not copied into a sparse one; call "
         "to_sparse() first");
    Parts p = any_parts_of(from.tensor(), "src");
    want(p.size == to_parts->size && p.layout == to_parts->layout,
         "sparse tensors of one size and layout are copied; "
         "they have ",
         shown(to_parts->size), " and ", shown(p.size));
    p.indices = clone(p.indices);
    if (p.plain.defined()) p.plain = clone(p.plain);
    p.values = to(p.values, to_parts->dtype(), to_parts->values.device(), false, true);
    return wrapped(std::move(p));
  });
}

// Of compressed matrices: dimensions of the stack among themselves, rows and columns, dense ones.
Parts permuted_compressed(const Parts& p, const Sizes& order, std::string_view op) {
  const int64_t at = p.batch(), inner = p.values.ndim() - at - p.dense_dim();
  auto kind = [&](int64_t d) { return d < at ? 0 : d < at + 2 ? 1 : 2; };
  Sizes lines, all;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    want(kind(d) == kind(int64_t(i)), op,
         " keeps dimensions of the stack, sparse and dense ones "
         "apart; there are ",
         at, ", 2 and ", p.dense_dim(), " of them");
    if (d < at) lines.push_back(d), all.push_back(d);
    if (int64_t(i) == at + 1) {
      lines.push_back(at);
      for (int64_t k = 0; k < inner; ++k) all.push_back(at + k);
    }
    if (d >= at + 2) all.push_back(d - 2 + inner);
  }
  Parts made = p;
  for (size_t i = 0; i < order.size(); ++i)
    if (kind(int64_t(i)) != 1) made.size[i] = p.size[size_t(order[i])];
  made.indices = permute(p.indices, lines);
  made.plain = permute(p.plain, lines);
  made.values = permute(p.values, all);
  return order[size_t(at)] == at ? made : transposed_name(made);
}

// Dimensions in another order: sparse ones among themselves, dense ones among themselves.
Tensor permuted(const Tensor& t, const Sizes& order, std::string_view op) {
  const Parts& given = any_parts_of(t, op);
  if (!given.is_coo()) return wrapped(permuted_compressed(given, order, op), t);
  const Parts& p = coo(t, op);
  const int64_t sd = p.sparse_dim();
  Parts made = p;
  std::vector<int64_t> rows;
  Sizes inner{0};
  bool same = true;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool sparse = int64_t(i) < sd;
    want(sparse == (order[i] < sd), op, " keeps sparse and dense dimensions apart; there are ", sd,
         " and ", p.dense_dim(), " of them");
    if (sparse)
      rows.push_back(order[i]);
    else
      inner.push_back(order[i] - sd + 1);
    same &= order[i] == int64_t(i);
    made.size[i] = p.size[size_t(order[i])];
  }
  if (!same) made.coalesced = p.count() < 2;
  if (sd) made.indices = index_select(p.indices, 0, indices_of(p.indices, rows));
  made.values = permute(p.values, inner);
  return wrapped(std::move(made), t);
}

aj_status* t_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor& t = v.tensor(0);
    want(t.ndim() <= 2, "t() is for at most 2 dimensions, the shape is ", shown(t),
         "; use transpose(dim0, dim1)");
    return permuted(t, t.ndim() == 2 ? Sizes{1, 0} : t.ndim() == 1 ? Sizes{0} : Sizes{}, "t");
  });
}
aj_status* transpose_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor& t = v.tensor(0);
    Sizes order;
    for (int64_t d = 0; d < t.ndim(); ++d) order.push_back(d);
    if (t.ndim())
      std::swap(order[size_t(wrap_dim(v.integer(1), t.ndim()))],
                order[size_t(wrap_dim(v.integer(2), t.ndim()))]);
    return permuted(t, order, "transpose");
  });
}
aj_status* permute_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    const Tensor& t = v.tensor(0);
    Sizes order;
    for (int64_t d : v.ints(1)) order.push_back(wrap_dim(d, t.ndim()));
    Sizes sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      want(sorted[i] == int64_t(i), "dims must name each dimension once");
    want(int64_t(order.size()) == t.ndim(), "dims must name ", t.ndim(), " dimensions, they are ",
         order.size());
    return permuted(t, order, "permute");
  });
}

aj_status* cat_kernel(void*, aj_call* call) {
  return kernel(call, [](const kit::Values& v) {
    Tensors all = v.tensors(0);
    want(all.size() > 0, "at least one tensor is wanted");
    for (const Tensor& t : all)
      want(is_sparse(t), "sparse and strided tensors are not joined; call to_sparse() first");
    const Parts& first = coo(all[0], "cat");
    const int64_t dim = wrap_dim(v.integer(1), all[0].ndim()), sd = first.sparse_dim();
    Parts made = first;
    std::vector<Tensor> places, values;
    int64_t begin = 0;
    for (const Tensor& t : all) {
      const Parts& p = coo(t, "cat");
      bool fits = p.size.size() == first.size.size() && p.sparse_dim() == sd;
      for (size_t d = 0; fits && d < p.size.size(); ++d)
        fits = int64_t(d) == dim || p.size[d] == first.size[d];
      want(fits, "sizes ", shown(first.size), " and ", shown(p.size), " differ beside dimension ",
           dim);
      Tensor moved = p.indices;
      if (dim < sd && begin) {
        moved = clone(moved);
        add_(select(moved, 0, dim), begin);
      }
      places.push_back(moved);
      values.push_back(p.values);
      begin += p.size[size_t(dim)];
    }
    want(dim < sd, "tensors are joined along a sparse dimension; ", dim, " is dense");
    made.indices = cat(places, 1);
    made.values = cat(values, 0);
    made.size[size_t(dim)] = begin;
    made.coalesced = false;
    return wrapped(first.coalesced ? coalesced(made) : std::move(made));
  });
}

}  // namespace

Tensor indices_of(const Tensor& like, const std::vector<int64_t>& list) {
  Tensor t = empty_dense({int64_t(list.size())}, int64, DLDevice{kDLCPU, 0});
  std::copy(list.begin(), list.end(), t.data<int64_t>());
  return to(t, std::nullopt, like.device());
}

Table shape_kernels[] = {{"alias", at(alias_kernel)},
                         {"clone", at(clone_kernel)},
                         {"_::to_copy", at(to_copy_kernel)},
                         {"zeros_like", at(nothing_like_kernel)},
                         {"empty_like", at(empty_like_kernel)},
                         {"ones_like", at(filled_like_kernel)},
                         {"full_like", at(filled_like_kernel)},
                         {"rand_like", at(filled_like_kernel)},
                         {"fill_", at(fill_kernel)},
                         {"randn_like", at(drawn_like_kernel)},
                         {"zero_", at(zero_kernel)},
                         {"copy_", at(copy_kernel)},
                         {"t", at(t_kernel)},
                         {"transpose", at(transpose_kernel)},
                         {"permute", at(permute_kernel)},
                         {"cat_same", at(cat_kernel)},
                         {nullptr, {}}};

}  // namespace adjoin::ops::sparse

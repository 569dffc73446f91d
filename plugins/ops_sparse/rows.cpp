// plugins/ops_sparse/rows.cpp: bodies and derivatives of the rows that make, read and convert
// sparse tensors.
#include "sparse.hpp"

namespace adjoin::ops {

namespace sparse {

Tensor with_places(const Parts& p, const Tensor& values) {
  if (p.is_coo()) return sparse_coo(p.indices, values, p.size, p.coalesced);
  return sparse_compressed(p.indices, p.plain, values, p.size, int64_t(p.layout));
}

Tensor values_like(const Tensor& g, const Parts& p) {
  const Parts* given = maybe_parts(g);
  if (given && given->layout == p.layout && (!p.is_coo() || given->coalesced == p.coalesced) &&
      same_places(*given, p))
    return _values(g);
  return reshape(sparse_at(g, places(p)), p.values.shape());
}

Tensor summed_to(const Tensor& g, const Sizes& size) {
  const size_t more = size_t(g.ndim()) - size.size();
  Sizes over;
  for (size_t d = 0; d < size_t(g.ndim()); ++d)
    if (d < more || (size[d - more] == 1 && g.shape()[d] != 1)) over.push_back(int64_t(d));
  if (over.empty()) return g;
  Tensor made = sum(g, over, true);
  for (size_t i = 0; i < more; ++i) made = select(made, 0, 0);
  return made;
}

}  // namespace sparse

using namespace sparse;

aj_status* sparse_coo_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Parts p;
    p.indices = b.tensor(0).detach();
    p.values = b.tensor(1).detach();
    p.size = Sizes(b.ints(2));
    check_coo(p);
    p.coalesced = b.flag(3) || p.count() < 2;
    if (b.flag(3) && p.count() > 1) {
      Tensor flat = flat_places(p.indices, p.size);
      Tensor rise = lt(slice(flat, 0, 0, p.count() - 1), slice(flat, 0, 1));
      want(all(rise).item<bool>(),
           "coalesced indices must rise, each column once; leave is_coalesced");
    }
    give(b.call(), wrapped(std::move(p)));
  });
}

aj_status* sparse_coo_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (d.grad(0).defined()) d.set(1, sparse_at(d.grad(0), d.tensor(0)));
  });
}

aj_status* sparse_at_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    const Parts* p = maybe_parts(t);
    Tensor found = p ? values_at(coo_of(*p), b.tensor(1)) : values_at(t, b.tensor(1));
    give(b.call(), found.detach());
  });
}

aj_status* sparse_at_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.need(0) || !d.grad(0).defined()) return;
    Tensor g = sparse_coo(d.tensor(1), d.grad(0), Sizes(d.tensor(0).shape()), false);
    const Parts* p = maybe_parts(d.tensor(0));
    if (p && !p->is_coo()) return d.set(0, with_places(*p, values_like(g, *p)));
    d.set(0, p ? g : sparse_to_dense(g, false));
  });
}

aj_status* coo_join_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &indices = b.tensor(0), &values = b.tensor(1);
    const int64_t sd = indices.size(0);
    Sizes size(b.ints(2));
    auto [keys, group, counts] = unique(flat_places(indices, size), true, true, false);
    const int64_t n = values.size(0);
    Tensor rows = reshape(values, {n, n ? values.numel() / n : 1});
    Tensor sums = index_add_(zeros_of(rows, {keys.numel(), rows.size(1)}), 0, group, rows);
    Sizes shape = sizes_of(values);
    shape[0] = keys.numel();
    std::vector<Tensor> lines(size_t(sd), keys);
    for (size_t d = size_t(sd); d-- > 0;) {
      lines[d] = remainder(keys, std::max<int64_t>(size[d], 1));
      keys = floor_divide(keys, std::max<int64_t>(size[d], 1));
    }
    b.ret(0, sd ? stack(lines, 0) : zeros({0, keys.numel()}, int64, indices.device()));
    b.ret(1, n ? reshape(sums, shape) : values);
  });
}

aj_status* values_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    give(b.call(), any_parts_of(b.tensor(0), "input").values.detach());
  });
}

aj_status* values_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    const Parts& p = any_parts_of(d.tensor(0), "input");
    d.set(0, with_places(p, d.grad(0)));
  });
}

namespace {

const Parts& in_order(const Tensor& t, std::string_view what) {
  const Parts& p = any_parts_of(t, "input");
  want(!p.is_coo() || p.coalesced, what, "() wants a coalesced tensor; call coalesce() first, or _",
       what, "() for them as they are kept");
  return p;
}

}  // namespace

aj_status* coalesced_values_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    in_order(b.tensor(0), "values");
    b.ret(0, _values(b.tensor(0)));
  });
}
aj_status* indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = parts_of(b.tensor(0), "input");
    if (!p.is_coo()) refuse("indices", p, "COO tensors have indices");
    give(b.call(), p.indices.detach());
  });
}
aj_status* coalesced_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = in_order(b.tensor(0), "indices");
    if (!p.is_coo()) refuse("indices", p, "COO tensors have indices");
    give(b.call(), p.indices.detach());
  });
}
aj_status* nnz_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { b.ret(0, Scalar(any_parts_of(b.tensor(0), "input").count())); });
}
aj_status* sparse_dim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts* p = maybe_parts(b.tensor(0));
    b.ret(0, Scalar(p ? p->sparse_dim() : int64_t(0)));
  });
}
aj_status* dense_dim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts* p = maybe_parts(b.tensor(0));
    b.ret(0, Scalar(p ? p->dense_dim() : b.tensor(0).ndim()));
  });
}
aj_status* is_coalesced_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = any_parts_of(b.tensor(0), "input");
    if (!p.is_coo()) refuse("is_coalesced", p, "COO tensors are coalesced or not");
    b.ret(0, Scalar(bool(p.coalesced)));
  });
}

aj_status* coalesce_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = parts_of(b.tensor(0), "input");
    if (!p.is_coo()) refuse("coalesce", p, "COO tensors are coalesced");
    b.ret(0, p.coalesced ? b.tensor(0) : coo_coalesce(b.tensor(0)));
  });
}
aj_status* coo_coalesce_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    give(b.call(), wrapped(coalesced(parts_of(b.tensor(0), "input"))));
  });
}

aj_status* sparse_to_dense_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { give(b.call(), dense_of(any_parts_of(b.tensor(0), "input"))); });
}

aj_status* sparse_to_dense_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined()) return;
    if (!d.flag(1)) return d.set(0, d.grad(0));
    // Each place once: what is read for one that stands twice would count twice.
    const Tensor t = d.tensor(0).detach();
    d.set(0, sparse_mask(d.grad(0), any_parts_of(t, "input").is_coo() ? coalesce(t) : t));
  });
}

aj_status* dense_to_coo_body(void*, aj_call* call) {
  return kit::compose(
      call, [](kit::Body& b) { give(b.call(), wrapped(coo_of_dense(b.tensor(0), b.integer(1)))); });
}

aj_status* dense_to_coo_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (g.defined()) d.set(0, is_sparse(g) ? sparse_to_dense(g, false) : g);
  });
}

aj_status* sparse_mask_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &mask = b.tensor(1);
    want(std::ranges::equal(t.shape(), mask.shape()),
         "input and mask must have one shape, they have ", shown(t), " and ", shown(mask));
    const Parts& p = any_parts_of(mask, "mask");
    b.ret(0, with_places(p, values_like(t, p)));
  });
}

aj_status* coo_unordered_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Parts p = parts_of(b.tensor(0), "input");
    if (!p.is_coo()) refuse("_coalesced_", p, "COO tensors are coalesced or not");
    p.coalesced = false;
    give(b.call(), wrapped(std::move(p)));
  });
}

aj_status* sparse_repeat_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Parts& p = parts_of(b.tensor(0), "input");
    Sizes size(b.ints(1));
    want(broadcast(p.size, size) == size, "a sparse tensor of size ", shown(p.size),
         " is not repeated to ", shown(size));
    give(b.call(), wrapped(repeated(p, size)));
  });
}

// saved: input. The gradients of all that an element became are added.
aj_status* sparse_repeat_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined() || !d.need(0)) return;
    const Parts& p = any_parts_of(d.tensor(0), "input");
    d.set(0, with_places(p, values_like(summed_to(g, p.size), p)));
  });
}

aj_status* embedding_rows_sparse_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    if (!d.grad(0).defined() || !d.need(0)) return;
    Tensor indices = d.tensor(0), g = d.grad(0);
    if (const int64_t padding = d.integer(2); padding >= 0) {
      Tensor kept = reshape(nonzero(ne(indices, padding)), {-1});
      indices = index_select(indices, 0, kept);
      g = index_select(g, 0, kept);
    }
    d.set(0, sparse_coo(unsqueeze(indices, 0), g, Sizes(d.ints(1)), false));
  });
}

}  // namespace adjoin::ops

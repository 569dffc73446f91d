// core/ops/shape.cpp: joining, repeating and padding by views, copies and indices.
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/host.hpp>
#include <adjoin/kit/order.hpp>
#include <algorithm>

namespace adjoin::ops {

aj_status* cat_same_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Tensors all = c.tensors(0);
    want(all.size() > 0, "no tensors are given");
    int64_t d = c.integer(1);
    Sizes shape = sizes_of(all[0]);
    if (shape.empty())
      kit::raise(AJ_INVALID_ARGUMENT, "a 0-dim tensor cannot be joined; use stack()");
    shape[d] = 0;
    for (const Tensor& t : all) {
      want(t.ndim() == int64_t(shape.size()) && t.dtype() == all[0].dtype(),
           "tensors differ in dimensions or dtype: ", shown(all[0]), " ", all[0].dtype(), " and ",
           shown(t), " ", t.dtype());
      for (int64_t i = 0; i < t.ndim(); ++i)
        want(i == d || t.size(i) == shape[i], "Sizes of tensors must match except in dimension ", d,
             ": ", shown(all[0]), " and ", shown(t));
      shape[d] += t.size(d);
    }
    c.out(0, all[0].dtype(), shape);
  });
}

// A vector without elements is passed over whatever its dimensions, as PyTorch does.
aj_status* cat_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors all = b.tensors(0);
    if (all.size() == 0) kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "no tensors are given");
    DLDataType dtype = all[0].dtype();
    bool mixed = false;
    std::vector<Tensor> kept;
    for (const Tensor& t : all) {
      if (!(t.dtype() == dtype)) {
        kit::check(kit::env.core->dtype_promote(dtype, t.dtype(), &dtype));
        mixed = true;
      }
      want(t.ndim() > 0, "a 0-dim tensor cannot be joined; use stack()");
      if (t.ndim() != 1 || t.size(0) != 0) kept.push_back(t);
    }
    if (kept.empty()) kept.push_back(all[0]);
    int64_t d = b.integer(1);
    for (Tensor& t : kept) {
      want(t.ndim() == kept[0].ndim(),
           "tensors differ in their number of dimensions: ", shown(kept[0]), " and ", shown(t));
      for (int64_t i = 0; i < t.ndim(); ++i)
        want(i == d || t.size(i) == kept[0].size(i),
             "Sizes of tensors must match except in dimension ", d, ": ", shown(kept[0]), " and ",
             shown(t));
      if (mixed && !(t.dtype() == dtype)) t = to(t, dtype);
    }
    bool last = std::ranges::all_of(
        kept, [](const Tensor& t) { return is_channels_last(t) || lies_channels_last(t); });
    if (!last) return b.ret(0, cat_same(kept, d));
    for (Tensor& t : kept) t = movedim(t, {1}, {-1});
    int64_t turned = d == 0 ? 0 : d == 1 ? kept[0].ndim() - 1 : d - 1;
    b.ret(0, movedim(cat_same(kept, turned), {-1}, {1}));
  });
}

aj_status* cat_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t d = b.integer(2), at = 0;
    std::vector<Tensor> pieces;
    for (const Tensor& t : b.tensors(1)) {
      want(t.ndim() == b.tensor(0).ndim(), "grad ", shown(b.tensor(0)), " and a tensor ", shown(t),
           " differ in dimensions");
      pieces.push_back(cut(b.tensor(0), d, at, at + t.size(d)));
      at += t.size(d);
    }
    want(at == b.tensor(0).size(d), "the tensors have ", at, " elements along dimension ", d,
         ", grad ", shown(b.tensor(0)), " has ", b.tensor(0).size(d));
    b.ret(0, pieces);
  });
}

namespace {

std::vector<Tensor> mapped(Tensors all, auto f) {
  std::vector<Tensor> out;
  for (const Tensor& t : all) out.push_back(f(t));
  return out;
}

}  // namespace

aj_status* stack_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors all = b.tensors(0);
    want(all.size() > 0, "no tensors are given");
    int64_t d = b.integer(1);
    b.ret(0, cat(mapped(all,
                        [&](const Tensor& t) {
                          want(std::ranges::equal(t.shape(), all[0].shape()),
                               "shapes differ: ", shown(all[0]), " and ", shown(t),
                               "; cut or pad them to one shape, or use cat()");
                          return unsqueeze(t, d);
                        }),
                 d));
  });
}

aj_status* vstack_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want(b.tensors(0).size() > 0, "no tensors are given");
    b.ret(0, cat(mapped(b.tensors(0),
                        [](const Tensor& t) {
                          return t.ndim() >= 2 ? t : reshape(t, {1, -1});
                        }),
                 0));
  });
}

aj_status* hstack_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors all = b.tensors(0);
    want(all.size() > 0, "no tensors are given");
    b.ret(0, cat(mapped(all, [](const Tensor& t) { return t.ndim() ? t : reshape(t, {1}); }),
                 all[0].ndim() > 1));
  });
}

aj_status* meshgrid_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensors all = b.tensors(0);
    want(all.size() > 0, "expects a non-empty TensorList");
    bool xy = b.text(1) == "xy" && all.size() >= 2;
    want(b.text(1) == "ij" || b.text(1) == "xy",
         "indexing must be one of \"xy\" or \"ij\", it is '", b.text(1), "'");
    Sizes shape;
    for (const Tensor& t : all) {
      want(t.ndim() <= 1, "Expected 0D or 1D tensor in the list, this shape is ", shown(t));
      want(t.dtype() == all[0].dtype(), "expects all tensors to have the same dtype, they have ",
           all[0].dtype(), " and ", t.dtype(), "; cast one with .to()");
      shape.push_back(t.numel());
    }
    if (xy) std::swap(shape[0], shape[1]);
    std::vector<Tensor> out;
    for (size_t i = 0; i < all.size(); ++i) {
      Sizes one(all.size(), 1);
      one[xy && i < 2 ? 1 - i : i] = all[i].numel();
      out.push_back(expand(view(all[i], one), shape));
    }
    b.ret(0, out);
  });
}

aj_status* repeat_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints repeats = b.ints(1);
    int64_t added = int64_t(repeats.size()) - t.ndim();
    want(added >= 0, "repeats ", shown(repeats), " must name each dimension of shape ", shown(t));
    Sizes spread, wide, shape;
    for (int64_t i = 0; i < int64_t(repeats.size()); ++i) {
      want(repeats[i] >= 0, "a number of repeats is negative: ", shown(repeats));
      int64_t size = i < added ? 1 : t.size(i - added);
      spread.insert(spread.end(), {1, size});
      wide.insert(wide.end(), {repeats[i], size});
      shape.push_back(times(repeats[i], size));
    }
    b.ret(0, reshape(clone(expand(reshape(t, spread), wide), MemoryFormat::contiguous), shape));
  });
}

aj_status* tile_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes dims = b.ints(1).vec();
    int64_t missing = b.tensor(0).ndim() - int64_t(dims.size());
    if (missing > 0) dims.insert(dims.begin(), size_t(missing), 1);
    b.ret(0, repeat(b.tensor(0), dims));
  });
}

aj_status* repeat_interleave_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    int64_t n = b.integer(1);
    Tensor t = b.given(2) ? b.tensor(0) : reshape(b.tensor(0), {-1});
    int64_t d = b.given(2) ? b.integer(2) : 0;
    if (t.ndim() == 0) t = reshape(t, {1});
    Sizes wide = sizes_of(t), shape = wide;
    wide.insert(wide.begin() + d + 1, n);
    shape[d] = times(shape[d], n);
    want(!b.given(3) || b.integer(3) == shape[d], "output_size is ", b.given(3) ? b.integer(3) : 0,
         ", the repeated dimension has ", shape[d]);
    b.ret(0, reshape(clone(expand(unsqueeze(t, d + 1), wide), MemoryFormat::contiguous), shape));
  });
}

namespace {

// How often each of n elements is repeated: as the numbers of those elements, each so often.
Tensor repeated(const Tensor& repeats, int64_t n, std::optional<int64_t> asked) {
  if (!is_integral(repeats) || repeats.dtype() == boolean)
    kit::raise(AJ_UNIMPLEMENTED, "repeats must be integers: they are ", repeats.dtype());
  want(repeats.ndim() <= 1, "repeats must be integers, one per element: ", repeats.dtype(), " ",
       shown(repeats));
  Tensor here = contiguous(to(repeats, int64, DLDevice{kDLCPU, 0}));
  const int64_t* counts = here.data<int64_t>();
  int64_t total = 0, step = repeats.numel() == 1 ? 0 : 1;
  for (int64_t i = 0; i < n; ++i) {
    want(counts[i * step] >= 0, "a number of repeats is negative: ", counts[i * step]);
    total = plus(total, counts[i * step]);
  }
  want(!asked || *asked == total, "output_size is ", asked.value_or(0), ", repeats add up to ",
       total);
  Tensor from = empty_dense(Sizes{total}, int64, DLDevice{kDLCPU, 0});
  int64_t* at = from.data<int64_t>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = counts[i * step]; k > 0; --k) *at++ = i;
  return to(from, std::nullopt, repeats.device());
}

}  // namespace

aj_status* repeat_interleave_tensor_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor t = b.given(2) ? b.tensor(0) : reshape(b.tensor(0), {-1});
    int64_t d = b.given(2) ? b.integer(2) : 0;
    if (t.ndim() == 0) t = reshape(t, {1});
    const Tensor& repeats = b.tensor(1);
    want(repeats.numel() == t.size(d) || repeats.numel() == 1, "repeats has ", repeats.numel(),
         " elements, dimension ", d, " has ", t.size(d));
    Tensor from = repeated(repeats, t.size(d), b.maybe<int64_t>(3));
    b.ret(0, index_select(t, d,
                          from.device() == t.device() ? from : to(from, std::nullopt, t.device())));
  });
}

aj_status* repeat_interleave_places_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& repeats = b.tensor(0);
    want(repeats.ndim() == 1, "repeats must be a vector, its shape is ", shown(repeats));
    b.ret(0, to(repeated(repeats, repeats.numel(), b.maybe<int64_t>(1)), repeats.dtype()));
  });
}

namespace {

struct Turn {
  int64_t dim, cutoff;  // what begins at cutoff comes first
};

// All turns at once: each part of the input is copied to where it stands afterwards.
Tensor turned(const Tensor& t, std::span<const Turn> turns) {
  Tensor out = room(t.shape(), t.dtype(), t.device());
  for (size_t part = 0; part < size_t(1) << turns.size(); ++part) {
    Tensor from = t, to = out;
    for (size_t i = 0; i < turns.size(); ++i) {
      auto [d, cutoff] = turns[i];
      int64_t n = t.size(d);
      bool front = part >> i & 1;
      from = front ? cut(from, d, 0, cutoff) : cut(from, d, cutoff, n);
      to = front ? cut(to, d, n - cutoff, n) : cut(to, d, 0, n - cutoff);
    }
    copy_(to, from);
  }
  return out;
}

}  // namespace

aj_status* roll_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints shifts = b.ints(1), dims = b.ints(2);
    bool flat = dims.is_none() || dims.empty();
    want(!shifts.empty(), "`shifts` required: none is given");
    want(shifts.size() == (flat ? 1 : dims.size()), "shifts and dimensions must align: shifts ",
         shown(shifts), ", dims ", shown(dims));
    if (t.ndim() == 0 && !flat)
      kit::raise(AJ_OUT_OF_RANGE, "dims ", shown(dims),
                 " are given and input has no dimension; drop dims, or reshape input to (1,)");
    if (t.numel() == 0) return b.ret(0, clone(t));
    Tensor out = flat ? reshape(t, {-1}) : t;
    std::vector<Turn> turns;
    for (size_t i = 0; i < shifts.size(); ++i) {
      int64_t d = flat ? 0 : dims[i], n = out.size(d), by = shifts[i] % n;
      auto had = std::ranges::find(turns, d, &Turn::dim);
      if (had == turns.end()) had = turns.insert(had, {d, 0});
      had->cutoff = (had->cutoff + n - by) % n;
    }
    std::erase_if(turns, [](const Turn& turn) { return turn.cutoff == 0; });
    if (turns.empty()) return b.ret(0, clone(t, MemoryFormat::contiguous));
    constexpr size_t most = 3;  // the parts double with each
    for (size_t i = 0; i < turns.size(); i += most)
      out = turned(out, std::span(turns).subspan(i, std::min(most, turns.size() - i)));
    b.ret(0, flat ? reshape(out, t.shape()) : in_order_of(t, out));
  });
}

aj_status* roll_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    Ints dims = d.ints(1);
    Sizes back = d.ints(0).vec();
    for (size_t i = 0; i < back.size(); ++i) {
      int64_t n = dims.is_none() || dims.empty() ? g.numel() : g.size(dims[i]);
      back[i] = n ? -(back[i] % n) : 0;
    }
    d.set(0, roll(g, back, dims));
  });
}

aj_status* flip_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints dims = c.ints(1);
    for (size_t i = 1; i < dims.size(); ++i)
      want(std::find(dims.begin(), dims.begin() + i, dims[i]) == dims.begin() + i,
           "a dimension is named twice: ", shown(dims));
    c.out_in_order(0, t.dtype(), t.shape(), t);
  });
}
aj_status* flipud_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() > 0, "Input must be >= 1-d., it has no dimension; reshape it to (1,)");
    b.ret(0, flip(t, {0}));
  });
}

aj_status* flip_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor out = b.tensor(0);
    Ints dims = b.ints(1);
    bool copied = false;
    for (int64_t d : dims) {
      if (out.ndim() == 0) continue;
      out = index_select(out, d, arange(out.size(d) - 1, -1, -1, int64, out.device()));
      copied = true;
    }
    b.ret(0, copied ? in_order_of(b.tensor(0), out) : clone(out));
  });
}

namespace {

// Which columns of each row a triangle has, written on the host.
Tensor triangle_on_host(int64_t rows, int64_t columns, int64_t diagonal, bool lower) {
  Tensor mask = empty_dense({rows, columns}, boolean, DLDevice{kDLCPU, 0});
  bool* row = mask.data<bool>();
  for (int64_t i = 0; i < rows; ++i, row += columns) {
    int64_t split = std::clamp<int64_t>(i + diagonal + lower, 0, columns);
    std::fill(row, row + split, lower);
    std::fill(row + split, row + columns, !lower);
  }
  return mask;
}

// Keeps the elements whose column minus row is at most (lower) or at least (upper) the diagonal.
Tensor triangle(const Tensor& t, int64_t diagonal, bool lower) {
  want(t.ndim() >= 2, "at least two dimensions are wanted, the shape is ", shown(t));
  int64_t n = t.size(-2),
          first = std::clamp(diagonal, -n, t.size(-1));  // beyond it nothing changes
  if (t.device().device_type == kDLCPU)
    return where(triangle_on_host(n, t.size(-1), first, lower), t, number_of(t, 0));
  Tensor rows = unsqueeze(arange(first, first + n, 1, int64, t.device()), 1),
         columns = counting(t, t.size(-1));
  return where(lower ? le(columns, rows) : ge(columns, rows), t, number_of(t, 0));
}

}  // namespace

aj_status* tril_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { b.ret(0, triangle(b.tensor(0), b.integer(1), true)); });
}

aj_status* triu_body(void*, aj_call* call) {
  return kit::compose(call,
                      [](kit::Body& b) { b.ret(0, triangle(b.tensor(0), b.integer(1), false)); });
}

namespace {

Tensor on_diagonal(const Tensor& t, int64_t offset, int64_t d1, int64_t d2) {
  want(t.ndim() > 0, "a 0-dim tensor has no last dimension");
  int64_t side = plus(t.size(-1), std::max(offset, negated(offset)));
  want(d1 != d2, "dim1 and dim2 are the same dimension ", d1);
  Sizes shape = sizes_of(t);
  shape.pop_back();
  shape.insert(shape.begin() + std::min(d1, d2), side);
  shape.insert(shape.begin() + std::max(d1, d2), side);
  return diagonal_backward(t, shape, offset, d1, d2);
}

}  // namespace

aj_status* diag_embed_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, on_diagonal(b.tensor(0), b.integer(1), b.integer(2), b.integer(3)));
  });
}

aj_status* diag_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() == 1 || t.ndim() == 2, "a vector or a matrix is wanted, the shape is ", shown(t));
    b.ret(0, t.ndim() == 1 ? on_diagonal(t, b.integer(1), 0, 1) : clone(diagonal(t, b.integer(1))));
  });
}

aj_status* trace_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    want(b.tensor(0).ndim() == 2, "a matrix is wanted, the shape is ", shown(b.tensor(0)));
    b.ret(0, sum(diagonal(b.tensor(0))));
  });
}

aj_status* one_hot_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = b.integer(1);
    if (t.numel() == 0) {
      want(n > 0, "num_classes must be given for a tensor without elements");
    } else if (n > 0 && (t.device().device_type != kDLCPU || !t.has_memory())) {
      // A wrong class is found where it is written: nobody waits for a device, or takes a batch
      // apart.
    } else {
      want(amin(t).item<int64_t>() >= 0, "a class is negative");
      int64_t largest = amax(t).item<int64_t>();
      want(n == -1 || n > largest, "class ", largest, " is not below num_classes ", n);
      if (n == -1) n = largest + 1;
    }
    Sizes shape = sizes_of(t);
    shape.push_back(n);
    static constinit kit::Op put("scatter");
    const Tensor out = zeros_of(t, shape), places = unsqueeze(t, -1);
    const aj_value args[] = {kit::value(out), kit::value(int64_t(shape.size()) - 1),
                             kit::value(places), kit::value(Scalar(1))};
    b.ret(0, kit::run_into(put.get(), args, 4, out));
  });
}

}  // namespace adjoin::ops

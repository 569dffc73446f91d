// core/ops/view_body.cpp: views by other views, and what their derivatives need.
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {

aj_status* reshape_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints shape = b.ints(1);
    b.ret(0, view(clone(t, MemoryFormat::contiguous), shape));
  });
}

aj_status* narrow_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() > 0, "a 0-dim tensor cannot be narrowed");
    int64_t d = b.integer(1), asked = b.integer(2), length = b.integer(3), size = t.size(d);
    int64_t start = asked < 0 ? asked + size : asked;
    if (start < 0 || length > size - start)
      kit::raise(AJ_OUT_OF_RANGE, "start ", asked, " and length ", length, " leave dimension ", d,
                 " of size ", size);
    b.ret(0, cut(t, d, start, start + length));
  });
}

aj_status* adjoint_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() != 1, "only supported on matrices or batches of them, the shape is ", shown(t));
    b.ret(0, conjugate(t.ndim() ? transpose(t, -2, -1) : t));
  });
}

aj_status* permute_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Ints dims = b.ints(1);
    Sizes back(dims.size(), -1);
    for (size_t i = 0; i < dims.size(); ++i) {
      want(dims[i] < int64_t(dims.size()) && back[dims[i]] < 0, "dims ", shown(dims),
           " must name each dimension once");
      int64_t& place = back[dims[i]];
      place = int64_t(i);
    }
    b.ret(0, permute(b.tensor(0), back));
  });
}

aj_status* movedim_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Ints from = b.ints(1), to = b.ints(2);
    want(from.size() == to.size(),
         "Invalid source or destination dims: they differ in length: ", shown(from), " and ",
         shown(to));
    size_t places = size_t(
        std::max<int64_t>(t.ndim(), 1));  // a number has one, which is none of its dimensions
    Sizes order(places, -1);
    std::vector<bool> moved(places, false);
    for (size_t i = 0; i < from.size(); ++i) {
      want(!moved[from[i]] && order[to[i]] < 0, "a dimension is named twice: ", shown(from), " to ",
           shown(to));
      moved[from[i]] = true;
      order[to[i]] = from[i];
    }
    int64_t next = 0;
    for (int64_t& place : order) {
      if (place >= 0) continue;
      while (moved[next]) ++next;
      place = next++;
    }
    order.resize(size_t(t.ndim()));
    b.ret(0, permute(t, order));
  });
}

aj_status* broadcast_tensors_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape;
    for (const Tensor& t : b.tensors(0)) shape = broadcast(shape, t.shape());
    std::vector<Tensor> out;
    for (const Tensor& t : b.tensors(0)) out.push_back(expand(t, shape));
    b.ret(0, out);
  });
}

constexpr int64_t kMostPieces = 1 << 24;  // a tensor each

aj_status* chunk_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = b.integer(1), d = b.integer(2);
    want(t.ndim() > 0, "a 0-dim tensor cannot be split");
    want(n > 0, "expects chunks to be greater than 0, it is 0");
    want(n <= kMostPieces || t.size(d) > 0, "chunks is ", n,
         ", more than 2^24 pieces without elements; ask for fewer");
    int64_t each = (t.size(d) + n - 1) / n;
    b.ret(0, each == 0 ? split(t, Sizes(size_t(n), 0), d) : split(t, each, d));
  });
}

aj_status* tensor_split_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t n = b.integer(1), d = b.integer(2);
    want(t.ndim() > 0, "a 0-dim tensor cannot be split");
    want(n > 0 && n <= kMostPieces, "sections must be between 1 and 2^24, it is ", n);
    Sizes sizes(size_t(n), t.size(d) / n);
    for (int64_t i = 0; i < t.size(d) % n; ++i) ++sizes[i];
    b.ret(0, split(t, sizes, d));
  });
}

aj_status* tensor_split_indices_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    want(t.ndim() > 0, "a 0-dim tensor cannot be split");
    int64_t d = b.integer(2), begin = 0;
    std::vector<Tensor> out;
    for (int64_t end : b.ints(1)) {
      out.push_back(cut(t, d, begin, end));
      begin = end;
    }
    out.push_back(cut(t, d, begin, t.size(d)));
    b.ret(0, out);
  });
}

aj_status* flatten_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t first = b.integer(1), last = b.integer(2);
    if (t.ndim() == 0) return b.ret(0, reshape(t, {1}));
    want(first <= last, "start_dim ", first, " lies behind end_dim ", last);
    if (first == last) return b.ret(0, t);
    Sizes shape;
    for (int64_t d = 0; d < t.ndim(); ++d) {
      if (d > first && d <= last)
        shape.back() *= t.size(d);
      else
        shape.push_back(t.size(d));
    }
    b.ret(0, reshape(t, shape));
  });
}

aj_status* unflatten_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    int64_t d = b.integer(1), hole = -1, known = 1;
    Sizes sizes = b.ints(2).vec();
    want(!sizes.empty(), "sizes is empty");
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == -1)
        hole = int64_t(i);
      else
        known = times(known, sizes[i]);
    }
    if (hole >= 0 && known != 0) sizes[hole] = t.size(d) / known;
    want(product(sizes) == t.size(d), "sizes ", shown(b.ints(2)), " do not multiply to ", t.size(d),
         ", the size of dimension ", d);
    Sizes shape = sizes_of(t);
    shape.erase(shape.begin() + d);
    shape.insert(shape.begin() + d, sizes.begin(), sizes.end());
    b.ret(0, view(t, shape));
  });
}

// Derivatives: zeros with the gradient where the view was.

aj_status* select_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor out = zeros_of(b.tensor(0), b.ints(1).vec());
    copy_(select(out, b.integer(2), b.integer(3)), b.tensor(0));
    b.ret(0, out);
  });
}

aj_status* slice_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor out = zeros_of(b.tensor(0), b.ints(1).vec());
    copy_(slice(out, b.integer(2), b.maybe<int64_t>(3), b.maybe<int64_t>(4), b.integer(5)),
          b.tensor(0));
    b.ret(0, out);
  });
}

aj_status* diagonal_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Tensor out = zeros_of(b.tensor(0), b.ints(1).vec());
    copy_(diagonal(out, b.integer(2), b.integer(3), b.integer(4)), b.tensor(0));
    b.ret(0, out);
  });
}

aj_status* unfold_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& g = b.tensor(0);
    Sizes shape = b.ints(1).vec();
    int64_t d = wrap_dim(b.integer(2), int64_t(shape.size())), size = b.integer(3),
            step = b.integer(4);
    if (shape.empty()) return b.ret(0, reshape(g, Sizes()));
    Tensor places = unfold(counting(g, shape[d]), 0, size, step);
    Tensor windows =
        flatten(movedim(g, {-1}, {d + 1}), d, d + 1);  // the window behind its dimension
    b.ret(0, index_add_(zeros_of(g, shape), d, reshape(places, {-1}), windows));
  });
}

namespace {

// A gradient that is there, for the others to be like.
const Tensor& one_of(Tensors grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return g;
  kit::raise(AJ_INVALID_ARGUMENT, "none of the ", grads.size(), " gradients is given");
}

int64_t dim_of(const Sizes& shape, int64_t dim) {
  want(!shape.empty(), "a 0-dim tensor has no pieces");
  return wrap_dim(dim, int64_t(shape.size()));
}

Tensor join_or_zeros(Tensors grads, const Sizes& shape, const Sizes& sizes, int64_t d) {
  const Tensor* like = &one_of(grads);
  want(grads.size() == sizes.size(), grads.size(), " gradients are given for ", sizes.size(),
       " pieces: ", shown(sizes));
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < grads.size(); ++i) {
    Sizes piece = shape;
    piece[d] = sizes[i];
    pieces.push_back(grads[i].defined() ? grads[i] : zeros_of(*like, piece));
  }
  return cat(pieces, d);
}

}  // namespace

aj_status* split_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape = b.ints(1).vec();
    int64_t each = b.integer(2), d = dim_of(shape, b.integer(3)), n = shape[d];
    want(each > 0 || (each == 0 && n == 0), "split_size must be positive: ", each);
    int64_t pieces = each ? n / each + (n % each != 0) : 0;
    want(pieces <= int64_t(b.tensors(0).size()), b.tensors(0).size(), " gradients are given for ",
         pieces, " pieces of ", each);
    Sizes sizes(std::max<int64_t>(pieces, 1), each);
    sizes.back() = n - each * int64_t(sizes.size() - 1);
    b.ret(0, join_or_zeros(b.tensors(0), shape, sizes, d));
  });
}

aj_status* split_sizes_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape = b.ints(1).vec();
    int64_t d = dim_of(shape, b.integer(3));
    b.ret(0, join_or_zeros(b.tensors(0), shape, b.ints(2).vec(), d));
  });
}

aj_status* unbind_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape = b.ints(1).vec();
    int64_t d = dim_of(shape, b.integer(2));
    Sizes slice = shape;
    slice.erase(slice.begin() + d);
    const Tensor* like = &one_of(b.tensors(0));
    std::vector<Tensor> pieces;
    for (const Tensor& g : b.tensors(0)) pieces.push_back(g.defined() ? g : zeros_of(*like, slice));
    b.ret(0, stack(pieces, d));
  });
}

}  // namespace adjoin::ops

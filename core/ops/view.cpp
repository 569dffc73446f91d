// core/ops/view.cpp: sizes, strides and offsets of views.
#include <adjoin/kit/infer.hpp>

#include "core/tensor/tensor.hpp"

namespace adjoin::ops {
namespace {

// Where the first element is, as far as its alignment goes; a handle says nothing of that.
uint64_t begin_of(const Tensor& t) {
  bool handle = adjoin::device(t.get())->flags & AJ_DEV_OPAQUE_POINTERS;
  return t.dl().byte_offset + (handle ? 0 : uint64_t(t.dl().data));
}

// Sizes and strides that a view begins with and changes; no lists, for a view is little else.
class Geometry {
 public:
  explicit Geometry(const Tensor& t) : n_(size_t(t.ndim())) {
    for (size_t d = 0; d < n_; ++d) shape_[d] = t.shape()[d], strides_[d] = t.strides()[d];
  }
  std::span<int64_t> shape() { return {shape_, n_}; }
  std::span<int64_t> strides() { return {strides_, n_}; }
  void erase(int64_t d) {
    --n_;
    for (size_t i = size_t(d); i < n_; ++i)
      shape_[i] = shape_[i + 1], strides_[i] = strides_[i + 1];
  }
  void insert(int64_t d, int64_t size, int64_t stride) {
    for (size_t i = n_++; i > size_t(d); --i)
      shape_[i] = shape_[i - 1], strides_[i] = strides_[i - 1];
    shape_[d] = size, strides_[d] = stride;
  }
  void append(int64_t size, int64_t stride) { insert(int64_t(n_), size, stride); }

 private:
  size_t n_;
  int64_t shape_[kMaxDims + 1], strides_[kMaxDims + 1];  // one too many is refused, with its number
};

void declare(const Infer& c, Geometry& g, int64_t offset = 0) {
  c.view(c.tensor(0).dtype(), g.shape(), g.strides(), offset);
}

// Sizes with the one that is -1 worked out.
Sizes filled_in(Ints asked, int64_t numel) {
  Sizes shape(asked);
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      want(hole < 0, "only one size may be -1: ", shown(asked));
      hole = int64_t(i);
    } else {
      want(shape[i] >= 0, "a size is negative: ", shown(asked), "; -1 alone has a meaning");
      known = times(known, shape[i]);
    }
  }
  if (hole >= 0) {
    want(known != 0, "the size -1 is ambiguous for a tensor of ", numel,
         " elements: ", shown(asked));
    want(numel % known == 0, "shape ", shown(asked), " does not fit ", numel,
         " elements: they are no multiple of ", known);
    shape[hole] = numel / known;
  }
  want(product(shape) == numel, "shape ", shown(asked), " does not fit ", numel,
       " elements: it has ", product(shape),
       hole < 0 ? "; one size may be -1, which is then worked out" : "");
  return shape;
}

// Strides that show a tensor in another shape without a copy; false if there are none. Dimensions
// of the old shape that lie behind each other in memory form chunks; the new shape must cut within
// chunks.
bool view_strides(const Tensor& t, const Sizes& shape, Sizes* strides) {
  if (t.numel() == 0) {
    *strides = std::equal(shape.begin(), shape.end(), t.shape().begin(), t.shape().end())
                   ? Sizes(t.strides().begin(), t.strides().end())
                   : c_strides(shape);
    return true;
  }
  if (t.is_contiguous()) {
    *strides = c_strides(shape);
    return true;
  }
  strides->assign(shape.size(), 1);
  int64_t to = int64_t(shape.size()) - 1, chunk = 1, seen = 1;
  if (t.ndim() == 0) return true;
  int64_t base = t.stride(-1);
  for (int64_t from = t.ndim() - 1; from >= 0; --from) {
    chunk *= t.size(from);
    bool ends = from == 0 || (t.size(from - 1) != 1 && t.stride(from - 1) != chunk * base);
    if (!ends) continue;
    for (; to >= 0 && (seen < chunk || shape[to] == 1); --to) {
      (*strides)[to] = seen * base;
      seen *= shape[to];
    }
    if (seen != chunk) return false;
    if (from > 0) {
      base = t.stride(from - 1);
      chunk = seen = 1;
    }
  }
  return to == -1;
}

// What view and reshape are nearly always: elements of a dense tensor in another shape of few
// dimensions, without lists in between. False: something is odd, and the others say what.
bool view_dense(aj_call* call) {
  constexpr uint32_t kFew = 8;
  const Tensor& t = Infer(call).tensor(0);
  const aj_value& asked = call->args[1];
  if (asked.tag != AJ_INTS || asked.aux > kFew || !t.is_contiguous()) return false;
  const int64_t numel = t.numel();
  int64_t shape[kFew], strides[kFew], known = 1, step = 1;
  int hole = -1, n = int(asked.aux);
  for (int i = 0; i < n; ++i) {
    shape[i] = asked.v.ints[i];
    if (shape[i] == -1 && hole < 0)
      hole = i;
    else if (shape[i] <= 0 || __builtin_mul_overflow(known, shape[i], &known))
      return false;
  }
  if (numel == 0 || (hole < 0 ? known != numel : numel % known != 0)) return false;
  if (hole >= 0) shape[hole] = numel / known;
  for (int i = n; i-- > 0; step *= shape[i]) strides[i] = step;
  kit::check(kit::env.op->declare_view(call, 0, 1, 0, t.dtype(), n, shape, strides, 0));
  return true;
}

}  // namespace

aj_status* alias_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Geometry g(c.tensor(0));
    declare(c, g);
  });
}

aj_status* view_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    if (view_dense(c.call())) return;
    const Tensor& t = c.tensor(0);
    Sizes shape = filled_in(c.ints(1), t.numel()), strides;
    want(view_strides(t, shape, &strides), "strides ", shown(t.strides()), " of a tensor of shape ",
         shown(t), " do not allow a view of shape ", shown(shape), "; use reshape()");
    c.view(t.dtype(), shape, strides);
  });
}

// Declares nothing where only a copy has the shape.
aj_status* reshape_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    if (view_dense(c.call())) return;
    const Tensor& t = c.tensor(0);
    Sizes shape = filled_in(c.ints(1), t.numel()), strides;
    if (view_strides(t, shape, &strides)) c.view(t.dtype(), shape, strides);
  });
}

aj_status* view_dtype_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    DLDataType to = c.dtype(1);
    int64_t before = (t.dtype().bits + 7) / 8, after = (to.bits + 7) / 8;
    Geometry g(t);
    if (before == after) return c.view(to, g.shape(), g.strides());
    want(t.ndim() > 0, "self.dim() cannot be 0 to view ", t.dtype(), " as ", to,
         " (different element sizes); unsqueeze it first");
    want(t.stride(-1) == 1, "self.stride(-1) must be 1 to view ", t.dtype(), " as ", to,
         " (different element sizes), but got ", t.stride(-1));
    int64_t fine = std::max(before / after, int64_t(1)),
            coarse = std::max(after / before, int64_t(1));
    want(begin_of(t) % uint64_t(after) == 0, "self.storage_offset() must be divisible by ", coarse,
         " to view ", t.dtype(), " as ", to, " (different element sizes), but got ",
         begin_of(t) / uint64_t(before));
    want(g.shape().back() % coarse == 0, "self.size(-1) must be divisible by ", coarse, " to view ",
         t.dtype(), " as ", to, " (different element sizes), but got ", g.shape().back());
    for (size_t i = 0; i + 1 < g.strides().size(); ++i) {
      want(g.strides()[i] % coarse == 0, "self.stride(", i, ") must be divisible by ", coarse,
           " to view ", t.dtype(), " as ", to, " (different element sizes), but got ",
           g.strides()[i]);
      g.strides()[i] = g.strides()[i] * fine / coarse;
    }
    g.shape().back() = g.shape().back() * fine / coarse;
    c.view(to, g.shape(), g.strides());
  });
}

aj_status* as_strided_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Sizes shape = c.ints(1), strides = c.ints(2).vec();
    want(shape.size() == strides.size(),
         "mismatch in length of strides and shape: ", shown(strides), " and ", shown(shape));
    for (size_t i = 0; i < shape.size(); ++i) {
      want(strides[i] >= 0,
           "Negative strides are not supported at the moment, got strides: ", shown(strides));
      want(shape[i] >= 0, "negative sizes: ", shown(shape));
    }
    uint64_t bytes = 0, begin = 0, id = 0;
    void* data = nullptr;
    kit::check(kit::env.core->tensor_storage(t.get(), &data, &bytes, &begin, &id));
    int64_t item = (t.dtype().bits + 7) / 8, first = int64_t(begin) / item;
    int64_t from = c.given(3) ? c.integer(3) : first, last = from;
    want(from >= 0, "storage_offset is negative: ", from);
    bool empty = false, over = false;
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t reach = 0;
      empty |= shape[i] == 0;
      over |= shape[i] && __builtin_mul_overflow(shape[i] - 1, strides[i], &reach);
      over |= __builtin_add_overflow(last, reach, &last);
    }
    want(empty || (!over && last < int64_t(bytes) / item), "size ", shown(shape), ", stride ",
         shown(strides), " and storage_offset ", from, " reach outside the memory of ",
         int64_t(bytes) / item, " elements");
    int64_t offset = from - first;
    c.view(t.dtype(), shape, strides, offset);
  });
}

aj_status* select_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t d = c.integer(1), index = c.integer(2);
    if (!t.ndim())
      kit::raise(AJ_OUT_OF_RANGE, "a 0-dim tensor has nothing to select from; use item()");
    int64_t size = t.size(d), at = index < 0 ? index + size : index;
    if (at < 0 || at >= size)
      kit::raise(AJ_OUT_OF_RANGE, "index ", index, " is out of bounds for dimension ", d,
                 " with size ", size);
    Geometry g(t);
    int64_t offset = at * g.strides()[d];
    g.erase(d);
    declare(c, g, offset);
  });
}

aj_status* slice_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(t.ndim() > 0, "a 0-dim tensor cannot be sliced");
    int64_t d = c.integer(1), size = t.size(d), step = c.integer(4);
    want(step > 0, "step must be positive: ", step);
    auto place = [&](uint32_t i, int64_t otherwise) {
      if (!c.given(i)) return otherwise;
      int64_t x = c.integer(i);
      return std::clamp<int64_t>(x < 0 ? x + size : x, 0, size);
    };
    int64_t start = place(2, 0), end = std::max(place(3, size), start);
    Geometry g(t);
    int64_t offset = start * g.strides()[d];
    g.shape()[d] = (end - start) / step + ((end - start) % step != 0);
    g.strides()[d] = times(g.strides()[d], step);
    declare(c, g, offset);
  });
}

aj_status* transpose_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Geometry g(c.tensor(0));
    if (!g.shape().empty()) {
      std::swap(g.shape()[c.integer(1)], g.shape()[c.integer(2)]);
      std::swap(g.strides()[c.integer(1)], g.strides()[c.integer(2)]);
    }
    declare(c, g);
  });
}

aj_status* t_view(void*, aj_call* call) {
  return infer(call, [call](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t n = t.ndim(), shape[2], strides[2];
    want(n <= 2, "at most two dimensions are wanted, the shape is ", shown(t), "; use transpose()");
    for (int64_t i = 0; i < n; ++i) {
      shape[i] = t.dl().shape[n - 1 - i];
      strides[i] = t.dl().strides[n - 1 - i];
    }
    kit::check(kit::env.op->declare_view(call, 0, 1, 0, t.dtype(), int32_t(n), shape, strides, 0));
  });
}

aj_status* permute_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints dims = c.ints(1);
    want(int64_t(dims.size()) == t.ndim(), "dims ", shown(dims),
         " must name each dimension of shape ", shown(t), " once");
    Geometry g(t);
    uint64_t seen = 0;  // a bit for each of at most 64 dimensions
    for (size_t i = 0; i < dims.size(); ++i) {
      want(!(seen >> dims[i] & 1), "dimension ", dims[i], " is named twice: ", shown(dims));
      seen |= uint64_t{1} << dims[i];
      g.shape()[i] = t.shape()[dims[i]];
      g.strides()[i] = t.strides()[dims[i]];
    }
    declare(c, g);
  });
}

aj_status* squeeze_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Geometry g(c.tensor(0));
    for (size_t i = g.shape().size(); i-- > 0;)
      if (g.shape()[i] == 1) g.erase(int64_t(i));
    declare(c, g);
  });
}

aj_status* squeeze_dim_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Geometry g(c.tensor(0));
    Sizes dims = c.ints(1);
    std::sort(dims.rbegin(), dims.rend());
    want(std::unique(dims.begin(), dims.end()) == dims.end(),
         "a dimension is named twice: ", shown(c.ints(1)));
    for (int64_t d : dims)
      if (d < int64_t(g.shape().size()) && g.shape()[d] == 1) g.erase(d);
    declare(c, g);
  });
}

aj_status* unsqueeze_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    Geometry g(c.tensor(0));
    int64_t n = c.tensor(0).ndim(), d = c.integer(1);
    g.insert(d, 1, d < n ? g.shape()[d] * g.strides()[d] : 1);
    declare(c, g);
  });
}

aj_status* expand_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Sizes shape = c.ints(1), strides(shape.size(), 0);
    int64_t added = int64_t(shape.size()) - t.ndim();
    want(added >= 0, "size ", shown(shape), " has fewer dimensions than shape ", shown(t));
    int64_t behind = 1;  // elements of the dimensions behind: the step of a new one of size 1
    for (int64_t i = int64_t(shape.size()); i-- > 0;) {
      int64_t from = i < added ? 1 : t.size(i - added);
      want(shape[i] >= 0 || (shape[i] == -1 && i >= added),
           "a new size is negative: ", shown(c.ints(1)));
      if (shape[i] == -1) shape[i] = from;
      want(from == shape[i] || from == 1, "shape ", shown(t), " does not expand to ",
           shown(c.ints(1)), ". The expanded size of the tensor (", shape[i],
           ") must match the existing size (", from, ") at non-singleton dimension ", i);
      if (from == shape[i] && t.ndim()) strides[i] = i < added ? behind : t.stride(i - added);
      behind = shape[i] * strides[i];
    }
    c.view(t.dtype(), shape, strides);
  });
}

namespace {

void split(const Infer& c, int64_t d, const Sizes& sizes) {
  const Tensor& t = c.tensor(0);
  Geometry g(t);
  if (sizes.empty()) return c.no_items();
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    g.shape()[d] = sizes[i];
    c.item(uint32_t(i), uint32_t(sizes.size()), t.dtype(), g.shape(), g.strides(),
           at * g.strides()[d]);
    at += sizes[i];
  }
}

}  // namespace

aj_status* split_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(t.ndim() > 0, "a 0-dim tensor cannot be split");
    int64_t each = c.integer(1), d = c.integer(2), size = t.size(d);
    want(each > 0 || (each == 0 && size == 0), "split_size must be positive: ", each);
    Sizes sizes;
    for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
    if (sizes.empty()) sizes.push_back(0);
    split(c, d, sizes);
  });
}

aj_status* split_sizes_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(t.ndim() > 0, "a 0-dim tensor cannot be split");
    Sizes sizes = c.ints(1);
    int64_t d = c.integer(2), sum = 0;
    for (int64_t s : sizes) {
      want(s >= 0, "a size is negative: ", shown(sizes));
      sum = plus(sum, s);
    }
    want(sum == t.size(d), "sizes ", shown(sizes), " sum to ", sum, ", dimension ", d, " has ",
         t.size(d));
    split(c, d, sizes);
  });
}

aj_status* unbind_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    if (!t.ndim()) kit::raise(AJ_OUT_OF_RANGE, "a 0-dim tensor cannot be unbound");
    int64_t d = c.integer(1), n = t.size(d), step = t.stride(d);
    if (n == 0) return c.no_items();
    Geometry g(t);
    g.erase(d);
    for (int64_t i = 0; i < n; ++i)
      c.item(uint32_t(i), uint32_t(n), t.dtype(), g.shape(), g.strides(), i * step);
  });
}

aj_status* diagonal_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t offset = c.integer(1), a = c.integer(2), b = c.integer(3);
    want(t.ndim() >= 2, "at least two dimensions are wanted, the shape is ", shown(t));
    want(a != b, "dim1 and dim2 are the same dimension ", a);
    Geometry g(t);
    int64_t length = offset >= 0 ? std::min(t.size(a), t.size(b) - offset)
                                 : std::min(t.size(a) + offset, t.size(b));
    length = std::max<int64_t>(length, 0);
    int64_t begin = length == 0 ? 0 : offset >= 0 ? offset * t.stride(b) : -offset * t.stride(a);
    int64_t step = t.stride(a) + t.stride(b);
    g.erase(std::max(a, b));
    g.erase(std::min(a, b));
    g.append(length, step);
    declare(c, g, begin);
  });
}

aj_status* unfold_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t d = c.integer(1), size = c.integer(2), step = c.integer(3),
            length = t.ndim() ? t.size(d) : 1;
    want(size <= length, "size is ", size, ", dimension ", d, " of shape ", shown(t), " has only ",
         length, " elements");
    want(step > 0, "step must be positive: ", step);
    Geometry g(t);
    g.append(size, t.ndim() ? t.stride(d) : 1);
    if (t.ndim()) {
      g.shape()[d] = (length - size) / step + 1;
      g.strides()[d] = times(g.strides()[d], step);
    }
    declare(c, g);
  });
}

namespace {

void part(const Infer& c, int64_t offset) {
  const Tensor& t = c.tensor(0);
  Geometry g(t);
  if (t.is_complex())
    for (int64_t& s : g.strides()) s *= 2;
  c.view(real_of(t.dtype()), g.shape(), g.strides(), offset);
}

}  // namespace

aj_status* real_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) { part(c, 0); });
}

aj_status* imag_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    if (!c.tensor(0).is_complex())
      kit::raise(AJ_UNIMPLEMENTED, "imag is not implemented for tensors with non-complex dtypes: ",
                 "a complex tensor is wanted, this one is ", c.tensor(0).dtype());
    part(c, 1);
  });
}

aj_status* view_as_real_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    if (!t.is_complex())
      kit::raise(AJ_UNIMPLEMENTED, "a complex tensor is wanted, this one is ", t.dtype());
    Geometry g(t);
    for (int64_t& s : g.strides()) s *= 2;
    g.append(2, 1);
    c.view(real_of(t.dtype()), g.shape(), g.strides());
  });
}

aj_status* view_as_complex_view(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    bool wide = t.dtype() == float16 || t.dtype() == float32 || t.dtype() == float64;
    want(wide, "float16, float32 or float64 is wanted, this tensor is ", t.dtype());
    want(t.ndim() > 0 && t.size(-1) == 2, "the last size must be 2: ", shown(t));
    want(t.stride(-1) == 1, "the last dimension must be dense: its stride is ", t.stride(-1));
    uint64_t pair = uint64_t(t.dtype().bits) / 4;
    want(begin_of(t) % pair == 0,
         "storage_offset must be divisible by 2, or pairs begin in between: clone() the tensor "
         "first");
    Geometry g(t);
    g.erase(t.ndim() - 1);
    for (size_t i = 0; i < g.strides().size(); ++i) {
      want(g.strides()[i] % 2 == 0 || g.shape()[i] == 1,
           "strides before the last must be even: ", shown(t.strides()));
      g.strides()[i] /= 2;
    }
    DLDataType pairs = t.dtype();
    pairs.code = kDLComplex, pairs.bits = uint8_t(2 * pairs.bits);
    c.view(pairs, g.shape(), g.strides());
  });
}

}  // namespace adjoin::ops

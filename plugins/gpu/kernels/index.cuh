// plugins/gpu/kernels/index.cuh: reading at indices, joining tensors. An index out of
// range reads element 0 and is reported.
#include <optional>

#include "../places.cuh"
#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

constexpr int kIndexDims = 16;
using List = std::span<aj_tensor* const>;
using all_types_and_halves = kit::Join<all_types, halves>;

// x[i, :, j]: where element n of the result lies in the input. Indices
// broadcast over each other; negative ones count from the end.
struct IndexWalk {
  int32_t ndim;                 // of the result
  int32_t indices;              // how many there are
  Divisor sizes[kIndexDims];    // of the result
  int64_t strides[kIndexDims];  // into the input; 0: indexed
  const int64_t* index[kIndexDims];
  int64_t index_strides[kIndexDims][kIndexDims];  // by dimension of the result
  int64_t bound[kIndexDims], step[kIndexDims], dim[kIndexDims];
  Fault* fault;

  // -1: an index names no element, which is reported.
  AJ_DEVICE int64_t operator()(int64_t n) const {
    int64_t at = 0;
    for (int k = 0; k == 0 || k < indices; ++k) {
      int64_t rest = n, from = 0;
      for (int d = ndim - 1; d >= 0; --d) {
        int64_t i = sizes[d].split(&rest);
        if (k == 0) at += i * strides[d];
        from += i * index_strides[k][d];
      }
      if (indices == 0) break;
      int64_t i = index[k][from];
      if (i < -bound[k] || i >= bound[k]) {
        report(fault, kIndexFault, i, bound[k], dim[k]);
        return -1;
      }
      at += (i < 0 ? i + bound[k] : i) * step[k];
    }
    return at;
  }
};

void too_many(int64_t n) {
  raise(AJ_UNIMPLEMENTED, "indexing with ", n, " dimensions; at most ", kIndexDims, " are known");
}

// Shape of x[indices].
std::vector<int64_t> index_shape(Span in, List indices) {
  std::vector<int64_t> before, common, after;
  size_t first = in.size(), last = 0, given = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    first = std::min(first, d), last = d, ++given;
    TensorView t(indices[d]);
    if (common.size() < size_t(t.ndim()))
      common.insert(common.begin(), size_t(t.ndim()) - common.size(), 1);
    for (int64_t i = 1; i <= t.ndim(); ++i) {
      int64_t& size = common[common.size() - size_t(i)];
      if (size == 1)
        size = t.size(-i);
      else if (t.size(-i) != 1 && t.size(-i) != size)
        raise_as("IndexError", AJ_INVALID_ARGUMENT, "shapes of indices don't broadcast: sizes ",
                 size, " and ", t.size(-i));
    }
  }
  bool neighbours = given == last - first + 1;
  for (size_t d = 0; d < in.size(); ++d)
    if (d >= indices.size() || !indices[d])
      (neighbours && d < first ? before : after).push_back(in[d]);
  before.insert(before.end(), common.begin(), common.end());
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

// Of an input of this shape with these strides, and the result's shape.
IndexWalk index_walk(const aj_call* call, Span in, Span strides, List indices, Span result) {
  IndexWalk w = {};
  w.fault = fault_of(call);
  w.ndim = int32_t(result.size());
  if (result.size() > kIndexDims || in.size() > kIndexDims)
    too_many(int64_t(std::max(result.size(), in.size())));
  size_t first = in.size(), last = 0, given = 0;
  int64_t common = 0;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) {
      first = std::min(first, d), last = d, ++given;
      common = std::max(common, TensorView(indices[d]).ndim());
    }
  bool neighbours = given == last - first + 1;
  size_t to = 0,
         at = neighbours ? first : 0;  // where the indices' dimensions stand
  for (size_t d = 0; d < in.size(); ++d) {
    if (to == at) to += size_t(common);
    if (d < indices.size() && indices[d]) {
      TensorView index(indices[d]);
      int k = w.indices++;
      w.index[k] = reach(index.data<int64_t>());
      w.bound[k] = in[d], w.step[k] = strides[d], w.dim[k] = int64_t(d);
      for (int64_t i = 0; i < index.ndim(); ++i)
        if (index.size(i) != 1)
          w.index_strides[k][int64_t(at) + common - index.ndim() + i] = index.stride(i);
      continue;
    }
    w.strides[to++] = strides[d];
  }
  for (size_t d = 0; d < result.size(); ++d) w.sizes[d] = result[d];
  return w;
}

template <class T>
struct ReadAt {
  IndexWalk walk;
  const T* x;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    if (int64_t at = walk(i); at >= 0) out[i] = x[at];
  }
};
void index_at(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  IndexWalk w = index_walk(args.call(), x.shape(), x.strides(), args.tensors(1), out.shape());
  std::optional<Scratch> dense;  // of out=
  if (!out.dense()) dense.emplace(args.call(), x.dtype(), out.shape());
  MutView to = dense ? MutView(dense->tensor()) : out;
  visit_size(x.dtype(), [&]<class T>() {
    each(args.call(), to.numel(),
         ReadAt<T>{w, reach(reinterpret_cast<const T*>(x.bytes())),
                   reach(reinterpret_cast<T*>(to.bytes()))});
  });
  if (dense) copy(args.call(), out, TensorView(dense->tensor()));
}

// Where values broadcast to the result lie.
struct Spread {
  int32_t ndim;
  Divisor sizes[kIndexDims];
  int64_t strides[kIndexDims];
  AJ_HD int64_t operator()(int64_t n) const {
    int64_t at = 0;
    for (int d = ndim - 1; d >= 0; --d) at += sizes[d].split(&n) * strides[d];
    return at;
  }
};
template <class T>
struct WriteAt {
  IndexWalk walk;
  Spread spread;
  const T* values;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    if (int64_t at = walk(i); at >= 0) out[at] = values[spread(i)];
  }
};

// What is added to one place is added in the order of the indices.
template <class T>
struct AddAt {
  using State = Math<T>;
  Spread spread;
  const T* values;
  T* out;
  AJ_DEVICE State value(int64_t i, int64_t) const { return State(values[spread(i)]); }
  AJ_DEVICE State join(State a, State b) const { return State(scalar::Add()(a, b)); }
  AJ_DEVICE void put(int64_t at, int64_t, State s) const {
    out[at] = cast<T>(scalar::Add()(State(out[at]), s));
  }
};

void index_put_at(Args args) {
  TensorView x = args.tensor(0), values = args.tensor(2);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  bool accumulate = args.flag(3);
  auto steps = dense_strides(x.shape());
  std::vector<int64_t> shape = index_shape(x.shape(), args.tensors(1));
  IndexWalk w = index_walk(call, x.shape(), steps, args.tensors(1), shape);
  Spread s = {};
  s.ndim = w.ndim;
  int64_t n = 1;
  for (size_t d = 0; d < shape.size(); ++d) s.sizes[d] = shape[d], n *= shape[d];
  for (int64_t d = 1; d <= values.ndim(); ++d) {
    if (values.size(-d) == 1) continue;
    if (size_t(d) > shape.size() || values.size(-d) != shape[shape.size() - size_t(d)])
      raise(AJ_INVALID_ARGUMENT, "values of shape ", values, " don't broadcast to ",
            Shape{shape.data(), int64_t(shape.size())});
    s.strides[shape.size() - size_t(d)] = values.stride(-d);
  }
  visit<stored>(x.dtype(), [&]<class T>() {
    Plain<T> to = start_from<T>(call, x, out);
    std::optional<Plain<T>> made;
    if (foreign(call, values)) made.emplace(call, values);
    const T* from = made ? made->data() : reach(values.data<T>());
    if constexpr (!std::is_same_v<T, uint16_t> && !std::is_same_v<T, uint32_t> &&
                  !std::is_same_v<T, uint64_t>)
      if (accumulate) {
        join_runs(call, w, n, 1, AddAt<T>{s, from, to.data()});
        return to.commit();
      }
    each(call, n, WriteAt<T>{w, s, from, to.data()});
    to.commit();
  });
}

template <class T>
struct Select {
  const T* x;
  const int64_t* index;
  T* out;
  Divisor n, inner;
  int64_t size, dim;
  Fault* fault;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t outer = i, column = inner.split(&outer), at = n.split(&outer);
    int64_t k = checked(index[at], size, dim, fault);
    if (k >= 0) out[i] = x[(outer * size + k) * inner.size + column];
  }
};
void index_select(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Lines l(x.shape(), args.integer(1));
  Plain<int64_t> index(call, args.tensor(2));
  int64_t dim = args.integer(1) < 0 ? args.integer(1) + x.ndim() : args.integer(1);
  visit<stored>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), to(call, out);
    each(call, out.numel(),
         Select<T>{in.data(), index.data(), to.data(), args.tensor(2).numel(), l.inner, l.size, dim,
                   fault_of(call)});
    to.commit();
  });
}

template <class T>
struct Place {
  const T* from;
  T* to;
  Divisor part;       // of a line: what `from` has of it
  int64_t whole, at;  // the line, and where the part begins
  AJ_DEVICE void operator()(int64_t i) const {
    Quotient q = part.divided(i);
    to[q.whole * whole + at + q.rest] = from[i];
  }
};
void cat(Args args) {
  MutView out = args.result(0);
  const aj_call* call = args.call();
  int64_t dim = args.integer(1);
  Lines whole(out.shape(), dim);
  visit<stored>(out.dtype(), [&]<class T>() {
    Plain<T> to(call, out);
    int64_t at = 0;  // in a line
    for (aj_tensor* one : args.tensors(0)) {
      TensorView t(one);
      if (t.ndim() == 1 && t.size(0) == 0) continue;  // an empty vector goes with everything
      Lines l(t.shape(), dim);
      Plain<T> from(call, t);
      each(call, t.numel(),
           Place<T>{from.data(), to.data(), l.size * l.inner, whole.size * whole.inner, at});
      at += l.size * l.inner;
    }
    to.commit();
  });
}

// Counted per block of elements, then written behind what stands before.
template <class T>
struct CountTrue {
  const T* x;
  int64_t n, part;
  int64_t* counts;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t found = 0;
    for (int64_t k = i * part; k < (i + 1) * part && k < n; ++k) found += scalar::is_true(x[k]);
    counts[i] = found;
  }
};
template <class T>
struct WriteTrue {
  const T* x;
  int64_t n, part, ndim;
  const int64_t* starts;
  int64_t* out;
  Divisor sizes[kIndexDims];
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t to = starts[i];
    for (int64_t k = i * part; k < (i + 1) * part && k < n; ++k) {
      if (!scalar::is_true(x[k])) continue;
      int64_t rest = k;
      for (int64_t d = ndim - 1; d >= 0; --d) out[to * ndim + d] = sizes[d].split(&rest);
      ++to;
    }
  }
};
void nonzero(Args args) {
  TensorView x = args.tensor(0);
  const aj_call* call = args.call();
  if (x.ndim() > kIndexDims) too_many(x.ndim());
  constexpr int64_t part = 256;
  int64_t n = x.numel(), parts = (n + part - 1) / part, found = 0;
  visit<all_types_and_halves>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x);
    Scratch counts(call, dtype_of<int64_t>, Span(&parts, 1));
    each(call, parts, CountTrue<T>{in.data(), n, part, counts.data<int64_t>()});
    std::vector<int64_t> starts(size_t(parts) + 1, 0);
    uint64_t bytes = uint64_t(parts) * 8;
    if (parts) check(core().tensor_copy_bytes(counts.tensor(), starts.data(), bytes, 1));
    for (int64_t& count : starts) {
      int64_t here = count;
      count = found;
      found += here;
    }
    if (parts) check(core().tensor_copy_bytes(counts.tensor(), starts.data(), bytes, 0));
    int64_t shape[2] = {found, x.ndim()};
    MutView out(new_tensor(call->device, dtype_of<int64_t>, shape));
    args.call()->rets[0].tag = AJ_TENSOR;
    args.call()->rets[0].v.tensor = out.get();
    WriteTrue<T> write = {
        in.data(), n, part, x.ndim(), counts.data<int64_t>(), reach(out.data<int64_t>()), {}};
    for (int64_t d = 0; d < x.ndim(); ++d) write.sizes[d] = x.size(d);
    if (found) each(call, parts, write);
  });
}

}  // namespace

AJ_KERNELS(index_kernels) = {
    {"index_at", custom<index_at>},
    {"index_put_at", custom<index_put_at>},
    {"index_select", custom<index_select>},
    {"nonzero", custom<nonzero>},
    {"cat_same", custom<cat>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

// plugins/gpu/kernels/scatter.cuh: writing and adding at indices. What meets at one place is joined
// in the order of the indices: by a thread that has a line, or by runs.
#include <limits>

#include "../places.cuh"
#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

template <class T>
AJ_HD inline void add_to(T& place, Math<T> x) {
  place = cast<T>(scalar::Add()(Math<T>(place), x));
}

template <class T>
struct Gather {
  Named named;
  const T* x;
  T* out;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t source;
    if (int64_t at = named.place(i, &source); at >= 0) out[i] = x[at];
  }
};
void gather(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Plain<int64_t> places(call, index);
  Named n = named(call, places.data(), index, x.shape(), {}, wrapped(args.integer(1), x.ndim()));
  visit<stored>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), to(call, out);
    each(call, index.numel(), Gather<T>{n, in.data(), to.data()});
    to.commit();
  });
}

// Of several values for one place the last stays, and sums have an order.
enum class Way { copy, add };
template <class T, Way W>
struct Scatter {  // a line along dim
  Named named;
  const T* source;
  T* out;
  int64_t length;  // of the index along dim
  Divisor inner;
  AJ_DEVICE void operator()(int64_t line) const {
    for (int64_t k = 0; k < length; ++k) {
      int64_t from, at = named.place(in_line(line, k, length, inner), &from);
      if (at < 0) continue;
      if constexpr (W == Way::copy)
        out[at] = source[from];
      else
        add_to(out[at], Math<T>(source[from]));
    }
  }
};
template <class T, Way W>
struct ScatterRuns {
  using State = std::conditional_t<W == Way::copy, T, Math<T>>;
  Named named;
  const T* source;
  T* out;
  AJ_DEVICE State value(int64_t i, int64_t) const { return State(source[named.source(i)]); }
  AJ_DEVICE State join(State a, State b) const {
    if constexpr (W == Way::copy)
      return b;
    else
      return State(scalar::Add()(a, b));
  }
  AJ_DEVICE void put(int64_t at, int64_t, State s) const {
    if constexpr (W == Way::copy)
      out[at] = s;
    else
      add_to(out[at], s);
  }
};
template <class T, Way W>
void scatter_all(const aj_call* call, const Named& n, TensorView index, const T* source, T* out) {
  if (index.numel() == 0) return;
  Lines l(index.shape(), index.ndim() ? n.dim : 0);
  if (by_lines(l.outer * l.inner, l.size))
    each(call, l.outer * l.inner, Scatter<T, W>{n, source, out, l.size, l.inner});
  else
    join_runs(call, n, index.numel(), 1, ScatterRuns<T, W>{n, source, out});
}
template <class T>
struct PutNumber {
  Named named;
  T* out;
  T value;
  AJ_DEVICE void operator()(int64_t i) const {
    if (int64_t at = named(i); at >= 0) out[at] = value;
  }
};
void scatter(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  bool is_tensor = args[3].tag == AJ_TENSOR;
  TensorView source = is_tensor ? args.tensor(3) : TensorView();
  Plain<int64_t> places(call, index);
  int64_t dim = wrapped(args.integer(1), x.ndim());
  visit<stored>(x.dtype(), [&]<class T>() {
    Plain<T> to = start_from<T>(call, x, out);
    Named n =
        named(call, places.data(), index, x.shape(), is_tensor ? source.shape() : Span(), dim);
    if (is_tensor) {
      Plain<T> from(call, source);
      scatter_all<T, Way::copy>(call, n, index, from.data(), to.data());
    } else {
      each(call, index.numel(), PutNumber<T>{n, to.data(), cast<T>(number<Math<T>>(args[3]))});
    }
    to.commit();
  });
}
void scatter_add(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), source = args.tensor(3);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Plain<int64_t> places(call, index);
  Named n = named(call, places.data(), index, x.shape(), source.shape(),
                  wrapped(args.integer(1), x.ndim()));
  visit<stored_numeric>(x.dtype(), [&]<class T>() {
    Plain<T> to = start_from<T>(call, x, out), from(call, source);
    scatter_all<T, Way::add>(call, n, index, from.data(), to.data());
    to.commit();
  });
}

// Rows of a source are added to the rows of `out` that an index names; a row has `columns` numbers,
// `inner` of them neighbours.
template <class T, class To>
struct AddRows {
  using State = Math<T>;
  const int64_t* index;
  const T* source;
  To* out;
  Math<T> alpha;
  int64_t n, size, skip, dim;  // skip: an index that nothing is added for
  Divisor inner;
  Fault* fault;
  AJ_DEVICE int64_t operator()(int64_t k) const {
    return index[k] == skip ? -1 : checked(index[k], size, dim, fault);
  }
  AJ_DEVICE State value(int64_t k, int64_t column) const {
    return scalar::Mul()(alpha, Math<T>(source[in_line(column, k, n, inner)]));
  }
  AJ_DEVICE State join(State a, State b) const { return State(scalar::Add()(a, b)); }
  AJ_DEVICE void put(int64_t row, int64_t column, State s) const {
    add_to(out[in_line(column, row, size, inner)], s);
  }
};
template <class J>
struct AddColumn {
  J rows;
  AJ_DEVICE void operator()(int64_t column) const {
    for (int64_t k = 0; k < rows.n; ++k)
      if (int64_t at = rows(k); at >= 0) rows.put(at, column, rows.value(k, column));
  }
};
template <class J>
void add_rows(const aj_call* call, const J& rows, int64_t columns) {
  if (by_lines(columns, rows.n))
    each(call, columns, AddColumn<J>{rows});
  else
    join_runs(call, rows, rows.n, columns, rows);
}
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

void index_add(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(3);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Lines l(x.shape(), args.integer(1));
  Plain<int64_t> index(call, args.tensor(2));
  int64_t n = args.tensor(2).numel(), dim = wrapped(args.integer(1), x.ndim());
  visit<stored_numeric>(x.dtype(), [&]<class T>() {
    Plain<T> to = start_from<T>(call, x, out), from(call, source);
    if (source.numel())
      add_rows(call,
               AddRows<T, T>{index.data(), from.data(), to.data(), number<Math<T>>(args[4]), n,
                             l.size, kNone, dim, l.inner, fault_of(call)},
               l.outer * l.inner);
    to.commit();
  });
}

void embedding_backward(Args args) {
  TensorView grad = args.tensor(0), index = args.tensor(1);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  int64_t rows = out.size(0), width = rows ? out.numel() / rows : 0, skip = args.integer(3);
  Plain<int64_t> values(call, index);
  visit<stored_floating>(grad.dtype(), [&]<class T>() {
    using A = Math<T>;
    Plain<T> dy(call, grad);
    Plain<A> to(call, out);
    fill_zero(call, to.data(), out.numel() * int64_t(sizeof(A)));
    add_rows(call,
             AddRows<T, A>{values.data(), dy.data(), to.data(), A(1), index.numel(), rows, skip, 0,
                           width, fault_of(call)},
             width);
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(scatter_kernels) = {
    {"gather", custom<gather>},
    {"scatter", custom<scatter>},
    {"scatter_add", custom<scatter_add>},
    {"index_add", custom<index_add>},
    {"embedding_backward", custom<embedding_backward>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

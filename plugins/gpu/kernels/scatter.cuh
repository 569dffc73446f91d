// plugins/gpu/kernels/scatter.cuh: writing and adding at indices. What is added to one place is
// added by one thread in the order of the indices: the bits never depend on scheduling.
#include "../places.cuh"

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

// One thread a line along dim: of several values for one place the last stays, and sums have an
// order.
enum class Way { value, copy, add };
template <class T, Way W>
struct Scatter {
  Named named;
  const T* source;
  T* out;
  T value;
  int64_t length, inner;  // of the index along dim
  AJ_DEVICE void operator()(int64_t line) const {
    for (int64_t k = 0; k < length; ++k) {
      int64_t i = (line / inner * length + k) * inner + line % inner, from;
      int64_t at = named.place(i, &from);
      if (at < 0) continue;
      T& place = out[at];
      if constexpr (W == Way::value)
        place = value;
      else if constexpr (W == Way::copy)
        place = source[from];
      else
        add_to(place, Math<T>(source[from]));
    }
  }
};
template <class T, Way W>
void scatter_lines(const aj_call* call, const Named& n, TensorView index, const T* source, T* out,
                   T value) {
  if (index.numel() == 0) return;
  Lines l(index.shape(), index.ndim() ? n.dim : 0);
  each(call, l.outer * l.inner, Scatter<T, W>{n, source, out, value, l.size, l.inner});
}
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
      scatter_lines<T, Way::copy>(call, n, index, from.data(), to.data(), T(0));
    } else {
      scatter_lines<T, Way::value>(call, n, index, nullptr, to.data(),
                                   cast<T>(number<Math<T>>(args[3])));
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
    scatter_lines<T, Way::add>(call, n, index, from.data(), to.data(), T(0));
    to.commit();
  });
}

template <class T>
struct AddRows {
  const int64_t* index;
  const T* source;
  T* out;
  Math<T> alpha;
  int64_t n, size, inner, dim;
  Fault* fault;
  AJ_DEVICE void operator()(int64_t line) const {
    int64_t outer = line / inner, column = line % inner;
    for (int64_t k = 0; k < n; ++k)
      if (int64_t at = checked(index[k], size, dim, fault); at >= 0)
        add_to(out[(outer * size + at) * inner + column],
               scalar::Mul()(alpha, Math<T>(source[(outer * n + k) * inner + column])));
  }
};
void index_add(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(3);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Lines l(x.shape(), args.integer(1));
  Plain<int64_t> index(call, args.tensor(2));
  int64_t n = args.tensor(2).numel();
  visit<stored_numeric>(x.dtype(), [&]<class T>() {
    Plain<T> to = start_from<T>(call, x, out), from(call, source);
    if (source.numel())
      each(call, l.outer * l.inner,
           AddRows<T>{index.data(), from.data(), to.data(), number<Math<T>>(args[4]), n, l.size,
                      l.inner, wrapped(args.integer(1), x.ndim()), fault_of(call)});
    to.commit();
  });
}

template <class T>
struct EmbeddingSum {
  const int64_t* index;
  const T* grad;
  Math<T>* out;
  int64_t n, rows, width, skip;
  Fault* fault;
  AJ_DEVICE void operator()(int64_t column) const {
    for (int64_t i = 0; i < n; ++i) {
      if (index[i] == skip) continue;
      int64_t row = checked(index[i], rows, 0, fault);
      if (row >= 0) out[row * width + column] += Math<T>(grad[i * width + column]);
    }
  }
};
void embedding_backward(Args args) {
  TensorView grad = args.tensor(0), index = args.tensor(1);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  int64_t rows = out.size(0), width = rows ? out.numel() / rows : 0, skip = args.integer(3);
  Plain<int64_t> values(call, index);
  visit<stored_floating>(grad.dtype(), [&]<class T>() {
    Plain<T> dy(call, grad);
    Plain<Math<T>> to(call, out);
    fill_zero(call, to.data(), out.numel() * int64_t(sizeof(Math<T>)));
    each(call, width,
         EmbeddingSum<T>{values.data(), dy.data(), to.data(), index.numel(), rows, width, skip,
                         fault_of(call)});
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

// plugins/reference/index.cpp: reading and writing at indices.
#include "named.hpp"

namespace adjoin::reference {
namespace {

// The output, filled with the input unless it is the input.
template <class T>
Dense<T> start_from(TensorView input, MutView out) {
  Dense<T> to(out, true);
  if (input.get() != out.get()) {
    Dense<T> from(input);
    std::copy_n(from.data(), out.numel(), to.data());
  }
  return to;
}

void index_at(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  IndexMap map(x.shape(), dense_strides(x.shape()), args.tensors(1));
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), to(out);
    int64_t i = 0;
    for (int64_t p : map.before)
      for (int64_t b : map.selected)
        for (int64_t q : map.after) to[i++] = in[p + b + q];
    to.commit();
  });
}

void index_put_at(Args args) {
  TensorView x = args.tensor(0), values = args.tensor(2);
  MutView out = args.result(0);
  bool accumulate = args.flag(3);
  IndexMap map(x.shape(), dense_strides(x.shape()), args.tensors(1));
  std::vector<int64_t> source = map.offsets_in(values, dense_strides(values.shape()));
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> to = start_from<T>(x, out), from(values);
    int64_t i = 0;
    for (int64_t p : map.before)
      for (int64_t b : map.selected)
        for (int64_t q : map.after) {
          T& place = to[p + b + q];
          T v = from[source[i++]];
          place = accumulate ? scalar::Add()(place, v) : v;
        }
    to.commit();
  });
}

void index_select(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  int64_t dim = args.integer(1);
  Lines l(x.shape(), dim);
  Dense<int64_t> index(args.tensor(2));
  int64_t n = args.tensor(2).numel();
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), to(out);
    for (int64_t i = 0; i < out.numel(); ++i) {
      int64_t k = checked(index[i / l.inner % n], l.size, dim);
      to[i] = in[(i / l.inner / n * l.size + k) * l.inner + i % l.inner];
    }
    to.commit();
  });
}

void index_add(Args args) {
  TensorView x = args.tensor(0), source = args.tensor(3);
  MutView out = args.result(0);
  int64_t dim = args.integer(1);
  Lines l(x.shape(), dim);
  Dense<int64_t> index(args.tensor(2));
  int64_t n = args.tensor(2).numel();
  visit_math<stored_numeric>(x.dtype(), [&]<class T>() {
    T alpha = number<T>(args[4]);
    Dense<T> to = start_from<T>(x, out), from(source);
    for (int64_t i = 0; i < source.numel(); ++i) {
      int64_t k = checked(index[i / l.inner % n], l.size, dim);
      T& place = to[(i / l.inner / n * l.size + k) * l.inner + i % l.inner];
      place = scalar::Add()(place, scalar::Mul()(alpha, from[i]));
    }
    to.commit();
  });
}

void gather(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), to(out);
    for_named(index, x.shape(), index.shape(), args.integer(1),
              [&](int64_t i, int64_t at, int64_t) { to[i] = in[at]; });
    to.commit();
  });
}

void scatter(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  bool is_tensor = args[3].tag == AJ_TENSOR;
  TensorView source = is_tensor ? args.tensor(3) : TensorView();
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> to = start_from<T>(x, out);
    int64_t dim = args.integer(1);
    if (!is_tensor) {
      T value = number<T>(args[3]);
      for_named(index, x.shape(), index.shape(), dim,
                [&](int64_t, int64_t at, int64_t) { to[at] = value; });
    } else {
      Dense<T> from(source);
      for_named(index, x.shape(), source.shape(), dim,
                [&](int64_t, int64_t at, int64_t i) { to[at] = from[i]; });
    }
    to.commit();
  });
}

void scatter_add(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), source = args.tensor(3);
  MutView out = args.result(0);
  visit_math<stored_numeric>(x.dtype(), [&]<class T>() {
    Dense<T> to = start_from<T>(x, out), from(source);
    for_named(index, x.shape(), source.shape(), args.integer(1),
              [&](int64_t, int64_t at, int64_t i) { to[at] = scalar::Add()(to[at], from[i]); });
    to.commit();
  });
}

void embedding_backward(Args args) {
  TensorView grad = args.tensor(0), index = args.tensor(1);
  MutView out = args.result(0);
  int64_t rows = out.size(0), width = rows ? out.numel() / rows : 0, skip = args.integer(3);
  Dense<int64_t> values(index);
  visit_math<stored_floating>(grad.dtype(), [&]<class T>() {
    Dense<T> dy(grad), to(out);
    std::fill_n(to.data(), out.numel(), T(0));
    for (int64_t i = 0; i < index.numel(); ++i) {
      if (values[i] == skip) continue;
      int64_t row = checked(values[i], rows, 0);
      for (int64_t j = 0; j < width; ++j) to[row * width + j] += dy[i * width + j];
    }
    to.commit();
  });
}

void nonzero(Args args) {
  TensorView x = args.tensor(0);
  std::vector<int64_t> found;
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> in(x);
    for (int64_t i = 0; i < x.numel(); ++i)
      if (scalar::is_true(in[i])) found.push_back(i);
  });
  int64_t shape[2] = {int64_t(found.size()), x.ndim()};
  MutView out(new_tensor(x.device(), dtype_of<int64_t>, shape));
  for (int64_t k = 0; k < shape[0]; ++k)
    for (int64_t d = x.ndim() - 1, rest = found[k]; d >= 0; rest /= x.size(d--))
      out.data<int64_t>()[k * x.ndim() + d] = rest % x.size(d);
  aj_value& ret = args.call()->rets[0];
  ret.tag = AJ_TENSOR;
  ret.v.tensor = out.get();
}

}  // namespace

AJ_KERNELS(index_kernels) = {
    {"index_at", custom<index_at>},
    {"index_put_at", custom<index_put_at>},
    {"index_select", custom<index_select>},
    {"index_add", custom<index_add>},
    {"gather", custom<gather>},
    {"scatter", custom<scatter>},
    {"scatter_add", custom<scatter_add>},
    {"embedding_backward", custom<embedding_backward>},
    {"nonzero", custom<nonzero>},
    {nullptr, {}},
};

}  // namespace adjoin::reference

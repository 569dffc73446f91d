// plugins/reference/order.cpp: searching, running extremes, joined writes and distances, an element
// after the other.
#include "named.hpp"

namespace adjoin::reference {
namespace {

using ordered = Join<reals_bool, halves>;

template <class T>
int compare(T a, T b) {  // NaN is larger than every number
  if (scalar::is_nan(a) || scalar::is_nan(b)) return scalar::is_nan(a) - scalar::is_nan(b);
  return (b < a) - (a < b);
}

void search(Args args) {
  TensorView s = args.tensor(0), v = args.tensor(1);
  MutView out = args.result(0);
  bool right = args.flag(2);
  int64_t n = s.size(-1), line = v.ndim() ? v.size(-1) : 1;
  visit_math<ordered>(s.dtype(), [&]<class T>() {
    Dense<T> sequence(s), values(v);
    Dense<int64_t> to(out);
    for (int64_t i = 0; i < v.numel(); ++i) {
      const T* begin = sequence.data() + (s.ndim() == 1 ? 0 : i / line * n);
      T x = values[i];
      int64_t low = 0, high = n;
      while (low < high) {
        int64_t middle = (low + high) / 2;
        bool stop = compare(begin[middle], x) >= right;
        (stop ? high : low) = stop ? middle : middle + 1;
      }
      to[i] = low;
    }
    to.commit();
  });
}

void row_order(Args args) {
  TensorView t = args.tensor(0);
  int64_t n = t.size(0), width = t.size(1);
  visit_math<ordered>(t.dtype(), [&]<class T>() {
    Dense<T> rows(t);
    Dense<int64_t> out(args.result(0));
    for (int64_t i = 0; i < n; ++i) out[i] = i;
    std::stable_sort(out.data(), out.data() + n, [&](int64_t a, int64_t b) {
      for (int64_t c = 0; c < width; ++c)
        if (int order = compare(rows[a * width + c], rows[b * width + c])) return order < 0;
      return false;
    });
    out.commit();
  });
}

template <bool Largest>
void running(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  visit_math<ordered>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), values(args.result(0));
    Dense<int64_t> places(args.result(1));
    for (int64_t line = 0; line < l.outer * l.inner; ++line) {
      int64_t from = line / l.inner * l.size * l.inner + line % l.inner, best = from, place = 0;
      for (int64_t k = 0; k < l.size; ++k) {
        int64_t at = from + k * l.inner;
        T a = in[at], b = in[best];
        if (scalar::is_nan(a) || (!scalar::is_nan(b) && (Largest ? a >= b : a <= b)))
          best = at, place = k;
        values[at] = in[best];
        places[at] = place;
      }
    }
    values.commit();
    places.commit();
  });
}

void log_sums(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  visit_math<stored_floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), out(args.result(0));
    for (int64_t line = 0; line < l.outer * l.inner; ++line) {
      int64_t from = line / l.inner * l.size * l.inner + line % l.inner;
      double sum = -INFINITY;
      for (int64_t k = 0; k < l.size; ++k) {
        int64_t at = from + k * l.inner;
        sum = scalar::LogAddExp()(sum, double(in[at]));
        out[at] = T(sum);
      }
    }
    out.commit();
  });
}

template <class T>
T joined(std::string_view how, T a, T b) {
  if (how == "prod") return scalar::Mul()(a, b);
  if constexpr (!is_complex<T>) {
    if (how == "amax") return scalar::Maximum()(a, b);
    if (how == "amin") return scalar::Minimum()(a, b);
  }
  return scalar::Add()(a, b);
}

void scatter_reduce(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2), src = args.tensor(3);
  MutView out = args.result(0);
  std::string_view how = args.string(4);
  bool self = args.flag(5);
  visit_math<stored>(x.dtype(), [&]<class T>() {
    Dense<T> to(out, true), in(x), from(src);
    if (x.get() != out.get()) std::copy_n(in.data(), out.numel(), to.data());
    std::vector<int64_t> count(size_t(out.numel()), self);
    for_named(index, x.shape(), src.shape(), args.integer(1), [&](int64_t, int64_t at, int64_t i) {
      to[at] = count[size_t(at)]++ ? joined(how, to[at], from[i]) : from[i];
    });
    if (how == "mean")
      for (int64_t i = 0; i < out.numel(); ++i)
        if (count[size_t(i)] > 1) to[i] = mean_of(to[i], count[size_t(i)]);
    to.commit();
  });
}

void cdist(Args args) {
  TensorView x = args.tensor(0), y = args.tensor(1);
  MutView out = args.result(0);
  double p = args.real(2);
  int64_t n = x.size(1), m = y.size(1), width = x.size(2);
  visit_math<floating>(x.dtype(), [&]<class T>() {
    Dense<T> a(x), b(y), to(out);
    for (int64_t i = 0; i < out.numel(); ++i) {
      int64_t left = i / m * width, right = (i / m / n * m + i % m) * width;
      double sum = 0;
      for (int64_t k = 0; k < width; ++k) {
        double d = std::fabs(double(a[left + k]) - double(b[right + k]));
        sum = std::isinf(p) ? scalar::Maximum()(sum, d)
              : p == 0      ? sum + (d != 0)
                            : sum + std::pow(d, p);
      }
      to[i] = T(p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p));
    }
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(order_kernels) = {
    {"_::search", custom<search>},         {"_::row_order", custom<row_order>},
    {"cummax", custom<running<true>>},     {"cummin", custom<running<false>>},
    {"_::log_sums", custom<log_sums>},     {"scatter_reduce", custom<scatter_reduce>},
    {"_::cdist", custom<cdist, floating>}, {nullptr, {}},
};

}  // namespace adjoin::reference

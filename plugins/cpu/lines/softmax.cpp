// plugins/cpu/lines/softmax.cpp: softmax and log_softmax along any dimension, cross entropy of
// classes, with their derivatives.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <array>
#include <numeric>
#include <vector>

#include "vector/convert_rows.hpp"
#include "vector/rows.hpp"
#include "vector/softmax_rows.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// f(first element, width): `width` neighbouring lines of l.size values with step l.inner.
template <class F>
void for_lines(const Lines& l, F f) {
  constexpr int64_t most = kSoftmaxWidth;
  int64_t blocks = (l.inner + most - 1) / most;
  parallel_for(l.outer * blocks, grain_of(l.size * std::min(l.inner, most), 8192),
               [&](int64_t lo, int64_t hi) {
                 for (; lo < hi; ++lo) {
                   int64_t from = lo % blocks * most;
                   f(lo / blocks * l.size * l.inner + from, std::min(most, l.inner - from));
                 }
               });
}

// f(row) of rows of n elements; then what was written past the cache is flushed.
template <class F>
void for_rows_of(int64_t rows, int64_t n, F f) {
  parallel_for(rows, grain_of(n, 8192), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) f(lo);
    end_streaming();
  });
}

// Rows of halves are widened one at a time, so that no copy of all of them is made. f(rows of
// floats, the last of which is narrowed into `out`).
template <class S, size_t N, class F>
void for_rows_of_halves(const Lines& l, const std::array<TensorView, N>& in, MutView out, F f) {
  CastRow widen = find_cast_row(dtype_of<float>, dtype_of<S>),
          narrow = find_cast_row(dtype_of<S>, dtype_of<float>);
  int64_t n = l.size;
  bool past = int64_t(N + 1) * out.numel() * 2 >= stream_bytes();
  parallel_for(l.outer, grain_of(n, 8192), [&](int64_t lo, int64_t hi) {
    std::vector<float> room(size_t(n) * (N + 1));
    std::array<float*, N + 1> row;
    for (size_t k = 0; k <= N; ++k) row[k] = room.data() + int64_t(k) * n;
    for (; lo < hi; ++lo) {
      for (size_t k = 0; k < N; ++k) widen(row[k], in[k].template data<S>() + lo * n, n, false);
      f(row);
      narrow(out.template data<S>() + lo * n, row[N], n, past);
    }
    if (past) end_streaming();
  });
}

template <bool Log>
void softmax(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  Lines l(x.shape(), args.integer(1));
  visit<stored_floating>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    const SoftmaxRows<T>& code = softmax_rows<T>();
    if constexpr (is_half<S>)
      if (l.inner == 1 && same(x.dtype(), out.dtype()) && x.dense() && out.dense())
        return for_rows_of_halves<S, 1>(l, {x}, out, [&](const auto& row) {
          (Log ? code.log_softmax : code.softmax)(row[0], row[1], l.size, false);
        });
    Dense<T> in(x), y(out);
    bool past = 2 * out.numel() * int64_t(sizeof(T)) >= stream_bytes();
    if (l.inner == 1)
      for_rows_of(l.outer, l.size, [&](int64_t r) {
        (Log ? code.log_softmax : code.softmax)(in.data() + r * l.size, y.data() + r * l.size,
                                                l.size, past);
      });
    else
      for_lines(l, [&](int64_t at, int64_t width) {
        (Log ? code.log_softmax_columns : code.softmax_columns)(in.data() + at, y.data() + at,
                                                                l.size, l.inner, width);
      });
    y.commit();
  });
}

template <bool Log>
void softmax_backward(Args args) {
  TensorView grad = args.tensor(0), output = args.tensor(1);
  MutView out = args.result(0);
  Lines l(grad.shape(), args.integer(2));
  visit<stored_floating>(out.dtype(), [&]<class S>() {
    using T = Math<S>;
    const SoftmaxRows<T>& code = softmax_rows<T>();
    if constexpr (is_half<S>)
      if (l.inner == 1 && same(grad.dtype(), out.dtype()) && same(output.dtype(), out.dtype()) &&
          grad.dense() && output.dense() && out.dense())
        return for_rows_of_halves<S, 2>(l, {grad, output}, out, [&](const auto& row) {
          (Log ? code.log_softmax_back : code.softmax_back)(row[0], row[1], row[2], l.size, false);
        });
    Dense<T> dy(grad), y(output), dx(out);
    bool past = 3 * out.numel() * int64_t(sizeof(T)) >= stream_bytes();
    if (l.inner == 1)
      for_rows_of(l.outer, l.size, [&](int64_t r) {
        int64_t at = r * l.size;
        (Log ? code.log_softmax_back : code.softmax_back)(dy.data() + at, y.data() + at,
                                                          dx.data() + at, l.size, past);
      });
    else
      for_lines(l, [&](int64_t at, int64_t width) {
        (Log ? code.log_softmax_columns_back : code.softmax_columns_back)(
            dy.data() + at, y.data() + at, dx.data() + at, l.size, l.inner, width);
      });
    dx.commit();
  });
}

// Cross entropy of [rows, classes] with classes [rows].
struct Classes {
  Classes(TensorView x, TensorView targets, int64_t ignore, std::string_view reduction)
      : rows(x.size(0)),
        classes(x.size(1)),
        ignore(ignore),
        each(reduction == "none"),
        target(targets) {
    int64_t counted = 0;
    for (int64_t r = 0; r < rows; ++r) {
      if (target[r] == ignore) continue;
      if (target[r] < 0 || target[r] >= classes)
        raise(AJ_OUT_OF_RANGE, "element ", r, " of target is ", target[r], ": input has ", classes,
              " classes, so targets are 0 to ", classes - 1, ", or ", ignore, " (ignore_index)");
      ++counted;
    }
    over = reduction == "mean" ? double(counted) : 1;
  }
  int64_t rows, classes, ignore;
  bool each;    // no reduction
  double over;  // what a sum is divided by
  Dense<int64_t> target;
};

void softmax_nll(Args args) {
  TensorView x = args.tensor(0);
  Classes c(x, args.tensor(1), args.integer(2), args.string(3));
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> in(x), out(args.result(0)), sums(args.result(1));
    std::unique_ptr<T[]> room(c.each ? nullptr : new T[size_t(c.rows)]);
    T* losses = c.each ? out.data() : room.get();
    for_rows_of(c.rows, c.classes, [&](int64_t r) {
      const T* row = in.data() + r * c.classes;
      sums[r] = softmax_rows<T>().log_sum_exp(row, c.classes);
      losses[r] = c.target[r] == c.ignore ? T(0) : sums[r] - row[c.target[r]];
    });
    if (!c.each) out[0] = T(std::accumulate(losses, losses + c.rows, 0.0) / c.over);
    out.commit();
    sums.commit();
  });
}

void softmax_nll_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1);
  Classes c(x, args.tensor(2), args.integer(4), args.string(5));
  visit<floating>(x.dtype(), [&]<class T>() {
    Dense<T> g(grad), in(x), sums(args.tensor(3)), dx(args.result(0));
    bool past = 2 * x.numel() * int64_t(sizeof(T)) >= stream_bytes();
    for_rows_of(c.rows, c.classes, [&](int64_t r) {
      int64_t at = r * c.classes, t = c.target[r];
      if (t == c.ignore)
        std::fill_n(dx.data() + at, c.classes, T(0));
      else
        softmax_rows<T>().nll_back(in.data() + at, sums[r], T(double(g[c.each ? r : 0]) / c.over),
                                   t, dx.data() + at, c.classes, past);
    });
    dx.commit();
  });
}

}  // namespace

AJ_KERNELS(softmax_kernels) = {
    {"softmax", custom<softmax<false>>},
    {"log_softmax", custom<softmax<true>>},
    {"softmax_backward", custom<softmax_backward<false>>},
    {"log_softmax_backward", custom<softmax_backward<true>>},
    {"_::softmax_nll", custom<softmax_nll, floating>},
    {"_::softmax_nll_backward", custom<softmax_nll_backward, floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

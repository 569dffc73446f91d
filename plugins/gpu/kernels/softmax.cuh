// plugins/gpu/kernels/softmax.cuh: softmax, its logarithm and their derivatives.
#include <adjoin/kit/geometry.hpp>

#include "../block.cuh"
#include "../divide.cuh"

namespace adjoin::gpu {
namespace {

template <class T>
struct Rows {
  const T *x, *y;
  T* out;
  int64_t lines, size;
  Divisor inner;
  AJ_HD int64_t begin(int64_t line) const { return in_line(line, 0, size, inner); }
};

// The largest element of a line and the sum of e^(x - largest). NaN wins.
template <bool Wide, class T, class M = Math<T>>
AJ_DEVICE void top_and_sum(const T* x, int64_t size, int64_t inner, M* top, M* sum) {
  using Own = Team<Wide>;
  M most = M(-INFINITY);
  for (int64_t k = Own::first(); k < size; k += Own::step()) most = Larger()(most, M(x[k * inner]));
  most = Own::join(most, Larger());
  M total = 0;
  for (int64_t k = Own::first(); k < size; k += Own::step())
    total += scalar::Exp()(M(x[k * inner]) - most);
  *top = most;
  *sum = Own::join(total, Plus());
}

template <bool Wide, bool Log, class T>
AJ_GLOBAL void softmax_kernel(AJ_ARGUMENT Rows<T> p) {
  using Own = Team<Wide>;
  using M = Math<T>;
  int64_t inner = p.inner.size;
  for (int64_t line = Own::task(); line < p.lines; line += Own::tasks_step()) {
    int64_t at = p.begin(line);
    M top, sum;
    top_and_sum<Wide>(p.x + at, p.size, inner, &top, &sum);
    M shift = Log ? M(scalar::Log()(sum)) : M(0);
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M d = M(p.x[at + k * inner]) - top;
      p.out[at + k * inner] = T(Log ? d - shift : scalar::Exp()(d) / sum);
    }
  }
}
template <bool Log>
void softmax(Args args) {
  MutView out = args.result(0);
  Lines l(out.shape(), args.integer(1));
  visit<stored_floating>(out.dtype(), [&]<class T>() {
    Plain<T> x(args.call(), args.tensor(0)), y(args.call(), out);
    Rows<T> p = {x.data(), nullptr, y.data(), l.outer * l.inner, l.size, l.inner};
    if (l.size)
      launch_teams<&softmax_kernel<false, Log, T>, &softmax_kernel<true, Log, T>>(
          args.call(), p.lines, l.size > kNarrow, p);
    y.commit();
  });
}

template <bool Wide, bool Log, class T>
AJ_GLOBAL void softmax_backward_kernel(AJ_ARGUMENT Rows<T> p) {  // x is the gradient, y the result
  using Own = Team<Wide>;
  using M = Math<T>;
  int64_t inner = p.inner.size;
  for (int64_t line = Own::task(); line < p.lines; line += Own::tasks_step()) {
    int64_t at = p.begin(line);
    M sum = 0;
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M g = M(p.x[at + k * inner]);
      sum += Log ? g : g * M(p.y[at + k * inner]);
    }
    sum = Own::join(sum, Plus());
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M g = M(p.x[at + k * inner]), y = M(p.y[at + k * inner]);
      p.out[at + k * inner] = T(Log ? g - scalar::Exp()(y) * sum : y * (g - sum));
    }
  }
}
template <bool Log>
void softmax_backward(Args args) {
  MutView out = args.result(0);
  Lines l(out.shape(), args.integer(2));
  visit<stored_floating>(out.dtype(), [&]<class T>() {
    Plain<T> g(args.call(), args.tensor(0)), y(args.call(), args.tensor(1)), dx(args.call(), out);
    Rows<T> p = {g.data(), y.data(), dx.data(), l.outer * l.inner, l.size, l.inner};
    launch_teams<&softmax_backward_kernel<false, Log, T>, &softmax_backward_kernel<true, Log, T>>(
        args.call(), p.lines, l.size > kNarrow, p);
    dx.commit();
  });
}

// Cross entropy of [rows, classes] with classes [rows].
template <class T>
struct Classes {
  const T *x, *g;
  const int64_t* target;
  T *sums, *losses, *dx;
  const T* log_sums;
  double* counted;  // what a mean is divided by
  Fault* fault;
  int64_t rows, ignore;
  Divisor classes;
  bool each;  // no reduction
};

template <bool Wide, class T>
AJ_GLOBAL void nll_kernel(AJ_ARGUMENT Classes<T> p) {
  using Own = Team<Wide>;
  for (int64_t row = Own::task(); row < p.rows; row += Own::tasks_step()) {
    const T* x = p.x + row * p.classes.size;
    T top, sum;
    top_and_sum<Wide>(x, p.classes.size, 1, &top, &sum);
    if (!Own::leads()) continue;
    // Of -inf alone the sum is 0/0; its logarithm is -inf.
    T all = top == T(-INFINITY) ? top : top + scalar::Log()(sum);
    int64_t at = p.target[row];
    p.sums[row] = all;
    p.losses[row] = T(0);
    if (at == p.ignore || checked(at, p.classes.size, 1, p.fault) < 0) continue;
    p.losses[row] = all - x[at];
  }
}

struct Total {
  double sum, counted;
};
struct Both {
  AJ_HD Total operator()(Total a, Total b) const { return {a.sum + b.sum, a.counted + b.counted}; }
};
// One block adds up the losses, and those that count; the order depends on their number alone.
template <class T>
AJ_GLOBAL void nll_total_kernel(AJ_ARGUMENT Classes<T> p) {
  Total own = {0, 0};
  for (int64_t row = thread_x(); row < p.rows; row += kBlock) {
    if (p.losses) own.sum += double(p.losses[row]);
    own.counted += p.target[row] != p.ignore;
  }
  own = join_block(own, Both());
  if (thread_x() != 0) return;
  if (p.counted) *p.counted = own.counted;
  if (p.dx) *p.dx = T(p.each ? own.sum : own.sum / own.counted);
}

template <class T>
Classes<T> classes_of(Args args, uint32_t first, const T* x, const int64_t* target) {
  Classes<T> p = {};
  p.x = x, p.target = target, p.fault = fault_of(args.call());
  p.rows = args.tensor(first).size(0), p.classes = args.tensor(first).size(1);
  return p;
}

void softmax_nll(Args args) {
  const aj_call* call = args.call();
  std::string_view how = args.string(3);
  visit<floating>(args.tensor(0).dtype(), [&]<class T>() {
    Plain<T> x(call, args.tensor(0)), out(call, args.result(0)), sums(call, args.result(1));
    Plain<int64_t> target(call, args.tensor(1));
    Classes<T> p = classes_of<T>(args, 0, x.data(), target.data());
    Buffer<T> losses(call, p.rows);
    p.ignore = args.integer(2), p.sums = sums.data();
    p.losses = how == "none" ? out.data() : losses.data();
    launch_teams<&nll_kernel<false, T>, &nll_kernel<true, T>>(call, p.rows,
                                                              p.classes.size > kNarrow, p);
    p.dx = out.data(), p.each = how == "sum";
    if (how != "none") launch_blocks<&nll_total_kernel<T>>(call, 1, kBlock, p);
    out.commit();
    sums.commit();
  });
}

template <class T>
struct NllBack {
  Classes<T> p;
  AJ_HD void operator()(int64_t i) const {
    int64_t row = i, column = p.classes.split(&row), at = p.target[row];
    double g = double(p.g[p.each ? row : 0]);
    if (p.counted) g /= *p.counted;
    T share = scalar::Exp()(p.x[i] - p.log_sums[row]) - T(column == at);
    p.dx[i] = at == p.ignore ? T(0) : share * T(g);
  }
};

void softmax_nll_backward(Args args) {
  const aj_call* call = args.call();
  std::string_view how = args.string(5);
  visit<floating>(args.tensor(1).dtype(), [&]<class T>() {
    Plain<T> g(call, args.tensor(0)), x(call, args.tensor(1)), sums(call, args.tensor(3)),
        dx(call, args.result(0));
    Plain<int64_t> target(call, args.tensor(2));
    Classes<T> p = classes_of<T>(args, 1, x.data(), target.data());
    Buffer<double> counted(call, 1);
    p.g = g.data(), p.log_sums = sums.data();
    p.ignore = args.integer(4), p.each = how == "none";
    if (how == "mean") {
      p.counted = counted.data();
      launch_blocks<&nll_total_kernel<T>>(call, 1, kBlock, p);
    }
    p.dx = dx.data();
    each(call, p.rows * p.classes.size, NllBack<T>{p});
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

}  // namespace adjoin::gpu

// plugins/gpu/softmax.cuh: softmax, its logarithm and their derivatives.
#include <adjoin/kit/geometry.hpp>

#include "block.cuh"
#include "tables.cuh"

namespace adjoin::gpu {
namespace {

template <class T>
struct Rows {
  const T *x, *y;
  T* out;
  int64_t lines, size, inner;
  AJ_HD int64_t begin(int64_t line) const { return line / inner * size * inner + line % inner; }
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
  for (int64_t line = Own::task(); line < p.lines; line += Own::tasks_step()) {
    int64_t at = p.begin(line);
    M top, sum;
    top_and_sum<Wide>(p.x + at, p.size, p.inner, &top, &sum);
    M shift = Log ? M(scalar::Log()(sum)) : M(0);
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M d = M(p.x[at + k * p.inner]) - top;
      p.out[at + k * p.inner] = T(Log ? d - shift : scalar::Exp()(d) / sum);
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
  for (int64_t line = Own::task(); line < p.lines; line += Own::tasks_step()) {
    int64_t at = p.begin(line);
    M sum = 0;
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M g = M(p.x[at + k * p.inner]);
      sum += Log ? g : g * M(p.y[at + k * p.inner]);
    }
    sum = Own::join(sum, Plus());
    for (int64_t k = Own::first(); k < p.size; k += Own::step()) {
      M g = M(p.x[at + k * p.inner]), y = M(p.y[at + k * p.inner]);
      p.out[at + k * p.inner] = T(Log ? g - scalar::Exp()(y) * sum : y * (g - sum));
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

}  // namespace

AJ_TABLE Kernel softmax_kernels[] = {
    {"softmax", custom<softmax<false>>},
    {"log_softmax", custom<softmax<true>>},
    {"softmax_backward", custom<softmax_backward<false>>},
    {"log_softmax_backward", custom<softmax_backward<true>>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

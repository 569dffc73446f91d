// plugins/reference/convolution.cpp: every pair of pixels that meet, one after the other.
#include <adjoin/kit/geometry.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

template <class T>
using Sums = std::vector<std::conditional_t<is_complex<T>, Complex128, double>>;

// Calls f(small, big, weight) with the indices of the elements that meet.
template <class F>
void for_meetings(const ConvGeometry& g, F f) {
  int64_t taps = g.taps(), small = g.small_pixels(), big = g.big_pixels();
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t group = 0; group < g.groups; ++group)
      for (int64_t c = 0; c < g.small_c; ++c)
        for (int64_t p = 0; p < small; ++p)
          for (int64_t k = 0; k < taps; ++k) {
            int64_t q = g.meet(p, k);
            if (q < 0) continue;
            int64_t s = group * g.small_c + c;
            for (int64_t b = 0; b < g.big_c; ++b)
              f((n * g.groups * g.small_c + s) * small + p,
                (n * g.groups * g.big_c + group * g.big_c + b) * big + q,
                (s * g.big_c + b) * taps + k);
          }
}

template <class T>
void store(MutView to, const Sums<T>& sums) {
  Dense<T> out(to);
  for (int64_t i = 0; i < to.numel(); ++i) out[i] = cast<T>(sums[i]);
  out.commit();
}

void convolution(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  bool transposed = args.flag(6);
  ConvGeometry g(transposed ? x : out, transposed ? out : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  int64_t channels = out.size(1), pixels = transposed ? g.big_pixels() : g.small_pixels();
  visit_math<Join<stored_floating, complexes>>(x.dtype(), [&]<class T>() {
    using A = typename Sums<T>::value_type;
    Dense<T> in(x), weight(w);
    Sums<T> sums(out.numel(), A(0));
    if (bias) {
      Dense<T> b(bias);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = A(b[int64_t(i) / pixels % channels]);
    }
    for_meetings(g, [&](int64_t small, int64_t big, int64_t k) {
      sums[transposed ? big : small] += A(in[transposed ? small : big]) * A(weight[k]);
    });
    store<T>(out, sums);
  });
}

void convolution_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  bool transposed = args.flag(6);
  ConvGeometry g(transposed ? x : grad, transposed ? grad : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  int64_t channels = grad.size(1), pixels = transposed ? g.big_pixels() : g.small_pixels();
  visit_math<Join<stored_floating, complexes>>(x.dtype(), [&]<class T>() {
    using A = typename Sums<T>::value_type;
    auto conj = [](T z) {
      if constexpr (is_complex<T>)
        return A(z.re, -double(z.im));
      else
        return A(z);
    };
    Dense<T> dy(grad), in(x), weight(w);
    Sums<T> dx(x.numel(), A(0)), dw(w.numel(), A(0)), db(channels, A(0));
    bool need_x = args.bit(9, 0), need_w = args.bit(9, 1);
    for_meetings(g, [&](int64_t small, int64_t big, int64_t k) {
      int64_t to = transposed ? small : big;
      A dz = A(dy[transposed ? big : small]);
      if (need_x) dx[to] += dz * conj(weight[k]);
      if (need_w) dw[k] += dz * conj(in[to]);
    });
    for (int64_t i = 0; i < grad.numel(); ++i) db[i / pixels % channels] += A(dy[i]);
    if (need_x) store<T>(args.result(0), dx);
    if (need_w) store<T>(args.result(1), dw);
    if (args.bit(9, 2)) store<T>(args.result(2), db);
  });
}

}  // namespace

AJ_KERNELS(convolution_kernels) = {
    {"convolution", custom<convolution, Join<stored_floating, complexes>>},
    {"convolution_backward", custom<convolution_backward, Join<stored_floating, complexes>>},
    {nullptr, {}},
};

}  // namespace adjoin::reference

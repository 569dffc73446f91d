// plugins/gpu/kernels/hot/convolution.cuh: convolutions as products whose operands are gathered on
// the way into shared memory (implicit products); no column matrix is ever made.
#include <adjoin/kit/geometry.hpp>

#include "../../block.cuh"
#include "../../divide.cuh"
#include "../../tile.cuh"

namespace adjoin::gpu {
namespace {

using convolved = Join<stored_floating, complexes>;
// As kernels get it.
struct Geometry : ConvGeometry {
  int64_t taps, small_pixels, big_pixels;  // counted once
  Divisor by_small[3], by_big[3], by_kernel[3], by_stride[3], by_taps, by_small_pixels,
      by_big_pixels;
  explicit Geometry(const ConvGeometry& g)
      : ConvGeometry(g),
        taps(g.taps()),
        small_pixels(g.small_pixels()),
        big_pixels(g.big_pixels()),
        by_taps(taps),
        by_small_pixels(small_pixels),
        by_big_pixels(big_pixels) {
    for (int d = 0; d < 3; ++d) {
      by_small[d] = small[d], by_big[d] = big[d];
      by_kernel[d] = kernel[d], by_stride[d] = stride[d];
    }
  }
  // As ConvGeometry's.
  AJ_HD int64_t meet(int64_t s, int64_t k) const {
    int64_t at = 0, weight = 1;
    for (int d = 2; d >= 0; --d) {
      int64_t x = by_small[d].split(&s) * stride[d] - pad[d] + by_kernel[d].split(&k) * dilation[d];
      if (x < 0 || x >= big[d]) return -1;
      at += x * weight;
      weight *= big[d];
    }
    return at;
  }
  // The pixel of the small image whose tap k lies on pixel b of the big one, or -1.
  AJ_HD int64_t meet_back(int64_t b, int64_t k) const {
    int64_t at = 0, weight = 1;
    for (int d = 2; d >= 0; --d) {
      int64_t x = by_big[d].split(&b) + pad[d] - by_kernel[d].split(&k) * dilation[d];
      if (x < 0) return -1;
      Quotient q = by_stride[d].divided(x);
      if (q.rest != 0 || q.whole >= small[d]) return -1;
      at += q.whole * weight;
      weight *= small[d];
    }
    return at;
  }
};

enum class Writes { small, big, weight };

// For one group: C[rows, columns] = sum over depth of A[row, depth] B[depth, column].
//   small: rows small channels, columns (image, small pixel), depth (big channel, tap)
//   big:   rows big channels,   columns (image, big pixel),   depth (small channel, tap)
//   weight: rows small channels, columns (big channel, tap),  depth (image, small pixel)
template <class T>
struct Convolution {
  Geometry g;
  const T *small, *big, *weight, *bias;
  T* out;
  int64_t rows, columns, depth;
  Divisor tiles_m, tiles_n;
  bool conj_weight, conj_input;

  AJ_HD static T conj(T x, bool on) {
    if constexpr (is_complex<T>)
      return on ? T(x.re, -x.im) : x;
    else
      return x;
  }
  AJ_HD T weight_at(int64_t group, int64_t s, int64_t b, int64_t tap) const {
    return conj(weight[((group * g.small_c + s) * g.big_c + b) * g.taps + tap], conj_weight);
  }
  AJ_HD T small_at(int64_t image, int64_t group, int64_t c, int64_t pixel) const {
    return small[((image * g.groups + group) * g.small_c + c) * g.small_pixels + pixel];
  }
  AJ_HD T big_at(int64_t image, int64_t group, int64_t c, int64_t pixel) const {
    return big[((image * g.groups + group) * g.big_c + c) * g.big_pixels + pixel];
  }
  template <Writes W>
  AJ_HD T left(int64_t group, int64_t row, int64_t k) const {
    Quotient q = (W == Writes::weight ? g.by_small_pixels : g.by_taps).divided(k);
    if constexpr (W == Writes::small)
      return weight_at(group, row, q.whole, q.rest);
    else if constexpr (W == Writes::big)
      return weight_at(group, q.whole, row, q.rest);
    else
      return conj(small_at(q.whole, group, row, q.rest), conj_weight);
  }
  template <Writes W>
  AJ_HD T right(int64_t group, int64_t k, int64_t column) const {
    if constexpr (W == Writes::weight) {
      Quotient from = g.by_small_pixels.divided(k), to = g.by_taps.divided(column);
      int64_t pixel = g.meet(from.rest, to.rest);
      return pixel < 0 ? T(0) : conj(big_at(from.whole, group, to.whole, pixel), conj_input);
    } else {
      const Divisor& pixels = W == Writes::small ? g.by_small_pixels : g.by_big_pixels;
      Quotient to = pixels.divided(column), from = g.by_taps.divided(k);
      int64_t pixel =
          W == Writes::small ? g.meet(to.rest, from.rest) : g.meet_back(to.rest, from.rest);
      if (pixel < 0) return T(0);
      return W == Writes::small ? big_at(to.whole, group, from.whole, pixel)
                                : small_at(to.whole, group, from.whole, pixel);
    }
  }
  template <Writes W>
  AJ_HD void put(int64_t group, int64_t row, int64_t column, Accumulator<T> sum) const {
    if constexpr (W == Writes::weight) {
      out[(group * g.small_c + row) * columns + column] = cast<T>(sum);
    } else {
      int64_t channels = W == Writes::small ? g.small_c : g.big_c;
      const Divisor& pixels = W == Writes::small ? g.by_small_pixels : g.by_big_pixels;
      int64_t channel = group * channels + row;
      if (bias) sum += Accumulator<T>(bias[channel]);
      Quotient at = pixels.divided(column);
      out[(at.whole * g.groups * channels + channel) * pixels.size + at.rest] = cast<T>(sum);
    }
  }
};

template <class T, Writes W>
AJ_GLOBAL void convolution_kernel(AJ_ARGUMENT Convolution<T> p) {
  using A = Accumulator<T>;
  int64_t tasks = p.g.groups * p.tiles_m.size * p.tiles_n.size;
  for (int64_t task = block_x(); task < tasks; task += blocks_x()) {
    int64_t group = task, column0 = p.tiles_n.split(&group) * kTile,
            row0 = p.tiles_m.split(&group) * kTile;
    A sum[kOwn][kOwn];
    clear(sum);
    multiply_tile<T>(
        p.depth,
        [&](int row, int64_t k) {
          return row0 + row < p.rows ? p.template left<W>(group, row0 + row, k) : T(0);
        },
        [&](int64_t k, int column) {
          return column0 + column < p.columns ? p.template right<W>(group, k, column0 + column)
                                              : T(0);
        },
        sum);
    for_own<T>(sum, [&](int i, int j, A value) {
      if (row0 + i < p.rows && column0 + j < p.columns)
        p.template put<W>(group, row0 + i, column0 + j, value);
    });
  }
}

template <Writes W, class T>
void run(const aj_call* call, Convolution<T> p) {
  const Geometry& g = p.g;
  p.rows = W == Writes::big ? g.big_c : g.small_c;
  p.columns = W == Writes::small ? g.batch * g.small_pixels
              : W == Writes::big ? g.batch * g.big_pixels
                                 : g.big_c * g.taps;
  p.depth = W == Writes::small ? g.big_c * g.taps
            : W == Writes::big ? g.small_c * g.taps
                               : g.batch * g.small_pixels;
  p.tiles_m = (p.rows + kTile - 1) / kTile;
  p.tiles_n = (p.columns + kTile - 1) / kTile;
  launch_blocks<&convolution_kernel<T, W>>(call, g.groups * p.tiles_m.size * p.tiles_n.size,
                                           kTileThreads, p);
}

void convolution(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  bool transposed = args.flag(6);
  ConvGeometry g(transposed ? x : out, transposed ? out : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  visit<convolved>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), weight(call, w), bias(call, args.tensor(2)), to(call, out);
    Convolution<T> p = {
        Geometry(g), in.data(), in.data(), weight.data(), bias.data(), to.data(), 0, 0,
        0,           0,         0,         false,         false};
    transposed ? run<Writes::big>(call, p) : run<Writes::small>(call, p);
    to.commit();
  });
}

template <class T>
struct BiasSum {
  const T* grad;
  T* out;
  int64_t channels, each;  // each: elements of a channel
  Divisor pixels;
};
template <bool Wide, class T>
AJ_GLOBAL void bias_sum_kernel(AJ_ARGUMENT BiasSum<T> p) {
  using Own = Team<Wide>;
  using A = Accumulator<T>;
  for (int64_t c = Own::task(); c < p.channels; c += Own::tasks_step()) {
    A sum(0);
    for (int64_t k = Own::first(); k < p.each; k += Own::step())
      sum += A(p.grad[in_line(k, c, p.channels, p.pixels)]);
    sum = Own::join(sum, Plus());
    if (Own::leads()) p.out[c] = cast<T>(sum);
  }
}

void convolution_backward(Args args) {
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  const aj_call* call = args.call();
  bool transposed = args.flag(6);
  ConvGeometry g(transposed ? x : grad, transposed ? grad : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  visit<convolved>(x.dtype(), [&]<class T>() {
    Plain<T> dy(call, grad);
    if (args.bit(9, 0)) {
      Plain<T> weight(call, w), to(call, args.result(0));
      Convolution<T> p = {
          Geometry(g), dy.data(), dy.data(), weight.data(), nullptr, to.data(), 0, 0,
          0,           0,         0,         true,          false};
      transposed ? run<Writes::small>(call, p) : run<Writes::big>(call, p);
      to.commit();
    }
    if (args.bit(9, 1)) {
      Plain<T> in(call, x), to(call, args.result(1));
      Convolution<T> p = {Geometry(g),
                          transposed ? in.data() : dy.data(),
                          transposed ? dy.data() : in.data(),
                          nullptr,
                          nullptr,
                          to.data(),
                          0,
                          0,
                          0,
                          0,
                          0,
                          transposed,
                          !transposed};
      run<Writes::weight>(call, p);
      to.commit();
    }
    if (args.bit(9, 2)) {
      Plain<T> to(call, args.result(2));
      int64_t pixels = transposed ? g.big_pixels() : g.small_pixels();
      BiasSum<T> p = {dy.data(), to.data(), grad.size(1), grad.size(0) * pixels, pixels};
      launch_teams<&bias_sum_kernel<false, T>, &bias_sum_kernel<true, T>>(call, p.channels,
                                                                          p.each > kNarrow, p);
      to.commit();
    }
  });
}

}  // namespace

AJ_KERNELS(convolution_kernels) = {
    {"convolution", custom<convolution, convolved>},
    {"convolution_backward", custom<convolution_backward, convolved>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

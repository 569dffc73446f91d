// plugins/gpu/kernels/hot/convolution.cuh: convolutions as products whose operands are gathered on
// the way into shared memory (implicit products); no column matrix is ever made.
#include <adjoin/kit/geometry.hpp>

#include "../../divide.cuh"
#include "../../tile.cuh"

namespace adjoin::gpu {
namespace {

using convolved = Join<stored_floating, complexes>;
// As kernels get it.
struct Geometry : ConvGeometry {
  int64_t taps, small_pixels, big_pixels;  // counted once
  explicit Geometry(const ConvGeometry& g)
      : ConvGeometry(g),
        taps(g.taps()),
        small_pixels(g.small_pixels()),
        big_pixels(g.big_pixels()) {}
  // As ConvGeometry's, with divisions of 32 bits.
  AJ_HD int64_t meet(int64_t s, int64_t k) const {
    int64_t at = 0, weight = 1;
    for (int d = 2; d >= 0; --d) {
      int64_t x = split(&s, small[d]) * stride[d] - pad[d] + split(&k, kernel[d]) * dilation[d];
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
      int64_t x = split(&b, big[d]) + pad[d] - split(&k, kernel[d]) * dilation[d];
      if (x < 0) return -1;
      Quotient q = divided(x, stride[d]);
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
  int64_t rows, columns, depth, tiles_m, tiles_n;
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
    Quotient q = divided(k, W == Writes::weight ? g.small_pixels : g.taps);
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
      Quotient from = divided(k, g.small_pixels), to = divided(column, g.taps);
      int64_t pixel = g.meet(from.rest, to.rest);
      return pixel < 0 ? T(0) : conj(big_at(from.whole, group, to.whole, pixel), conj_input);
    } else {
      Quotient to = divided(column, W == Writes::small ? g.small_pixels : g.big_pixels),
               from = divided(k, g.taps);
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
      int64_t pixels = W == Writes::small ? g.small_pixels : g.big_pixels;
      int64_t channel = group * channels + row;
      if (bias) sum += Accumulator<T>(bias[channel]);
      Quotient at = divided(column, pixels);
      out[(at.whole * g.groups * channels + channel) * pixels + at.rest] = cast<T>(sum);
    }
  }
};

template <class T, Writes W>
AJ_GLOBAL void convolution_kernel(AJ_ARGUMENT Convolution<T> p) {
  using A = Accumulator<T>;
  int64_t tasks = p.g.groups * p.tiles_m * p.tiles_n;
  for (int64_t task = block_x(); task < tasks; task += blocks_x()) {
    int64_t group = task, column0 = split(&group, p.tiles_n) * kTile,
            row0 = split(&group, p.tiles_m) * kTile;
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
  launch_blocks<&convolution_kernel<T, W>>(call, g.groups * p.tiles_m * p.tiles_n, kTileThreads, p);
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
  int64_t batch, channels, pixels;
  AJ_DEVICE void operator()(int64_t c) const {
    Accumulator<T> sum(0);
    for (int64_t n = 0; n < batch; ++n) {
      Accumulator<T> image(0);
      for (int64_t p = 0; p < pixels; ++p)
        image += Accumulator<T>(grad[(n * channels + c) * pixels + p]);
      sum += image;
    }
    out[c] = cast<T>(sum);
  }
};

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
      int64_t channels = grad.size(1), images = grad.size(0);
      each(call, channels,
           BiasSum<T>{dy.data(), to.data(), images, channels,
                      transposed ? g.big_pixels() : g.small_pixels()});
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

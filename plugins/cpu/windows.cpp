// plugins/cpu/windows.cpp: maxima of windows over volumes, columns of patches, and what adds them
// back.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>

#include "max_windows.hpp"
#include "vision.hpp"

namespace adjoin::cpu {
namespace {

using maxable = Join<reals, halves>;

struct Volume {
  explicit Volume(TensorView t) {
    int64_t n = t.ndim();
    for (int64_t d = 0; d + 3 < n; ++d) planes *= t.size(d);
    for (int64_t d = 0; d < 3; ++d) size[d] = t.size(n - 3 + d);
  }
  int64_t places() const { return size[0] * size[1] * size[2]; }
  int64_t planes = 1, size[3];
};

void max_windows(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0), indices = args.result(1);
  if (out.numel() == 0) return;
  Volume in(x), made(out);
  std::string_view rule = args.string(2);
  bool fractional = rule == "fractional";
  MaxWindows shared;
  for (int d = 0; d < 3; ++d) {
    shared.in[d] = in.size[d];
    if (rule == "even")
      shared.set(d, in.size[d], made.size[d],
                 {args.ints(3)[d], args.ints(4)[d], args.ints(5)[d], args.ints(6)[d]});
    else if (!fractional)
      shared.list[d] = adaptive_windows(in.size[d], made.size[d]);
  }
  visit<maxable>(x.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> from(x), best(out);
    Dense<int64_t> found(indices);
    std::unique_ptr<Dense<double>> samples;
    if (fractional) samples = std::make_unique<Dense<double>>(args.tensor(7));
    parallel_for(in.planes, grain_of(in.places()), [&](int64_t lo, int64_t hi) {
      auto pool = [&](const MaxWindows& w, int64_t at, int64_t count) {
        max_of_volumes(w, from.data() + at * in.places(), count, best.data() + at * made.places(),
                       found.data() + at * made.places());
      };
      if (!fractional) return pool(shared, lo, hi - lo);
      for (; lo < hi; ++lo) {
        MaxWindows own = shared;
        for (int d = 0; d < 3; ++d) {
          double s = (*samples)[lo * 3 + d];
          int64_t kernel = args.ints(3)[d];
          own.list[d] = x.dtype().bits == 64
                            ? fractional_windows(in.size[d], made.size[d], kernel, s)
                            : fractional_windows(in.size[d], made.size[d], kernel, float(s));
        }
        pool(own, lo, 1);
      }
    });
    best.commit();
    found.commit();
  });
}

void scatter_planes(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Volume small(grad), big{TensorView(out.get())};
  int64_t places = big.places(), each = small.places();
  visit<maxable>(grad.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> from(grad), to(out);
    Dense<int64_t> where(args.tensor(1));
    parallel_for(big.planes, grain_of(places), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        T* plane = to.data() + lo * places;
        std::fill_n(plane, places, T(0));
        check_indices(where.data() + lo * each, each, places, out.ndim() - 1);
        for (int64_t i = lo * each; i < (lo + 1) * each; ++i)
          plane[where[i]] = T(plane[where[i]] + from[i]);
      }
    });
    to.commit();
  });
}

struct Patches {
  Patches(Args args, uint32_t at, int64_t height, int64_t width) : in{height, width} {
    for (size_t d = 0; d < 2; ++d) {
      kernel[d] = args.ints(at)[d], dilation[d] = args.ints(at + 1)[d];
      pad[d] = args.ints(at + 2)[d], stride[d] = args.ints(at + 3)[d];
      out[d] = (in[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
    }
  }
  // Windows whose tap lies inside.
  void inside(size_t d, int64_t tap, int64_t* lo, int64_t* hi) const {
    int64_t first = tap * dilation[d] - pad[d];
    *lo = std::min(first < 0 ? (-first + stride[d] - 1) / stride[d] : 0, out[d]);
    *hi =
        first >= in[d] ? *lo : std::max(*lo, std::min((in[d] - 1 - first) / stride[d] + 1, out[d]));
  }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t windows() const { return out[0] * out[1]; }
  int64_t pixels() const { return in[0] * in[1]; }
  int64_t in[2], kernel[2], dilation[2], pad[2], stride[2], out[2];
};

void patches(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Patches p(args, 1, x.size(2), x.size(3));
  visit<stored>(x.dtype(), [&]<class T>() {
    Dense<T> from(x), to(out);
    parallel_for(
        x.size(0) * x.size(1) * p.taps(), grain_of(p.windows()), [&](int64_t begin, int64_t end) {
          for (; begin < end; ++begin) {
            const T* image = from.data() + begin / p.taps() * p.pixels();
            T* column = to.data() + begin * p.windows();
            int64_t i = begin % p.taps() / p.kernel[1], j = begin % p.kernel[1];
            int64_t y0, y1, x0, x1;
            p.inside(0, i, &y0, &y1);
            p.inside(1, j, &x0, &x1);
            for (int64_t y = 0; y < p.out[0]; ++y, column += p.out[1]) {
              if (y < y0 || y >= y1) {
                std::fill_n(column, p.out[1], T(0));
                continue;
              }
              const T* row = image + (y * p.stride[0] - p.pad[0] + i * p.dilation[0]) * p.in[1] +
                             j * p.dilation[1] - p.pad[1];
              std::fill_n(column, x0, T(0));
              if (p.stride[1] == 1)
                std::copy(row + x0, row + x1, column + x0);
              else
                for (int64_t k = x0; k < x1; ++k) column[k] = row[k * p.stride[1]];
              std::fill_n(column + x1, p.out[1] - x1, T(0));
            }
          }
        });
    to.commit();
  });
}

void patches_backward(Args args) {
  TensorView g = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Patches p(args, 2, out.size(2), out.size(3));
  visit<maxable>(g.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> from(g), to(out);
    parallel_for(out.size(0) * out.size(1), grain_of(p.windows() * p.taps()),
                 [&](int64_t begin, int64_t end) {
                   for (; begin < end; ++begin) {
                     T* image = to.data() + begin * p.pixels();
                     const T* column = from.data() + begin * p.taps() * p.windows();
                     std::fill_n(image, p.pixels(), T(0));
                     for (int64_t tap = 0; tap < p.taps(); ++tap, column += p.windows()) {
                       int64_t i = tap / p.kernel[1], j = tap % p.kernel[1], y0, y1, x0, x1;
                       p.inside(0, i, &y0, &y1);
                       p.inside(1, j, &x0, &x1);
                       for (int64_t y = y0; y < y1; ++y) {
                         T* row = image +
                                  (y * p.stride[0] - p.pad[0] + i * p.dilation[0]) * p.in[1] +
                                  j * p.dilation[1] - p.pad[1];
                         const T* c = column + y * p.out[1];
                         for (int64_t k = x0; k < x1; ++k)
                           row[k * p.stride[1]] = T(row[k * p.stride[1]] + c[k]);
                       }
                     }
                   }
                 });
    to.commit();
  });
}

}  // namespace

const Kernel windows_kernels[] = {
    {"_::max_windows", custom<max_windows, maxable>},
    {"_::patches", custom<patches, stored>},
    {"_::patches_backward", custom<patches_backward, maxable>},
    {"_::scatter_planes", custom<scatter_planes, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

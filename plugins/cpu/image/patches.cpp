// plugins/cpu/image/patches.cpp: columns of patches, and images that patches are added to.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

using summed = Join<reals, halves>;

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
  const Typed& as = typed_of(x.dtype());
  DenseAs in(x, as, true), columns(out, as, false);
  visit_size(x.dtype(), [&]<class T>() {
    const T* from = reinterpret_cast<const T*>(in.bytes());
    T* to = reinterpret_cast<T*>(columns.bytes());
    parallel_for(
        x.size(0) * x.size(1) * p.taps(), grain_of(p.windows()), [&](int64_t begin, int64_t end) {
          for (; begin < end; ++begin) {
            const T* image = from + begin / p.taps() * p.pixels();
            T* column = to + begin * p.windows();
            int64_t i = begin % p.taps() / p.kernel[1], j = begin % p.kernel[1];
            int64_t y0, y1, x0, x1;
            p.inside(0, i, &y0, &y1);
            p.inside(1, j, &x0, &x1);
            for (int64_t y = 0; y < p.out[0]; ++y, column += p.out[1]) {
              if (y < y0 || y >= y1) {
                std::fill_n(column, p.out[1], T());
                continue;
              }
              const T* row = image + (y * p.stride[0] - p.pad[0] + i * p.dilation[0]) * p.in[1] +
                             j * p.dilation[1] - p.pad[1];
              std::fill_n(column, x0, T());
              if (p.stride[1] == 1)
                std::copy(row + x0, row + x1, column + x0);
              else
                for (int64_t k = x0; k < x1; ++k) column[k] = row[k * p.stride[1]];
              std::fill_n(column + x1, p.out[1] - x1, T());
            }
          }
        });
  });
  columns.commit();
}

void patches_backward(Args args) {
  TensorView g = args.tensor(0);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  Patches p(args, 2, out.size(2), out.size(3));
  visit_math<reals>(g.dtype(), [&]<class T>() {
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

AJ_KERNELS(patches_kernels) = {
    {"_::patches", custom<patches, stored>},
    {"_::patches_backward", custom<patches_backward, summed>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/cpu/image/max_pool_volumes.cpp: maxima of windows over volumes and where they are, and
// the gradient through them.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>

#include "max_pool_rows.hpp"
#include "vector/stored.hpp"

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
  visit_math<reals>(x.dtype(), [&]<class T>() {
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
  visit_math<reals>(grad.dtype(), [&]<class T>() {
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

}  // namespace

AJ_KERNELS(max_pool_volumes_kernels) = {
    {"_::max_windows", custom<max_windows, maxable>},
    {"_::scatter_planes", custom<scatter_planes, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/gpu/kernels/sort.cuh: stable order of lines by a merge in steps (bottom-up),
// and running sums.
#include <adjoin/kit/geometry.hpp>

#include "../block.cuh"
#include "../merge.cuh"
#include "../reducers.cuh"

namespace adjoin::gpu {
namespace {

using sorted_types = Join<reals_bool, halves>;

template <class T>
struct Pick {
  const T* x;
  const int64_t* order;
  T* values;
  int64_t* indices;
  int64_t size, inner, keep;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t line = i / keep, k = i % keep;
    int64_t to = (line / inner * keep + k) * inner + line % inner;
    int64_t from = order ? order[line * size + k] : k;
    values[to] = x[(line / inner * size + from) * inner + line % inner];
    indices[to] = from;
  }
};
void order(const aj_call* call, TensorView x, int64_t dim, bool descending, int64_t keep,
           MutView values, MutView indices) {
  Lines l(x.shape(), dim);
  visit<sorted_types>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), best(call, values);
    Plain<int64_t> where(call, indices);
    int64_t lines = l.outer * l.inner;
    Buffer<int64_t> one(call, lines * l.size), other(call, lines * l.size);
    const int64_t* from =
        merge_all<T>(call, in.data(), lines, l.size, l.inner, descending, one.data(), other.data());
    each(call, lines * keep,
         Pick<T>{in.data(), from, best.data(), where.data(), l.size, l.inner, keep});
    best.commit();
    where.commit();
  });
}
void sort(Args args) {
  TensorView x = args.tensor(0);
  order(args.call(), x, args.integer(1), args.flag(2), Lines(x.shape(), args.integer(1)).size,
        args.result(0), args.result(1));
}
void topk(Args args) {
  order(args.call(), args.tensor(0), args.integer(2), args.flag(3), args.integer(1), args.result(0),
        args.result(1));
}

// Running sums and products: a line's parts are folded side by side, then
// written with what stands before them. float32 carries float64.
template <class T>
using Carried = std::conditional_t<std::is_same_v<T, float>, double,
                                   std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;

template <template <class> class R, class A>
struct Scan {
  Walk<2> walk;  // dimension 0 is the scanned one
  int64_t n, lines;
};
template <bool Wide, template <class> class R, class A>
AJ_GLOBAL void scan_kernel(AJ_ARGUMENT Scan<R, A> p) {
  using Own = Team<Wide>;
  R<A> reducer;
  int64_t parts = Own::step(), part = (p.n + parts - 1) / parts;
  for (int64_t line = Own::task(); line < p.lines; line += Own::tasks_step()) {
    int64_t offset[2];
    p.walk.locate(line * p.n, offset);
    int64_t lo = Own::first() * part, hi = lo + part < p.n ? lo + part : p.n;
    A before = reducer.start();
    if constexpr (Wide) {
      AJ_SHARED A sums[kBlock];
      A sum = reducer.start();
      for (int64_t k = lo; k < hi; ++k)
        reducer.join(sum, p.walk.template get<A>(1, offset[1] + k * p.walk.strides[1][0]));
      sums[thread_x()] = sum;
      sync_block();
      for (unsigned t = 0; t < thread_x(); ++t) reducer.join(before, sums[t]);
      sync_block();
    }
    for (int64_t k = lo; k < hi; ++k) {
      reducer.join(before, p.walk.template get<A>(1, offset[1] + k * p.walk.strides[1][0]));
      store<A>(p.walk.data[0] + offset[0] + k * p.walk.strides[0][0], p.walk.dtype[0], before);
    }
  }
}
template <template <class> class R>
aj_status* scan(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& plan = *call->plan;
    visit<all_types>(plan.compute, [&]<class T>() {
      using A = Carried<T>;
      for_walks<2>(plan, [&](const Walk<2>& w) {
        int64_t n = plan.ndim ? plan.sizes[0] : 1;
        Scan<R, A> p = {w, n, w.numel / std::max<int64_t>(n, 1)};
        launch_teams<&scan_kernel<false, R, A>, &scan_kernel<true, R, A>>(call, p.lines,
                                                                          n > kNarrow, p);
      });
    });
  });
}

}  // namespace

AJ_KERNELS(sort_kernels) = {
    {"sort", custom<sort>},
    {"topk", custom<topk>},
    {"cumsum", {&scan<SumOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {"cumprod", {&scan<ProdOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

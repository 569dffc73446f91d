// plugins/gpu/kernels/sort.cuh: the stable order of lines, the first elements of it, and running
// sums.
#include <adjoin/kit/geometry.hpp>

#include "../radix.cuh"
#include "../reducers.cuh"

namespace adjoin::gpu {
namespace {

using sorted_types = Join<reals_bool, halves>;

template <class T>
struct Pick {
  Keys<T> keys;
  Order order;
  T* values;
  int64_t* indices;
  Divisor keep;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t line = i, k = keep.split(&line);
    int64_t to = in_line(line, k, keep.size, keys.inner);
    int64_t from = order.places ? order.places[line * order.step + k] : k;
    values[to] = keys.x[in_line(line, from, keys.size, keys.inner)];
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
    Keys<T> keys = {in.data(), l.size, l.inner, descending};
    Order sorted = {one.data(), l.size};
    if (keep * 4 > kSortTile && lines && by_digits<T>(l.size))
      order_by_digits(call, keys, lines, one.data(), other.data());
    else
      sorted = order_lines(call, keys, keep ? lines : 0, keep, one.data(), other.data());
    each(call, lines * keep, Pick<T>{keys, sorted, best.data(), where.data(), keep});
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

// Running sums and products; float32 carries float64.
template <class T>
using Carried = std::conditional_t<std::is_same_v<T, float>, double,
                                   std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;

template <class R>
struct Along {
  using State = typename R::T;
  struct Line {
    int64_t to, from;
  };
  Walk<2> walk;  // dimension 0 is the scanned one
  int64_t size;
  R reducer;
  AJ_HD State start() const { return reducer.start(); }
  AJ_HD void join(State& s, const State& later) const { reducer.join(s, later); }
  AJ_HD Line line(int64_t l) const {
    int64_t offset[2];
    walk.locate(l * size, offset);
    return {offset[0], offset[1]};
  }
  AJ_HD State at(const Line& l, int64_t k) const {
    return walk.template get<State>(1, l.from + k * walk.strides[1][0]);
  }
  AJ_HD void put(const Line& l, int64_t k, const State& s) const {
    store<State>(walk.data[0] + l.to + k * walk.strides[0][0], walk.dtype[0], s);
  }
};
template <template <class> class R>
aj_status* scan(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& plan = *call->plan;
    visit<all_types>(plan.compute, [&]<class T>() {
      for_walks<2>(plan, [&](const Walk<2>& w) {
        int64_t n = plan.ndim ? plan.sizes[0] : 1;
        scan_all(call, Along<R<Carried<T>>>{w, n, {}}, w.numel / std::max<int64_t>(n, 1), n);
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

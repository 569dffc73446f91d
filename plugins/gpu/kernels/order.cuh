// plugins/gpu/kernels/order.cuh: searching sorted sequences, the order of rows, running extremes
// and logarithms of sums.
#include <adjoin/kit/geometry.hpp>

#include "../block.cuh"
#include "../element.cuh"
#include "../merge.cuh"
#include "../reducers.cuh"
#include "../scan.cuh"

namespace adjoin::gpu {
namespace {

using ordered = Join<reals_bool, halves>;

// NaN is larger than every number.
template <class T>
AJ_DEVICE bool comes_before(T x, T y) {
  return !scalar::is_nan(x) && (scalar::is_nan(y) || x < y);
}

// The first place whose element is not below the value (right: is above it).
template <class T>
struct Search {
  const T *sequence, *values;
  int64_t* places;
  int64_t n, step;  // step: from one sequence to the next
  Divisor line;     // values of each
  bool right;
  AJ_DEVICE void operator()(int64_t i) const {
    const T* begin = sequence + line.quotient(i) * step;
    Math<T> x = Math<T>(values[i]);
    int64_t low = 0, high = n;
    while (low < high) {
      int64_t middle = low + ((high - low) >> 1);
      Math<T> e = Math<T>(begin[middle]);
      if (right ? comes_before(x, e) : !comes_before(e, x))
        high = middle;
      else
        low = middle + 1;
    }
    places[i] = low;
  }
};
void search(Args args) {
  TensorView s = args.tensor(0), v = args.tensor(1);
  const aj_call* call = args.call();
  int64_t n = s.size(-1), line = v.ndim() ? v.size(-1) : 1;
  visit<ordered>(s.dtype(), [&]<class T>() {
    Plain<T> sequence(call, s), values(call, v);
    Plain<int64_t> to(call, args.result(0));
    each(call, v.numel(),
         Search<T>{sequence.data(), values.data(), to.data(), n, s.ndim() == 1 ? 0 : n, line,
                   args.flag(2)});
    to.commit();
  });
}

template <class T>
struct MergeRows {
  const T* rows;
  const int64_t* from;  // NULL: 0, 1, ...
  int64_t* to;
  int64_t n, width, run;
  AJ_DEVICE bool below(int64_t i, int64_t j) const {
    const T *a = rows + i * width, *b = rows + j * width;
    for (int64_t c = 0; c < width; ++c) {
      Math<T> x = Math<T>(a[c]), y = Math<T>(b[c]);
      if (comes_before(x, y)) return true;
      if (comes_before(y, x)) return false;
    }
    return false;
  }
  AJ_DEVICE int64_t at(int64_t k) const { return from ? from[k] : k; }
  AJ_DEVICE void operator()(int64_t k) const {
    int64_t mine = at(k);
    to[merged_place(k, n, run, [&](int64_t j, bool first) {
      return first ? below(at(j), mine) : !below(mine, at(j));
    })] = mine;
  }
};
void row_order(Args args) {
  TensorView t = args.tensor(0);
  const aj_call* call = args.call();
  int64_t n = t.size(0), passes = 0;
  if (n == 0) return;
  while ((int64_t(1) << passes) < n) ++passes;
  visit<ordered>(t.dtype(), [&]<class T>() {
    Plain<T> rows(call, t);
    Plain<int64_t> out(call, args.result(0));
    Buffer<int64_t> other(call, n);
    if (passes == 0) fill_zero(call, out.data(), int64_t(sizeof(int64_t)));
    const int64_t* from = nullptr;
    for (int64_t pass = 0; pass < passes; ++pass) {  // the last one writes the result
      int64_t* to = (passes - pass) % 2 ? out.data() : other.data();
      each(call, n, MergeRows<T>{rows.data(), from, to, n, t.size(1), int64_t(1) << pass});
      from = to;
    }
    out.commit();
  });
}

// What runs along a line: states of parts of it are joined in order.
template <class T, bool Largest>
struct Extreme {  // the last of equal ones; NaN before all
  using In = T;
  struct State {
    T value;
    int64_t place;  // -1: nothing seen
  };
  T* values;
  int64_t* places;
  AJ_HD State start() const { return {T(0), -1}; }
  AJ_HD State of(T x, int64_t k) const { return {x, k}; }
  AJ_HD void join(State& s, const State& later) const {
    if (later.place < 0) return;
    Math<T> a = Math<T>(later.value), b = Math<T>(s.value);
    bool takes =
        s.place < 0 || scalar::is_nan(a) || (!scalar::is_nan(b) && (Largest ? a >= b : a <= b));
    if (takes) s = later;
  }
  AJ_HD void put(int64_t at, const State& s) const {
    values[at] = s.value;
    places[at] = s.place;
  }
};
// log of sum = largest + log of the others relative to it.
template <class T>
struct LogSum {
  using In = T;
  using F = std::conditional_t<std::is_same_v<T, float>, double, Math<T>>;
  struct State {
    F top, sum;
  };
  T* out;
  AJ_HD State start() const { return {F(-INFINITY), F(0)}; }
  AJ_HD State of(T x, int64_t) const { return {F(Math<T>(x)), F(1)}; }
  AJ_HD void join(State& s, const State& later) const {
    if (later.top > s.top)
      s = {later.top, s.sum * scalar::Exp()(s.top - later.top) + later.sum};
    else
      s.sum += later.top == s.top ? later.sum : later.sum * scalar::Exp()(later.top - s.top);
  }
  AJ_HD void put(int64_t at, const State& s) const {
    out[at] = cast<T>(s.top + scalar::Log()(s.sum));
  }
};

template <class R>
struct Along {
  using State = typename R::State;
  R how;
  const typename R::In* x;
  int64_t size;
  Divisor inner;
  AJ_HD State start() const { return how.start(); }
  AJ_HD void join(State& s, const State& later) const { how.join(s, later); }
  AJ_HD int64_t line(int64_t l) const { return in_line(l, 0, size, inner); }
  AJ_HD State at(int64_t line, int64_t k) const { return how.of(x[line + k * inner.size], k); }
  AJ_HD void put(int64_t line, int64_t k, const State& s) const {
    how.put(line + k * inner.size, s);
  }
};
template <class R>
void run_along(const aj_call* call, TensorView x, int64_t dim, const typename R::In* from, R how) {
  Lines l(x.shape(), dim);
  scan_all(call, Along<R>{how, from, l.size, l.inner}, l.outer * l.inner, l.size);
}

template <bool Largest>
void extremes(Args args) {
  TensorView x = args.tensor(0);
  const aj_call* call = args.call();
  visit<ordered>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), values(call, args.result(0));
    Plain<int64_t> places(call, args.result(1));
    run_along(call, x, args.integer(1), in.data(),
              Extreme<T, Largest>{values.data(), places.data()});
    values.commit();
    places.commit();
  });
}
void log_sums(Args args) {
  TensorView x = args.tensor(0);
  const aj_call* call = args.call();
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> in(call, x), out(call, args.result(0));
    run_along(call, x, args.integer(1), in.data(), LogSum<T>{out.data()});
    out.commit();
  });
}

// Distances between rows: sums or maxima of powers of differences.
template <class T>
struct Distance {
  const T *a, *b;
  T* out;
  int64_t pairs, width;
  Divisor n, m;
  T p;
  AJ_HD T part(T d) const {
    if (p == T(2)) return d * d;
    if (p == T(1) || p == T(INFINITY)) return d;
    return p == T(0) ? T(d != T(0)) : scalar::Pow()(d, p);
  }
  AJ_HD T operator()(T x, T y) const { return p == T(INFINITY) ? scalar::Maximum()(x, y) : x + y; }
  AJ_HD T finish(T sum) const {
    if (p == T(2)) return scalar::Sqrt()(sum);
    bool plain = p == T(0) || p == T(1) || p == T(INFINITY);
    return plain ? sum : scalar::Pow()(sum, T(1) / p);
  }
};
template <bool Wide, class T>
AJ_GLOBAL void distance_kernel(AJ_ARGUMENT Distance<T> p) {
  using Own = Team<Wide>;
  for (int64_t i = Own::task(); i < p.pairs; i += Own::tasks_step()) {
    Quotient q = p.m.divided(i);
    const T* a = p.a + q.whole * p.width;
    const T* b = p.b + (p.n.quotient(q.whole) * p.m.size + q.rest) * p.width;
    T mine = T(0);
    for (int64_t k = Own::first(); k < p.width; k += Own::step())
      mine = p(mine, p.part(scalar::Abs()(a[k] - b[k])));
    T sum = Own::join(mine, p);
    if (Own::leads()) p.out[i] = p.finish(sum);
  }
}
// By a product of matrices: left to the body, whose products are the library's.
int32_t one_by_one(void*, const aj_call* call) { return !call->args[3].v.i; }

void distances(Args args) {
  TensorView x = args.tensor(0), y = args.tensor(1);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  visit<floating>(x.dtype(), [&]<class T>() {
    Plain<T> a(call, x), b(call, y), to(call, out);
    Distance<T> p = {a.data(),  b.data(),  to.data(), out.numel(),
                     x.size(2), x.size(1), y.size(1), T(args.real(2))};
    launch_teams<&distance_kernel<false, T>, &distance_kernel<true, T>>(call, p.pairs,
                                                                        p.width > kNarrow, p);
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(order_kernels) = {
    {"_::search", custom<search>},
    {"_::row_order", custom<row_order>},
    {"cummax", custom<extremes<true>>},
    {"cummin", custom<extremes<false>>},
    {"_::log_sums", custom<log_sums>},
    {"_::cdist", {&plain_kernel<distances>, floating::own_mask, 0, &one_by_one}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

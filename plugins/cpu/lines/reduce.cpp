// plugins/cpu/lines/reduce.cpp: reductions by the kit's tree.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/reduce.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/view.hpp>

#include "vector/reduce_leaf.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// Has vector code for its leaves.
template <class T>
concept InVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// The code of whole numbers' leaves, asked for once an op: a leaf may be of few elements.
template <class T>
struct WholeCode {};
template <>
struct WholeCode<int64_t> {
  const WholeLeaves& whole = whole_leaves();
};

// Of few elements, which a call would cost more than they do.
template <class R>
int64_t leaf_of(const R& r, int64_t (*many)(const int64_t*, int64_t), const int64_t* x, int64_t n) {
  if (n > 16) return many(x, n);
  int64_t s = x[0];
  for (int64_t i = 1; i < n; ++i) r.add(s, x[i], i);
  return s;
}

template <class Type>
struct Summing : WholeCode<Type> {
  using T = Type;
  using State = T;
  State start() const { return T(0); }
  void add(State& s, T x, int64_t) const { s = scalar::Add()(s, x); }
  void join(State& s, State other) const { s = scalar::Add()(s, other); }
  std::tuple<T> finish(State s, int64_t) const { return s; }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return leaves<T>().sum(x, n);
  }
  T leaf(const T* x, int64_t n, int64_t) const requires std::is_same_v<T, int64_t> {
    return leaf_of(*this, this->whole.sum, x, n);
  }
  void rows(T* s, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t) const requires InVectors<T> {
    leaves<T>().sum_rows(s, x, stride, rows, width);
  }
};
template <class Type>
struct Averaging : Summing<Type> {
  std::tuple<Type> finish(Type s, int64_t n) const { return s / Type(Real<Type>(n)); }
};
template <class Type>
struct Multiplying {
  using T = Type;
  using State = T;
  State start() const { return T(1); }
  void add(State& s, T x, int64_t) const { s = scalar::Mul()(s, x); }
  void join(State& s, State other) const { s = scalar::Mul()(s, other); }
  std::tuple<T> finish(State s, int64_t) const { return s; }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return leaves<T>().product(x, n);
  }
  void rows(T* s, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t) const requires InVectors<T> {
    leaves<T>().product_rows(s, x, stride, rows, width);
  }
};
// Products of many floats: n factors round n times, in whatever order. Of few that is little.
struct MultiplyingWide {
  using T = float;
  using State = double;
  static constexpr int64_t kMany = 1 << 12;
  State start() const { return 1; }
  void add(State& s, T x, int64_t) const { s *= x; }
  void join(State& s, State other) const { s *= other; }
  std::tuple<T> finish(State s, int64_t) const { return T(s); }
  State leaf(const T* x, int64_t n, int64_t) const { return leaves<T>().wide_product(x, n); }
};
template <class Type, bool All>
struct Testing {
  using T = Type;
  using State = bool;
  State start() const { return All; }
  void add(State& s, T x, int64_t) const { s = All ? s & x : s | x; }
  void join(State& s, State other) const { s = All ? s & other : s | other; }
  std::tuple<bool> finish(State s, int64_t) const { return s; }
  bool leaf(const bool* x, int64_t n, int64_t) const {
    // Bools may be any bytes: all are zero where each is as the one before it.
    if (All) return std::memchr(x, 0, size_t(n)) == nullptr;
    return n && (element<bool>(x) || std::memcmp(x, x + 1, size_t(n - 1)) != 0);
  }
};

template <class T, bool Max>
constexpr T worst() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return Max ? -L::infinity() : L::infinity();
  else
    return Max ? L::lowest() : L::max();
}

template <class Type, bool Max>
struct Extreme : WholeCode<Type> {  // a NaN stays
  using T = Type;
  using State = T;
  State start() const { return worst<T, Max>(); }
  void add(State& s, T x, int64_t) const {
    s = Max ? scalar::Maximum()(s, x) : scalar::Minimum()(s, x);
  }
  void join(State& s, State other) const { add(s, other, 0); }
  std::tuple<T> finish(State s, int64_t) const { return s; }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return Max ? leaves<T>().largest(x, n) : leaves<T>().least(x, n);
  }
  T leaf(const T* x, int64_t n, int64_t) const requires std::is_same_v<T, int64_t> {
    return leaf_of(*this, Max ? this->whole.largest : this->whole.least, x, n);
  }
  void rows(T* s, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t) const requires InVectors<T> {
    (Max ? leaves<T>().largest_rows : leaves<T>().least_rows)(s, x, stride, rows, width);
  }
};

template <class Type, bool Max>
struct Place {  // the first of the best; a NaN is best
  using T = Type;
  struct State {
    T value;
    int64_t index;
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  State start() const { return {worst<T, Max>(), kNone}; }
  static bool better(T a, T b) { return Max ? a > b : a < b; }
  void add(State& s, T x, int64_t i) const { join(s, {x, i}); }
  void join(State& s, State o) const {
    bool nan = scalar::is_nan(s.value), other_nan = scalar::is_nan(o.value);
    bool equal = (nan && other_nan) || s.value == o.value;
    if (equal ? o.index < s.index : !nan && (other_nan || better(o.value, s.value))) s = o;
  }
  std::tuple<T, int64_t> finish(State s, int64_t) const {
    return {s.value, s.index};
  }  // argmax has only the second
  State leaf(const T* x, int64_t n, int64_t first) const requires InVectors<T> {
    State s;
    s.index = first + (Max ? leaves<T>().first_largest : leaves<T>().first_least)(x, n, &s.value);
    return s;
  }
  void rows(State* s, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t first) const requires InVectors<T> {
    T value[kColumns];
    int64_t place[kColumns];
    (Max ? leaves<T>().first_largest_rows : leaves<T>().first_least_rows)(value, place, x, stride,
                                                                          rows, width);
    for (int64_t j = 0; j < width; ++j) s[j] = {value[j], first + place[j]};
  }
};
// The variance, or its root, which floats may hold where they don't hold the variance.
// Sums of distances from a pivot, and of their squares; where the pivot turns out to be far from
// the mean, again from there. Leaves are joined by counts, means and squares, in double: a mean of
// 1e4 as a float is off by more than distances of 1e-3.
template <class Type>
struct Variance {
  using T = Type;
  using R = Real<T>;
  using W = std::conditional_t<is_complex<T>, Complex128, double>;
  struct State {
    W mean;
    double squares, count;
  };
  double correction;
  bool root;

  template <class V>
  static auto square(V d) {
    if constexpr (is_complex<V>)
      return d.re * d.re + d.im * d.im;
    else
      return d * d;
  }
  State start() const { return {W(0), 0, 0}; }
  void add(State& s, T given, int64_t) const {
    W x(given), d = x - s.mean;
    s.count += 1;
    s.mean = s.mean + d / W(s.count);
    if constexpr (is_complex<T>)
      s.squares += d.re * (x.re - s.mean.re) + d.im * (x.im - s.mean.im);
    else
      s.squares += d * (x - s.mean);
  }
  void join(State& a, State b) const {
    double n = a.count + b.count;
    if (b.count == 0) return;
    W d = b.mean - a.mean;
    a.mean = a.mean + d * W(b.count / n);
    a.squares += b.squares + square(d) * a.count * b.count / n;
    a.count = n;
  }
  // Of n elements whose distances from the pivot have these sums.
  static State around(T pivot, T sum, T squares, int64_t n) {
    double off = double(sum) / double(n), rest = double(squares) - off * double(sum);
    return {double(pivot) + off, rest < 0 ? 0 : rest, double(n)};
  }
  static bool far(const State& s, T squares) { return s.squares < 0.25 * double(squares); }

  // Do squares of floats lose digits that their root would have? Differences of numbers above the
  // bound are too large for that. Zeros are told by their sum and the first n of them: to look at
  // all would cost a pass.
  bool faint(T squares, T pivot, T sum, const char* x, int64_t stride, int64_t n) const {
    using Limits = std::numeric_limits<T>;
    constexpr T least = Limits::min() / Limits::epsilon() / Limits::epsilon(), bound = T(2e-5);
    if (!std::is_same_v<T, float> || !root || squares >= least || std::abs(pivot) > bound)
      return false;
    bool zeros = pivot == 0 && sum == 0;
    for (int64_t i = 0; zeros && i < n; ++i)
      zeros = *reinterpret_cast<const T*>(x + i * stride) == 0;
    return !zeros;
  }

  // Sums of squares of large or small numbers are beyond the range where their deviation is not.
  State one_by_one(const T* x, int64_t n) const {
    State s = start();
    for (int64_t i = 0; i < n; ++i) add(s, x[i], i);
    return s;
  }

  State leaf(const T* x, int64_t n, int64_t) const {
    if constexpr (InVectors<T>) {
      const int64_t few = std::min(n, kLanes);
      T pivot = leaves<T>().sum(x, few) / T(few), sum, squares;
      leaves<T>().moments(x, n, pivot, &sum, &squares);
      if (!std::isfinite(squares) || faint(squares, pivot, sum, reinterpret_cast<const char*>(x),
                                           sizeof(T), std::min<int64_t>(n, 16)))
        return one_by_one(x, n);
      State s = around(pivot, sum, squares, n);
      if (!far(s, squares)) return s;
      pivot = T(s.mean);
      leaves<T>().moments(x, n, pivot, &sum, &squares);
      return around(pivot, sum, squares, n);
    } else {
      W mean = W(reduce_leaf(Summing<T>(), x, n, 0)) / W(double(n)), sum(0);
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) {
        W d = W(x[i]) - mean;
        sum = sum + d;
        squares += square(d);
      }
      W off = sum / W(double(n));
      return {mean + off, std::max(squares - square(off) * double(n), 0.0), double(n)};
    }
  }
  void rows(State* out, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t) const requires InVectors<T> {
    T sums[kColumns], squares[kColumns], pivots[kColumns];
    leaves<T>().moment_rows(sums, squares, pivots, x, stride, rows, width);
    for (int64_t j = 0; j < width; ++j) {
      out[j] = around(pivots[j], sums[j], squares[j], rows);
      const bool lost = faint(squares[j], pivots[j], sums[j], x + j * int64_t(sizeof(T)), stride,
                              rows > 4 ? 1 : rows);
      if (std::isfinite(squares[j]) && !far(out[j], squares[j]) && !lost) continue;
      out[j] = start();
      for (int64_t r = 0; r < rows; ++r)
        add(out[j], reinterpret_cast<const T*>(x + r * stride)[j], r);
    }
  }
  std::tuple<R> finish(State s, int64_t n) const {
    double rest = double(n) - correction, variance = s.squares / (rest > 0 ? rest : 0);
    return n == 0 ? R(NAN) : R(root ? std::sqrt(variance) : variance);
  }
};

template <class Type>
struct Norm2 {
  using T = Type;
  using State = Real<T>;
  State start() const { return 0; }
  void add(State& s, T x, int64_t) const { s += Variance<T>::square(x); }
  void join(State& s, State o) const { s += o; }
  std::tuple<State> finish(State s, int64_t) const { return std::sqrt(s); }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return leaves<T>().squares(x, n, 0);
  }
  void rows(T* s, const char* x, int64_t stride, int64_t rows, int64_t width,
            int64_t) const requires InVectors<T> {
    leaves<T>().square_rows(s, x, stride, rows, width);
  }
};
template <class Type>
struct Norm1 {
  using T = Type;
  using State = Real<T>;
  State start() const { return 0; }
  void add(State& s, T x, int64_t) const { s += scalar::Abs()(x); }
  void join(State& s, State o) const { s += o; }
  std::tuple<State> finish(State s, int64_t) const { return s; }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return leaves<T>().absolutes(x, n);
  }
};
template <class Type>
struct NormMax {
  using T = Type;
  using State = Real<T>;
  State start() const { return 0; }
  void add(State& s, T x, int64_t) const { s = scalar::Maximum()(s, scalar::Abs()(x)); }
  void join(State& s, State o) const { s = scalar::Maximum()(s, o); }
  std::tuple<State> finish(State s, int64_t) const { return s; }
  T leaf(const T* x, int64_t n, int64_t) const requires InVectors<T> {
    return scalar::Maximum()(std::abs(leaves<T>().largest(x, n)),
                             std::abs(leaves<T>().least(x, n)));
  }
};
template <class Type>
struct Norm {  // of any order: 0 counts, minus infinity is the smallest
  using T = Type;
  using State = Real<T>;
  double ord;
  State start() const { return ord == -INFINITY ? worst<State, false>() : 0; }
  void add(State& s, T x, int64_t) const {
    State a = scalar::Abs()(x);
    join(s, ord == 0 ? State(a != 0) : std::isinf(ord) ? a : std::pow(a, State(ord)));
  }
  void join(State& s, State o) const { s = ord == -INFINITY ? scalar::Minimum()(s, o) : s + o; }
  std::tuple<State> finish(State s, int64_t) const {
    return ord == 0 || std::isinf(ord) ? s : std::pow(s, State(1 / ord));
  }
};

// Few short rows in many places, as a repeated element's gradient has them: the tree is made for
// longer ones. False: another case.
bool sum_of_few(const aj_plan& p) {
  constexpr int64_t size = sizeof(float), most = 16, few = 4;
  if (p.nout != 1 || p.nreduced != 1 || p.ndim != 3 || p.sizes[0] < 1 || p.sizes[0] > most)
    return false;
  if (p.sizes[0] > few && p.sizes[1] > most) return false;
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  for (const aj_operand* o : {&to, &from})
    if (!same(o->dtype, dtype_of<float>) || o->strides[1] != size || o->strides[2] % size ||
        o->strides[0] % size)
      return false;
  const int64_t rows = p.sizes[0], width = p.sizes[1];
  parallel_for(p.sizes[2], grain_of(rows * width), [&](int64_t lo, int64_t hi) {
    add_few(reinterpret_cast<const float*>(static_cast<char*>(from.data) + lo * from.strides[2]),
            from.strides[2] / size, rows, from.strides[0] / size, width,
            reinterpret_cast<float*>(static_cast<char*>(to.data) + lo * to.strides[2]),
            to.strides[2] / size, hi - lo);
  });
  return true;
}

// Integers of all widths are reduced as int64: a sixth of the code.
template <class Set, template <class> class R>
aj_status* fold(void*, aj_call* call) {
  return guard(call, [&] {
    if (std::is_same_v<R<float>, Summing<float>> && sum_of_few(*call->plan)) return;
    visit<Set>(call->plan->compute, [&]<class T>() { reduce(*call->plan, R<Sum<T>>()); });
  });
}
aj_status* prod(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    int64_t n = 1;
    for (uint32_t d = 0; d < p.nreduced; ++d) n *= p.sizes[d];
    const aj_operand& in = p.ops[p.nout];
    const bool in_rows = same(in.dtype, dtype_of<float>) && in.strides[0] == sizeof(float);
    visit<all_types>(p.compute, [&]<class T>() {
      if (std::is_same_v<T, float> && in_rows && n >= MultiplyingWide::kMany)
        reduce(p, MultiplyingWide());
      else
        reduce(p, Multiplying<Sum<T>>());
    });
  });
}
// The largest of uint64 is not that of int64.
template <template <class> class R>
aj_status* best(void*, aj_call* call) {
  return guard(call, [&] {
    visit<reals_bool>(call->plan->compute, [&]<class T>() {
      constexpr bool own = std::is_same_v<T, uint64_t>;
      reduce(*call->plan, R<std::conditional_t<own, T, Sum<T>>>());
    });
  });
}
template <class T>
using AMax = Extreme<T, true>;
template <class T>
using AMin = Extreme<T, false>;
template <class T>
using First = Place<T, true>;
template <class T>
using FirstLeast = Place<T, false>;

template <bool All>
aj_status* truth(void*, aj_call* call) {
  return guard(call, [&] { reduce(*call->plan, Testing<bool, All>()); });
}

template <bool Root>
aj_status* spread(void*, aj_call* call) {
  return guard(call, [&] {
    double correction = Args(call).none(2) ? 1 : Args(call).real(2);
    visit<floating_complex>(call->plan->compute, [&]<class T>() {
      reduce(*call->plan, Variance<T>{correction, Root});
    });
  });
}

aj_status* vector_norm(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double ord = Args(call).real(1);
    visit<floating_complex>(p.compute, [&]<class T>() {
      if (ord == 2)
        reduce(p, Norm2<T>());
      else if (ord == 1)
        reduce(p, Norm1<T>());
      else if (ord == INFINITY)
        reduce(p, NormMax<T>());
      else
        reduce(p, Norm<T>{ord});
    });
  });
}

}  // namespace

AJ_KERNELS(reduce_kernels) = {
    {"sum", {&fold<all_types, Summing>, all_types::mask, AJ_KERNEL_CASTS}},
    {"mean", {&fold<floating_complex, Averaging>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"prod", {&prod, all_types::mask, AJ_KERNEL_CASTS}},
    {"var", {&spread<false>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"std", {&spread<true>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"vector_norm", {&vector_norm, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"amax", {&best<AMax>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"amin", {&best<AMin>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"max.dim", {&best<First>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"min.dim", {&best<FirstLeast>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmax", {&best<First>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmin", {&best<FirstLeast>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"all", {&truth<true>, 0, AJ_KERNEL_CASTS}},
    {"any", {&truth<false>, 0, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

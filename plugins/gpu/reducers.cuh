// plugins/gpu/reducers.cuh: what reductions keep of the elements seen so far, and how two such
// states are joined.
#ifndef ADJOIN_PLUGINS_GPU_REDUCERS_CUH
#define ADJOIN_PLUGINS_GPU_REDUCERS_CUH
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/scalar_math.hpp>
#include <cmath>

namespace adjoin::gpu {
using namespace adjoin::kit;  // NOLINT

struct NoIndex {
  static constexpr bool kIndexed = false, kIndexOnly = false;
};

template <class T_>
struct SumOf : NoIndex {
  using T = T_;
  using State = T;
  AJ_HD State start() const { return T(0); }
  AJ_HD void add(State& s, T x, int64_t) const { s = scalar::Add()(s, x); }
  AJ_HD void join(State& s, const State& later) const { s = scalar::Add()(s, later); }
  AJ_HD T finish(const State& s, int64_t) const { return s; }
};

template <class T>
struct MeanOf : SumOf<T> {
  AJ_HD T finish(const T& s, int64_t n) const { return s / T(Real<T>(n)); }
};

template <class T_>
struct ProdOf : NoIndex {
  using T = T_;
  using State = T;
  AJ_HD State start() const { return T(1); }
  AJ_HD void add(State& s, T x, int64_t) const { s = scalar::Mul()(s, x); }
  AJ_HD void join(State& s, const State& later) const { s = scalar::Mul()(s, later); }
  AJ_HD T finish(const State& s, int64_t) const { return s; }
};

// Means and sums of squared differences, joined (T. Chan, G. Golub and R. LeVeque, 1979).
template <class T_>
struct VarOf : NoIndex {
  using T = T_;
  using V = Real<T>;
  struct State {
    T mean;
    V squares, count;
  };
  double correction;
  AJ_HD static V product(T a, T b) {
    if constexpr (is_complex<T>)
      return a.re * b.re + a.im * b.im;
    else
      return a * b;
  }
  AJ_HD State start() const { return {T(0), 0, 0}; }
  AJ_HD void add(State& s, T x, int64_t) const {
    T before = x - s.mean;
    s.count += 1;
    s.mean = s.mean + before / T(s.count);
    s.squares += product(before, x - s.mean);
  }
  AJ_HD void join(State& s, const State& later) const {
    V n = s.count + later.count;
    if (later.count == 0) return;
    T apart = later.mean - s.mean;
    s.mean = s.mean + apart * T(later.count / n);
    s.squares += later.squares + product(apart, apart) * (s.count * later.count / n);
    s.count = n;
  }
  AJ_HD V finish(const State& s, int64_t n) const {
    double divisor = double(n) - correction;
    return n == 0 ? V(NAN) : V(s.squares / V(divisor > 0 ? divisor : 0));
  }
};

template <class T_>
struct NormOf : NoIndex {
  using T = T_;
  using State = Real<T>;
  double ord;
  AJ_HD State start() const { return ord == -INFINITY ? State(INFINITY) : State(0); }
  // Does each element take a call of a function?
  AJ_HD bool calls() const { return ord != 0 && ord != 1 && ord != 2 && !std::isinf(ord); }
  AJ_HD void add(State& s, T element, int64_t) const {
    if (calls())
      s += std::pow(State(scalar::Abs()(element)), State(ord));
    else
      add_plain(s, element);
  }
  AJ_HD void add_plain(State& s, T element) const {
    State x = State(scalar::Abs()(element));
    if (std::isinf(ord))
      s = extreme(s, x);
    else
      s += ord == 2 ? x * x : ord == 1 ? x : State(x != 0);
  }
  AJ_HD State extreme(State a, State b) const {
    return ord > 0 ? scalar::Maximum()(a, b) : scalar::Minimum()(a, b);
  }
  AJ_HD void join(State& s, const State& later) const {
    s = std::isinf(ord) ? extreme(s, later) : s + later;
  }
  AJ_HD State finish(const State& s, int64_t) const {
    if (ord == 0 || ord == 1 || std::isinf(ord)) return s;
    return ord == 2 ? std::sqrt(s) : std::pow(s, State(1 / ord));
  }
};

// The first of the best; a NaN is best.
template <class T_, class Better, bool IndexOnly>
struct ExtremeOf {
  static constexpr bool kIndexed = true, kIndexOnly = IndexOnly;
  using T = T_;
  struct State {
    T value;
    int64_t index;  // -1: nothing seen
  };
  AJ_HD State start() const { return {T(0), -1}; }
  AJ_HD void add(State& s, T x, int64_t i) const { join(s, {x, i}); }
  AJ_HD void join(State& s, const State& other) const {
    if (other.index < 0) return;
    bool nan = scalar::is_nan(s.value), other_nan = scalar::is_nan(other.value);
    bool better = s.index < 0 || (other_nan && !nan) ||
                  (!nan && !other_nan && Better()(other.value, s.value));
    bool equal = (nan && other_nan) || (!nan && !other_nan && other.value == s.value);
    if (better || (equal && other.index < s.index)) s = other;
  }
};

template <bool All>
struct TruthOf : NoIndex {
  using T = bool;
  using State = bool;
  AJ_HD State start() const { return All; }
  AJ_HD void add(State& s, bool x, int64_t) const { join(s, x); }
  AJ_HD void join(State& s, const State& x) const { s = All ? s && x : s || x; }
  AJ_HD bool finish(const State& s, int64_t) const { return s; }
};

}  // namespace adjoin::gpu
#endif

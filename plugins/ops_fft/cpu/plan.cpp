// plugins/ops_fft/cpu/plan.cpp: plans are made, and the last ones are kept.
#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <type_traits>

#include "lines.hpp"

namespace adjoin::cpu::fft {

// Angles are brought into the first eighth of a turn, where sine and cosine lose nothing.
template <class T>
void root(int64_t k, int64_t n, T* to) {
  const __int128 wide = __int128(k % n) * 8;
  const int eighth = int(wide / n);
  const int64_t rest = int64_t(wide % n);  // the angle is (eighth + rest / n) / 8 turns
  const bool mirrored = eighth & 1;
  const long double angle = std::numbers::pi_v<long double> / 4 *
                            (long double)(mirrored ? n - rest : rest) / (long double)n;
  long double c = std::cos(angle), s = std::sin(angle);
  if (mirrored) std::swap(c, s);
  switch (eighth / 2) {
    case 1:
      std::swap(c, s), c = -c;
      break;
    case 2:
      c = -c, s = -s;
      break;
    case 3:
      std::swap(c, s), s = -s;
      break;
    default:
      break;
  }
  to[0] = T(c), to[1] = T(-s);
}
template void root<float>(int64_t, int64_t, float*);
template void root<double>(int64_t, int64_t, double*);

namespace {

constexpr int64_t kDirect = 64;        // primes below are butterflies of their own
constexpr int64_t kLongest = 1 << 14;  // of lines in lanes
constexpr int64_t kLongestSide = 1 << 17;
constexpr int64_t kAllTurns = 1 << 16;
constexpr int64_t kWideChirp = 2048;
constexpr int64_t kLongestPrime = 1 << 24;  // its places are kept

// The radices of passes; empty where n has a larger prime.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> out;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos % 3 == 1 && twos > 1) out.push_back(16), twos -= 4;
  for (; twos >= 3; twos -= 3) out.push_back(8);
  if (twos) out.push_back(1 << twos);
  for (int64_t p = 3; p < kDirect; p += 2)
    for (; n % p == 0; n /= p) out.push_back(int(p));
  if (n > 1) out.clear();
  return out;
}

// What passes cost an element, in operations on vectors, loads and stores of lines among them.
double cost_of(int64_t n) {
  double cost = 3;
  for (int radix : radices_of(n))
    cost += radix == 2    ? 1
            : radix == 4  ? 1.2
            : radix == 8  ? 1.7
            : radix == 16 ? 2.4
                          : 0.7 + 0.45 * radix;
  return cost;
}

template <class T>
void add_passes(Plan<T>& plan) {
  int64_t n = plan.n, s = 1;
  for (int radix : radices_of(n)) {
    Pass<T> pass{radix, n / radix, s, {}, {}};
    for (int64_t p = 1; p < pass.m; ++p)
      for (int j = 1; j < radix; ++j) {
        T w[2];
        root(p * j, n, w);
        pass.turns.insert(pass.turns.end(), {w[0], w[1]});
      }
    if (radix & 1)
      for (int j = 1; j <= radix / 2; ++j)
        for (int k = 1; k <= radix / 2; ++k) {
          T w[2];
          root(int64_t(j) * k, radix, w);
          pass.roots.insert(pass.roots.end(), {w[0], -w[1]});
        }
    plan.passes.push_back(std::move(pass));
    s *= radix;
    n /= radix;
  }
}

template <class T>
PlanPtr<T> lanes_plan(int64_t n) {
  auto plan = std::make_shared<Plan<T>>();
  plan->n = n;
  add_passes(*plan);
  return plan;
}

// The best matrix for a line of n, as its row's length; 0: the line is better off in one lane.
int64_t split_of(int64_t n, int64_t lanes) {
  int64_t best = 0;
  double least = n <= kLongest ? double(n) * cost_of(n) : INFINITY;
  for (int64_t b = 2; b * b <= n; ++b) {
    if (n % b) continue;
    for (int64_t rows : {b, n / b}) {
      const int64_t columns = n / rows;
      if (std::max(rows, columns) > kLongestSide) continue;
      const int64_t vectors = (rows + lanes - 1) / lanes * columns;
      const int64_t others = (columns + lanes - 1) / lanes * rows;
      const double cost =
          double(vectors) * (cost_of(columns) + 4) + double(others) * cost_of(rows) + 30;
      if (cost < least) least = cost, best = rows;
    }
  }
  return best;
}

template <class T>
void add_split(Plan<T>& plan, int64_t rows) {
  const int64_t n = plan.n, lanes = code<T>().lanes, columns = n / rows;
  plan.columns = lanes_plan<T>(columns);
  plan.rows = lanes_plan<T>(rows);
  plan.uneven = columns % lanes || rows % lanes;
  const bool all = n <= kAllTurns;
  const int64_t vectors = (rows + lanes - 1) / lanes;
  plan.turns.resize(size_t((all ? vectors : 1) * columns * 2 * lanes));
  for (int64_t v = 0; v < (all ? vectors : 1); ++v)
    for (int64_t k = 0; k < columns; ++k)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        T w[2];
        root((v * lanes + lane) * k, n, w);
        T* to = plan.turns.data() + (v * columns + k) * 2 * lanes + lane;
        to[0] = w[0], to[lanes] = w[1];
      }
  if (all) return;
  plan.far.resize(size_t(vectors * columns * 2));
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t k = 0; k < columns; ++k)
      root(v * lanes * k, n, plan.far.data() + (v * columns + k) * 2);
}

// The least length of at least so many that has small factors alone.
int64_t smooth_from(int64_t least) {
  int64_t best = 16;
  while (best < least) best *= 2;
  for (int64_t odd : {3, 5, 7, 9, 15, 21, 25, 27})
    for (int64_t n = odd * 16; n < best; n *= 2)
      if (n >= least) best = n;
  return best;
}

template <class T>
PlanPtr<T> made(int64_t n, bool real);

int64_t power_of(int64_t base, int64_t exponent, int64_t n) {
  int64_t out = 1;
  for (; exponent; exponent /= 2, base = base * base % n)
    if (exponent & 1) out = out * base % n;
  return out;
}
// A number whose powers are all others below the prime n; 0: n is no prime.
int64_t generator_of(int64_t n) {
  std::vector<int64_t> primes;
  int64_t rest = n - 1;
  for (int64_t p = 2; p * p <= rest; ++p)
    if (rest % p == 0)
      for (primes.push_back(p); rest % p == 0;) rest /= p;
  if (rest > 1) primes.push_back(rest);
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return 0;
  for (int64_t g = 2;; ++g)
    if (std::ranges::none_of(primes, [&](int64_t p) { return power_of(g, (n - 1) / p, n) == 1; }))
      return g;
}

// True: n is a prime whose convolution of n - 1 elements is cheaper than one of m.
template <class T>
bool add_powers(Plan<T>& plan, int64_t m) {
  const int64_t n = plan.n;
  if (n >= kLongestPrime || radices_of(n - 1).empty() ||
      double(n) * (cost_of(n - 1) + 2) > double(m) * cost_of(m))
    return false;
  const int64_t g = generator_of(n);
  if (g == 0) return false;
  plan.convolution = made<T>(n - 1, false);
  std::vector<T> wave(size_t(2 * (n - 1)));
  plan.kernel.resize(wave.size());
  const int64_t inverse = power_of(g, n - 2, n);
  for (int64_t k = 0, up = 1, down = 1; k + 1 < n; ++k) {
    plan.powers.push_back(int32_t(up)), plan.places.push_back(int32_t(down));
    root(down, n, wave.data() + 2 * k);
    up = up * g % n, down = down * inverse % n;
  }
  code<T>().single(*plan.convolution, wave.data(), plan.kernel.data(), false, T(1) / T(n - 1));
  return true;
}

template <class T>
void add_convolution(Plan<T>& plan) {
  const int64_t n = plan.n, m = smooth_from(2 * n - 1);
  if (std::is_same_v<T, float> && n >= kWideChirp) {
    plan.wide = made<double>(n, false);
    return;
  }
  if (add_powers(plan, m)) return;
  plan.convolution = made<T>(m, false);
  plan.chirp.resize(size_t(2 * n));
  for (int64_t j = 0; j < n; ++j)
    root(int64_t(__int128(j) * j % (2 * n)), 2 * n, plan.chirp.data() + 2 * j);
  std::vector<T> wave(size_t(2 * m));
  for (int64_t j = 0; j < n; ++j) {
    const T re = plan.chirp[size_t(2 * j)], im = -plan.chirp[size_t(2 * j + 1)];
    for (int64_t at : {j, (m - j) % m}) wave[size_t(2 * at)] = re, wave[size_t(2 * at + 1)] = im;
  }
  plan.kernel.resize(size_t(2 * m));
  code<T>().single(*plan.convolution, wave.data(), plan.kernel.data(), false, T(1) / T(m));
}

template <class T>
PlanPtr<T> made(int64_t n, bool real) {
  auto plan = std::make_shared<Plan<T>>();
  plan->n = n;
  if (real && n % 2 == 0) {
    plan->half = made<T>(n / 2, false);
    plan->mirror.resize(size_t(n / 2 + 2));
    for (int64_t k = 0; k <= n / 4; ++k) root(k, n, plan->mirror.data() + 2 * k);
    return plan;
  }
  if (n > 1 && radices_of(n).empty()) {
    add_convolution(*plan);
    return plan;
  }
  if (n <= kLongest) add_passes(*plan);
  if (int64_t rows = split_of(n, code<T>().lanes)) add_split(*plan, rows);
  if (!plan->passes.empty() || plan->columns || n == 1) return plan;
  add_convolution(*plan);  // too long for lanes, and no matrix
  return plan;
}

template <class T>
class Kept {
 public:
  PlanPtr<T> find(int64_t n, bool real) {
    {
      std::lock_guard lock(mutex_);
      if (PlanPtr<T> plan = found(n, real)) return plan;
    }
    PlanPtr<T> plan = made<T>(n, real);  // the others do not wait
    std::lock_guard lock(mutex_);
    if (PlanPtr<T> other = found(n, real)) return other;
    plans_.push_front({n, real, plan});
    if (plans_.size() > 64) plans_.pop_back();
    return plan;
  }

 private:
  struct Entry {
    int64_t n;
    bool real;
    PlanPtr<T> plan;
  };
  PlanPtr<T> found(int64_t n, bool real) {
    for (auto at = plans_.begin(); at != plans_.end(); ++at)
      if (at->n == n && at->real == real) {
        plans_.splice(plans_.begin(), plans_, at);
        return at->plan;
      }
    return nullptr;
  }
  std::mutex mutex_;
  std::list<Entry> plans_;  // the last used first
};

}  // namespace

template <class T>
PlanPtr<T> plan_of(int64_t n, bool real) {
  static Kept<T> kept;
  return kept.find(n, real && n % 2 == 0);
}
template PlanPtr<float> plan_of<float>(int64_t, bool);
template PlanPtr<double> plan_of<double>(int64_t, bool);

}  // namespace adjoin::cpu::fft

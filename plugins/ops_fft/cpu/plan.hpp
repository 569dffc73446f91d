// plugins/ops_fft/cpu/plan.hpp: how lines of one length are transformed. A plan never changes once
// it is made, so any number of threads use it at once.
#ifndef ADJOIN_PLUGINS_OPS_FFT_CPU_PLAN_HPP
#define ADJOIN_PLUGINS_OPS_FFT_CPU_PLAN_HPP
#include <cstdint>
#include <memory>
#include <vector>

namespace adjoin::cpu::fft {

// One pass of Stockham's algorithm over n = radix * m * s elements: butterflies of `radix` elements
// that lie m * s apart, their results s apart.
template <class T>
struct Pass {
  int radix;
  int64_t m, s;
  std::vector<T> turns;  // of p = 1, 2, ... m - 1: radix - 1 factors
  std::vector<T> roots;  // of odd radices: cosines and sines
};

template <class T>
struct Plan {
  int64_t n = 0;
  // Lines beside each other, one in each lane of vectors.
  std::vector<Pass<T>> passes;
  // A line by itself: n = columns->n * rows->n. The line is a matrix whose rows have rows->n
  // elements; its columns are transformed, turned, then its rows.
  std::shared_ptr<const Plan> columns, rows;
  // The factors between: all of them, for each vector of columns; or of long lines those of the
  // first vector (`turns`), and what the k-th element of the others is turned by besides (`far`).
  std::vector<T> turns, far;
  bool uneven = false;  // some lanes stay empty in that
  // Bluestein: a convolution, of a length that has small factors.
  std::shared_ptr<const Plan> convolution;
  std::vector<T> chirp, kernel;
  // Rader, of a prime: the convolution has n - 1 elements, the powers of a number that makes all
  // others; result k stands at `places`.
  std::vector<int32_t> powers, places;
  // The same in double, for a long convolution of floats, which rounds more than a transform.
  std::shared_ptr<const Plan<double>> wide;
  // Real numbers: two beside each other are a complex one; `mirror` tells the spectra apart.
  std::shared_ptr<const Plan> half;
  std::vector<T> mirror;
};
template <class T>
using PlanPtr = std::shared_ptr<const Plan<T>>;

// Of complex numbers, or of n real ones. The 64 plans that were used last are kept.
template <class T>
PlanPtr<T> plan_of(int64_t n, bool real);

// exp(-2 pi i k / n), each part rounded once.
template <class T>
void root(int64_t k, int64_t n, T* to);

}  // namespace adjoin::cpu::fft
#endif

// plugins/ops_fft/cpu/transform.hpp: transforms of arrays, line by line along each dimension.
#ifndef ADJOIN_PLUGINS_OPS_FFT_CPU_TRANSFORM_HPP
#define ADJOIN_PLUGINS_OPS_FFT_CPU_TRANSFORM_HPP
#include <vector>

#include "lines.hpp"

namespace adjoin::cpu::fft {

enum class Kind { complex, to_half, from_half };

// A dimension; distances count real numbers.
struct Dim {
  int64_t size, in, out;
};

// Lines of n elements along one dimension, for all places of the others. Of real numbers and half
// spectra n is the count of real ones. `in` and `out` may be the same where both are complex.
template <class T>
struct Job {
  Kind kind;
  int64_t n;
  const T* in;
  T* out;
  int64_t in_stride, out_stride;
  std::vector<Dim> others;
  bool forward;
  T scale;
  bool cold;  // `in` is not in the cache
};
template <class T>
void run(Job<T> job);

// The one whose results lie closest is the innermost, the last one; what lies one behind the other
// is one.
void ordered(std::vector<Dim>& dims);

}  // namespace adjoin::cpu::fft
#endif

// plugins/ops_fft/cpu/lines.hpp: what vector code does with lines of complex numbers.
#ifndef ADJOIN_PLUGINS_OPS_FFT_CPU_LINES_HPP
#define ADJOIN_PLUGINS_OPS_FFT_CPU_LINES_HPP
#include "plan.hpp"

namespace adjoin::cpu::fft {

constexpr int kMostLanes = 16;

// Lines of complex numbers, as many as a vector has lanes or fewer. Distances count real numbers.
template <class T>
struct Lines {
  T* at[kMostLanes];
  int64_t stride;  // from an element to the next one of its line
  int count;
  bool beside;  // each line begins one complex number behind the line before
  // From a line to the one that comes so many lanes later, if it is to be in the cache by then.
  int64_t next = 0;
};

template <class T>
struct Code {
  int lanes;
  // Every line; back: with exp(i ...). They may be transformed in place.
  void (*group)(const Plan<T>&, const Lines<T>& from, const Lines<T>& to, bool back, T scale);
  // A line whose elements lie one behind the other, from and to.
  void (*single)(const Plan<T>&, const T* from, T* to, bool back, T scale);
  // Real lines of plan.n elements, an even number; of each spectrum n / 2 + 1 elements. Of lines
  // beside each other each begins one real number behind the line before.
  void (*half_group)(const Plan<T>&, const Lines<T>& from, const Lines<T>& to, bool conj, T scale);
  // The spectrum of n real numbers, n / 2 + 1 elements, from that of their pairs, in place.
  void (*unfold)(const Plan<T>&, T* line, bool conj);
  // The spectrum of pairs whose inverse transform are n real numbers.
  void (*fold)(const Plan<T>&, const T* spectrum, T* to, bool conj);
};
template <class T>
const Code<T>& code();

// Room for so many bytes, of this thread, until it asks for the same slot again. It begins at a
// cache line.
enum Slot { kLanes, kMatrix, kChirp, kDouble, kLine, kOther };
void* room(Slot slot, int64_t bytes);

}  // namespace adjoin::cpu::fft
#endif

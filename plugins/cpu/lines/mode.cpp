// plugins/cpu/lines/mode.cpp: where the most frequent element of a line is.
#include <adjoin/kit/geometry.hpp>
#include <algorithm>

#include "sort_keys.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// The most frequent element of lines, one after the other: equal keys stand beside each other in a
// sorted line.
template <class T>
class Modes {
  using K = Keys<T>;
  using Bits = typename K::Bits;

 public:
  explicit Modes(int64_t n) : n_(n), a_(n), b_(n) {}

  // The last place of the smallest of several; NaN equal nothing.
  int64_t place(const T* x, int64_t step) {
    uint64_t *words = a_.get(), best = 0;
    const uint64_t first = K::of(x[0], false), nan = Bits(~Bits(0));
    uint64_t varying = 0;
    for (int64_t i = 0; i < n_; ++i) {
      words[i] = K::of(x[i * step], false);
      varying |= words[i] ^ first;
    }
    if (varying)
      words = sort_words(words, b_.get(), n_, 1, unsigned(std::countr_zero(varying)),
                         unsigned(std::bit_width(varying)));
    int64_t most = 0, run = 0;
    for (int64_t i = 0; i < n_; ++i) {
      bool same =
          i && words[i] == words[i - 1] && !(std::is_floating_point_v<T> && words[i] == nan);
      run = same ? run + 1 : 1;
      best = run > most ? words[i] : best;
      most = std::max(run, most);
    }
    if (std::is_floating_point_v<T> && best == nan) return 0;
    int64_t at = n_ - 1;
    while (K::of(x[at * step], false) != best) --at;
    return at;
  }

 private:
  int64_t n_;
  Room<uint64_t> a_, b_;
};

void mode_place(Args args) {
  TensorView x = args.tensor(0);
  Lines l(x.shape(), args.integer(1));
  visit_math<reals_bool>(x.dtype(), [&]<class T>() {
    Dense<T> in(x);
    Dense<int64_t> out(args.result(0));
    parallel_for(l.outer * l.inner, grain_of(l.size, 4096), [&](int64_t lo, int64_t hi) {
      Modes<T> modes(l.size);
      for (; lo < hi; ++lo)
        out[lo] = modes.place(in.data() + lo / l.inner * l.size * l.inner + lo % l.inner, l.inner);
    });
    out.commit();
  });
}

}  // namespace

AJ_KERNELS(mode_kernels) = {
    {"_::mode_place", custom<mode_place>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

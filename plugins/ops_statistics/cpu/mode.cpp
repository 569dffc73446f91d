// plugins/ops_statistics/cpu/mode.cpp: where the most frequent element of a line is.
#include <adjoin/kit/geometry.hpp>
#include <algorithm>

#include "vector/sort_keys.hpp"
#include "vector/stored.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_statistics/cpu/mode.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
// How many of few words are as each of them is. Whole vectors are read.
static void count_equal(const uint64_t* words, int64_t n, int64_t* count) {
  const hn::ScalableTag<uint64_t> d;
  constexpr int64_t L = HWY_LANES(uint64_t);
  for (int64_t i = 0; i < n; ++i) {
    auto one = hn::Set(d, words[i]);
    count[i] = 0;
    for (int64_t k = 0; k < n; k += L) {
      auto same = hn::And(hn::FirstN(d, size_t(n - k)), hn::Eq(hn::LoadU(d, words + k), one));
      count[i] += int64_t(hn::CountTrue(d, same));
    }
  }
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

// The most frequent element of lines, one after the other: equal keys stand beside each other in a
// sorted line.
template <class T>
class Modes {
  using K = Keys<T>;
  using Bits = typename K::Bits;

 public:
  explicit Modes(int64_t n) : n_(n), a_(n + kFew), b_(n) {}

  // The last place of the smallest of several; NaN equal nothing.
  int64_t place(const T* x, int64_t step) {
    uint64_t *words = a_.get(), best = 0;
    const uint64_t first = K::of(x[0], false), nan = Bits(~Bits(0));
    uint64_t varying = 0;
    for (int64_t i = 0; i < n_; ++i) {
      words[i] = K::of(x[i * step], false);
      varying |= words[i] ^ first;
    }
    auto alone = [=](uint64_t word) { return std::is_floating_point_v<T> && word == nan; };
    int64_t most = 0, run = 0;
    if (n_ > 3 && n_ <= kFew &&
        varying) {  // to sort random numbers costs more, in jumps nobody foresees
      int64_t equal[kFew];
      AJ_SIMD(count_equal)(words, n_, equal);
      for (int64_t i = 0; i < n_; ++i) {
        const int64_t count = alone(words[i]) ? 1 : equal[i];
        const bool better = (count > most) | ((count == most) & (words[i] < best));
        best = better ? words[i] : best;
        most = better ? count : most;
      }
    } else {
      if (varying)
        words = sort_words(words, b_.get(), n_, 1, unsigned(std::countr_zero(varying)),
                           unsigned(std::bit_width(varying)));
      for (int64_t i = 0; i < n_; ++i) {
        bool same = i && words[i] == words[i - 1] && !alone(words[i]);
        run = same ? run + 1 : 1;
        best = run > most ? words[i] : best;
        most = std::max(run, most);
      }
    }
    if (alone(best)) return 0;
    int64_t at = n_ - 1;
    while (K::of(x[at * step], false) != best) --at;
    return at;
  }

 private:
  static constexpr int64_t kFew = 16;
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
#endif

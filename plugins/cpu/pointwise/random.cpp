// plugins/cpu/pointwise/random.cpp: numbers of the shared generator, in blocks.
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/philox.hpp>

#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pointwise/random.cpp"
#include "vector/simd.hpp"
// the functions of each set
#include "vector/philox-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
using FloatRow = void (*)(const uint32_t*, float*, int64_t, float, float, bool);
using DoubleRow = void (*)(const uint32_t*, double*, int64_t, double, double, bool);
inline FloatRow float_row(bool normal) { return normal ? &normal_row<float> : &uniform_row<float>; }
inline DoubleRow double_row(bool normal) {
  return normal ? &normal_row<double> : &uniform_row<double>;
}
using DropoutRow = void (*)(const uint32_t*, const void*, void*, int64_t, float, float, bool);
inline DropoutRow dropout_of(DLDataType d) {
  return same(d, dtype_of<float>)      ? &dropout_row<float>
         : same(d, dtype_of<BFloat16>) ? &dropout_row<BFloat16>
         : same(d, dtype_of<Half>)     ? &dropout_row<Half>
                                       : nullptr;
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

constexpr int64_t kChunk = 1024;  // elements: their words and values fit the first-level cache

Philox generator(const aj_call* call, uint32_t seed) {
  return {uint64_t(Args(call).integer(seed)), uint64_t(Args(call).integer(seed + 1))};
}

// The words for elements [first, first + n), `per` elements a block, preceded by `skew` of the
// first block.
struct Words {
  alignas(64) uint32_t word[2 * kChunk + 64];
  int64_t skew, blocks;
  void draw(const Philox& philox, int64_t first, int64_t n, int64_t per) {
    skew = first % per;
    blocks = (skew + n + per - 1) / per;
    AJ_SIMD(philox_words)(philox.seed, philox.offset + uint64_t(first / per), blocks, word);
  }
};

// Calls make(values, first element, n) for blocks of the plan and stores what it made; where
// nothing is converted, make writes into the result.
template <class T, class Make>
void fill_blocks(const aj_plan& p, Make make) {
  T values[kBlock];
  int64_t step = row_stride(p, 0), i = p.first_index;
  bool direct = step == int64_t(sizeof(T)) && same(p.ops[0].dtype, dtype_of<T>);
  for_rows(p, [&](char** at, int64_t n) {
    for (int64_t lo = 0; lo < n; lo += kBlock) {
      int64_t m = std::min(kBlock, n - lo);
      char* to = at[0] + lo * step;
      make(direct ? reinterpret_cast<T*>(to) : values, i + lo, m);
      if (!direct) Convert<T>::store(to, p.ops[0].dtype, step, values, m);
    }
    i += n;
  });
}

template <class T, class Row>
void fill_rows(const aj_plan& p, const Philox& philox, Row row, T a, T b, bool normal) {
  Words words;
  alignas(64) T values[kChunk + 64];
  constexpr int64_t per = kPerBlock<T>;
  int64_t step = row_stride(p, 0), i = p.first_index;
  bool direct = step == int64_t(sizeof(T)) && same(p.ops[0].dtype, dtype_of<T>);
  bool stream = direct && !normal && worth_streaming(p);
  for_rows(p, [&](char** at, int64_t n) {
    for (int64_t lo = 0; lo < n; lo += kChunk) {
      int64_t m = std::min(kChunk, n - lo);
      char* to = at[0] + lo * step;
      words.draw(philox, i + lo, m, per);
      if (direct && m == kChunk && words.skew == 0) {
        bool aligned = reinterpret_cast<uintptr_t>(to) % 64 == 0;
        row(words.word, reinterpret_cast<T*>(to), m, a, b, stream && aligned);
        continue;
      }
      row(words.word, values, words.blocks * per, a, b, false);
      Convert<T>::store(to, p.ops[0].dtype, step, values + words.skew, m);
    }
    i += n;
  });
  if (stream) end_streaming();
}

template <bool Normal>
aj_status* fill_floats(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    Philox philox = generator(call, 3);
    double a = Args(call).real(1), b = Args(call).real(2);
    visit_math<floating>(p.ops[0].dtype, [&]<class T>() {
      if constexpr (std::is_same_v<T, float>)
        fill_rows<T>(p, philox, AJ_SIMD(float_row)(Normal), T(a), T(b), Normal);
      else
        fill_rows<T>(p, philox, AJ_SIMD(double_row)(Normal), T(a), T(b), Normal);
    });
  });
}

aj_status* fill_integers(void*, aj_call* call) {
  return guard(call, [&] {
    Philox philox = generator(call, 3);
    uint64_t low = uint64_t(Args(call).integer(1)), range = uint64_t(Args(call).integer(2)) - low;
    Words words;
    fill_blocks<int64_t>(*call->plan, [&](int64_t* out, int64_t first, int64_t n) {
      const bool wide = range > uint64_t(1) << 32;
      words.draw(philox, first, n, wide ? 2 : 4);
      const uint32_t* w = words.word + words.skew * (wide ? 2 : 1);
      if (range > (1u << 24)) {  // as integer_of, which draws again where a word is refused
        const uint64_t least = wide ? (0 - range) % range : (uint64_t(1) << 32) % range;
        for (int64_t j = 0; j < n; ++j) {
          const auto* pair = w + 2 * j;
          auto product = wide ? (pair[0] | uint64_t(pair[1]) << 32) * (unsigned __int128)(range)
                              : (unsigned __int128)(w[j] * range) << 32;
          bool kept = (wide ? uint64_t(product) : uint64_t(product) >> 32) >= least;
          out[j] = int64_t(low + (kept ? uint64_t(product >> 64)
                                       : integer_of(philox, uint64_t(first + j), range)));
        }
        return;
      }
      for (int64_t j = 0; j < n; ++j) out[j] = int64_t(low + (w[j] * range >> 32));
    });
  });
}

aj_status* fill_steps(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    auto fill = [&]<class T>(T) {
      T start = number<T>(Args(call)[1]), step = number<T>(Args(call)[2]);
      fill_blocks<T>(p, [&](T* out, int64_t first, int64_t n) {
        if constexpr (std::is_same_v<T, int64_t>) {
          uint64_t value = uint64_t(start) + uint64_t(step) * uint64_t(first);
          for (int64_t j = 0; j < n; ++j, value += uint64_t(step)) out[j] = int64_t(value);
        } else if constexpr (std::is_same_v<T, double>) {
          const double base = double(first);  // int32 is what every processor converts in vectors
          for (int32_t j = 0; j < int32_t(n); ++j) out[j] = start + step * (base + double(j));
        } else {
          for (int64_t j = 0; j < n; ++j) out[j] = start + step * cast<T>(first + j);
        }
      });
    };
    switch (p.ops[0].dtype.code) {
      case kDLFloat:
      case kDLBfloat:
        return fill(0.0);
      case kDLComplex:
        return fill(Complex128(0));
      default:
        return fill(int64_t(0));
    }
  });
}

template <class T>
void drop_values(T* values, const uint32_t* words, int64_t n, double drop, T scale) {
  for (int64_t j = 0; j < n; ++j)
    values[j] = uniform_of(words[j]) >= float(drop) ? values[j] * scale : T(0);
}

// Rows that are contiguous on both sides, in one pass.
void drop_direct(const aj_plan& p, const Philox& philox, float drop, float scale) {
  Words words;
  auto row = AJ_SIMD(dropout_of)(p.ops[0].dtype);
  int64_t size = bytes_of(p.ops[0].dtype), i = p.first_index;
  bool stream = worth_streaming(p);
  alignas(64) char from[kChunk * 4 + 256], to[kChunk * 4 + 256];
  for_rows(p, [&](char** at, int64_t n) {
    for (int64_t lo = 0; lo < n; lo += kChunk) {
      int64_t m = std::min(kChunk, n - lo);
      char *out = at[0] + lo * size, *in = at[1] + lo * size;
      words.draw(philox, i + lo, m, 4);
      if (m == kChunk && words.skew == 0) {
        bool aligned = reinterpret_cast<uintptr_t>(out) % 64 == 0;
        row(words.word, in, out, m, drop, scale, stream && aligned);
      } else {
        std::memcpy(from, in, m * size);
        row(words.word + words.skew, from, to, m, drop, scale, false);
        std::memcpy(out, to, m * size);
      }
    }
    i += n;
  });
  if (stream) end_streaming();
}

aj_status* dropout(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double drop = Args(call).real(1);
    Philox philox = generator(call, 2);
    int64_t to = row_stride(p, 0), from = row_stride(p, 1), size = bytes_of(p.ops[0].dtype);
    if (same(p.compute, dtype_of<float>) && same(p.ops[0].dtype, p.ops[1].dtype) && to == size &&
        from == size)
      return drop_direct(p, philox, float(drop), float(drop < 1 ? 1 / (1 - drop) : 0));
    visit<floating_complex>(p.compute, [&]<class T>() {
      T values[kBlock], scale = T(Real<T>(drop < 1 ? 1 / (1 - drop) : 0));
      Words words;
      int64_t i = p.first_index;
      for_rows(p, [&](char** at, int64_t n) {
        for (int64_t lo = 0; lo < n; lo += kBlock) {
          int64_t m = std::min(kBlock, n - lo);
          Convert<T>::load(values, at[1] + lo * from, p.ops[1].dtype, from, m);
          words.draw(philox, i + lo, m, 4);
          drop_values(values, words.word + words.skew, m, drop, scale);
          Convert<T>::store(at[0] + lo * to, p.ops[0].dtype, to, values, m);
        }
        i += n;
      });
    });
  });
}

}  // namespace

AJ_KERNELS(random_kernels) = {
    {"uniform_philox_", {&fill_floats<false>, stored_floating::mask, kInner}},
    {"normal_philox_", {&fill_floats<true>, stored_floating::mask, kInner}},
    {"randint_philox_", {&fill_integers, 0, kInner}},
    {"arange_fill_", {&fill_steps, 0, kInner}},
    {"dropout_philox", {&dropout, floating_complex::mask, kInner}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif

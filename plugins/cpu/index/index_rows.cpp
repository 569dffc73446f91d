// plugins/cpu/index/index_rows.cpp: one row added to another, true elements found and rows
// reversed, in vector code; rows copied.
#include "index_rows.hpp"

#include <array>
#include <cstring>

#include "vector/stream.hpp"

#ifndef ADJOIN_PLUGINS_CPU_INDEX_INDEX_ROWS_ONCE
#define ADJOIN_PLUGINS_CPU_INDEX_INDEX_ROWS_ONCE
namespace adjoin::cpu {

// Of every byte the numbers of its bits that are set, from 0 on.
struct SetBits {
  std::array<uint8_t, 8> of[256] = {};
  constexpr SetBits() {
    for (int byte = 0; byte < 256; ++byte)
      for (int bit = 0, n = 0; bit < 8; ++bit)
        if (byte >> bit & 1) of[byte][size_t(n++)] = uint8_t(bit);
  }
};
static constexpr SetBits kSetBits;

}  // namespace adjoin::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/index/index_rows.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
void add_one(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, T alpha, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  auto by = hn::Set(d, alpha);
  int64_t j = 0;
  for (; j + L <= n; j += L)
    hn::StoreU(hn::Add(hn::LoadU(d, a + j), hn::Mul(by, hn::LoadU(d, b + j))), d, a + j);
  for (; j < n; ++j) a[j] += alpha * b[j];
}

// Vectors from both ends of the line; what is left is done again with its neighbours, or in smaller
// vectors where the line is shorter than one.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void reverse_line(D d, T* HWY_RESTRICT to, const T* HWY_RESTRICT from, int64_t n) {
  constexpr int64_t L = int64_t(hn::MaxLanes(D()));
  if (n >= L) {
    int64_t k = 0;
    for (; k + L <= n; k += L)
      hn::StoreU(hn::Reverse(d, hn::LoadU(d, from + n - L - k)), d, to + k);
    if (k < n) hn::StoreU(hn::Reverse(d, hn::LoadU(d, from)), d, to + n - L);
  } else if constexpr (L > 2) {
    reverse_line(hn::Half<D>(), to, from, n);
  } else {
    for (int64_t k = 0; k < n; ++k) to[k] = from[n - 1 - k];
  }
}
template <class T>
void reverse(T* to, const T* from, int64_t lines, int64_t n) {
  const hn::ScalableTag<T> d;
  for (; lines-- > 0; to += n, from += n) reverse_line(d, to, from, n);
}

}  // namespace

// Eight truths become bits of a byte by one product, which says where those are that are set.
// (Highway 1.0 copies a table of its
// own to the stack for every vector that it compresses.)
int64_t true_numbers_of(const uint8_t* in, int64_t n, int64_t first, int64_t* to) {
  const hn::ScalableTag<int64_t> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  constexpr int64_t L = std::min<int64_t>(HWY_LANES(int64_t), 8);
  int64_t found = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t w;
    std::memcpy(&w, in + i, 8);
    w |= w >> 4, w |= w >> 2, w |= w >> 1;
    const uint64_t all = (w & 0x0101010101010101u) * 0x0102040810204080u >> 56;
    const uint8_t* places = kSetBits.of[all].data();
    for (int64_t v = 0; v < 8; v += L) {
      auto place = hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(d8, places + v)));
      hn::StoreU(hn::Add(hn::Set(d, first + i), place), d, to + found + v);
    }
    found += int64_t(hwy::PopCount(all));
  }
  for (; i < n; ++i) {
    to[found] = first + i;
    found += in[i] != 0;
  }
  return found;
}

int64_t count_true_of(const uint8_t* in, int64_t n) {
  const hn::ScalableTag<uint8_t> d;
  constexpr int64_t L = HWY_LANES(uint8_t);
  int64_t count = 0, i = 0;
  for (; i + L <= n; i += L)
    count += int64_t(hn::CountTrue(d, hn::Ne(hn::LoadU(d, in + i), hn::Zero(d))));
  for (; i < n; ++i) count += in[i] != 0;
  return count;
}

void reverse_u32(uint32_t* to, const uint32_t* from, int64_t lines, int64_t n) {
  reverse(to, from, lines, n);
}
void reverse_u64(uint64_t* to, const uint64_t* from, int64_t lines, int64_t n) {
  reverse(to, from, lines, n);
}

void add_row_f32(float* a, const float* b, float alpha, int64_t n) { add_one(a, b, alpha, n); }
void add_row_f64(double* a, const double* b, double alpha, int64_t n) { add_one(a, b, alpha, n); }

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

void add_row(float* a, const float* b, float alpha, int64_t n) {
  AJ_SIMD(add_row_f32)(a, b, alpha, n);
}
void add_row(double* a, const double* b, double alpha, int64_t n) {
  AJ_SIMD(add_row_f64)(a, b, alpha, n);
}

void copy_rows(char* to, const char* from, const int64_t* index, int64_t outer, int64_t size,
               int64_t n, int64_t row) {
  kit::parallel_for(outer * n, kit::grain_of(row / 4), [&](int64_t lo, int64_t hi) {
    constexpr int64_t ahead = 8;
    for (int64_t i = lo; i < hi;) {
      int64_t k = i % n, end = std::min(n, k + hi - i);
      const char* first = from + i / n * size * row;
      for (; k < end; ++k, ++i) {
        if (k + ahead < end)
          for (int64_t b = 0; b < std::min<int64_t>(row, 512); b += 64)
            __builtin_prefetch(first + index[k + ahead] * row + b);
        copy_neighbours(to + i * row, first + index[k] * row, row);
      }
    }
  });
}

void reverse_lines(uint32_t* to, const uint32_t* from, int64_t lines, int64_t n) {
  AJ_SIMD(reverse_u32)(to, from, lines, n);
}
void reverse_lines(uint64_t* to, const uint64_t* from, int64_t lines, int64_t n) {
  AJ_SIMD(reverse_u64)(to, from, lines, n);
}

int64_t count_true(const bool* in, int64_t n) {
  return AJ_SIMD(count_true_of)(reinterpret_cast<const uint8_t*>(in), n);
}
int64_t true_numbers(const bool* in, int64_t n, int64_t first, int64_t* to) {
  return AJ_SIMD(true_numbers_of)(reinterpret_cast<const uint8_t*>(in), n, first, to);
}

}  // namespace adjoin::cpu
#endif

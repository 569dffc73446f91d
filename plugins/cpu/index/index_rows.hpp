// plugins/cpu/index/index_rows.hpp: rows added to rows that indices name, in the order of the
// indices whatever the number of threads; rows reversed.
#ifndef ADJOIN_PLUGINS_CPU_INDEX_INDEX_ROWS_HPP
#define ADJOIN_PLUGINS_CPU_INDEX_INDEX_ROWS_HPP
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

namespace adjoin::cpu {

// alpha * b. A complex 1 leaves both parts as they are, of which one may be infinite.
template <class T>
T scaled(T alpha, T b) {
  if constexpr (kit::is_complex<T>)
    if (alpha.re == 1 && alpha.im == 0) return b;
  return kit::scalar::Mul()(alpha, b);
}

// a[j] += alpha * b[j]
void add_row(float* a, const float* b, float alpha, int64_t n);
void add_row(double* a, const double* b, double alpha, int64_t n);
template <class T>
void add_row(T* a, const T* b, T alpha, int64_t n) {
  using namespace kit::scalar;
  for (int64_t j = 0; j < n; ++j) a[j] = Add()(a[j], scaled(alpha, b[j]));
}

// The numbers from `first` on of those of n that are true; room for 8 more is written.
int64_t count_true(const bool* in, int64_t n);
int64_t true_numbers(const bool* in, int64_t n, int64_t first, int64_t* to);

// Dense rows of `row` bytes in their order: [outer, n] are those of [outer, size] at index[n].
void copy_rows(char* to, const char* from, const int64_t* index, int64_t outer, int64_t size,
               int64_t n, int64_t row);

// Elements of 4 or 8 bytes in reversed order: `lines` of n, one after another.
void reverse_lines(uint32_t* to, const uint32_t* from, int64_t lines, int64_t n);
void reverse_lines(uint64_t* to, const uint64_t* from, int64_t lines, int64_t n);
template <class T>
void reverse_lines(T* to, const T* from, int64_t lines, int64_t n) {
  for (; lines-- > 0; to += n, from += n) std::reverse_copy(from, from + n, to);
}

// to[index[k]] += alpha * from[k], for places that lie in the cache. Places are read before any is
// written: a processor may let a read wait until it knows where all writes before it go.
template <class T>
void add_singles(T* to, const T* from, const int64_t* index, int64_t n, T alpha) {
  using namespace kit::scalar;
  constexpr int64_t several = 8;
  int64_t k = 0;
  for (; k + several <= n; k += several) {
    T* at[several];
    T add[several];
    for (int64_t j = 0; j < several; ++j) {
      at[j] = to + index[k + j];
      add[j] = scaled(alpha, from[k + j]);
    }
#pragma GCC unroll 8
    for (int64_t j = 0; j < several; ++j) *at[j] = Add()(*at[j], add[j]);
  }
  for (; k < n; ++k) to[index[k]] = Add()(to[index[k]], scaled(alpha, from[k]));
}

inline void prefetch_row(const void* row, int64_t bytes) {
  const char* at = static_cast<const char*>(row);
  for (int64_t i = 0; i < std::min<int64_t>(bytes, 512); i += 64) __builtin_prefetch(at + i, 1);
}

// [outer, size, inner] += alpha * [outer, n, inner] at index[n] of size, but for the index `skip`.
// A thread owns rows where there are many of them, else columns. clear: the rows begin as zeros.
template <class T>
void add_rows(T* to, int64_t outer, int64_t size, int64_t inner, const T* from,
              const int64_t* index, int64_t n, T alpha, int64_t skip, bool clear) {
  int64_t threads = kit::core().num_threads(), work = n * inner + (clear ? size * inner : 0);
  int64_t pieces = std::min(threads, 1 + work / 32768);
  // Of single elements, asking whether each is one's own costs more than adding it.
  if (inner == 1) pieces = 1;
  bool by_rows = size >= 4 * pieces;
  if (!by_rows) pieces = std::min(pieces, (inner + 63) / 64);
  auto part = [&](int64_t o, int64_t p) {
    auto share = [&](int64_t whole, int64_t q) { return whole * q / pieces; };
    int64_t lo = by_rows ? share(size, p) : 0, hi = by_rows ? share(size, p + 1) : size;
    int64_t left = by_rows ? 0 : share(inner, p),
            width = (by_rows ? inner : share(inner, p + 1)) - left;
    T* base = to + o * size * inner + left;
    const T* source = from + o * n * inner + left;
    constexpr int64_t ahead = 8;
    if (clear)
      for (int64_t r = lo; r < hi; ++r) std::fill_n(base + r * inner, width, T(0));
    if (width == 1 && inner == 1) {
      using namespace kit::scalar;
      if (hi - lo == size && skip < 0 && size <= 1 << 15) {  // in the cache, nothing to ask
        return add_singles(base, source, index, n, alpha);
      }
      for (int64_t k = 0; k < n; ++k) {
        if (k + ahead < n) __builtin_prefetch(base + index[k + ahead], 1);
        int64_t r = index[k];
        if (r >= lo && r < hi && r != skip) base[r] = Add()(base[r], scaled(alpha, source[k]));
      }
      return;
    }
    for (int64_t k = 0; k < n; ++k) {
      if (k + ahead < n) prefetch_row(base + index[k + ahead] * inner, width * int64_t(sizeof(T)));
      int64_t r = index[k];
      if (r >= lo && r < hi && r != skip)
        add_row(base + r * inner, source + k * inner, alpha, width);
    }
  };
  kit::parallel_for(outer * pieces, kit::grain_of(work / std::max<int64_t>(pieces, 1)),
                    [&](int64_t lo, int64_t hi) {
                      for (; lo < hi; ++lo) part(lo / pieces, lo % pieces);
                    });
}

}  // namespace adjoin::cpu
#endif

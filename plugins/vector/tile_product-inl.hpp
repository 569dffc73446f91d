// plugins/vector/tile_product-inl.hpp: products of blocks that lie in the cache: C (+)= A B with
// the rows of B and C contiguous, A at any strides. Include it, after "simd.hpp", from vector code.
#if defined(ADJOIN_PLUGINS_VECTOR_TILE_PRODUCT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_TILE_PRODUCT_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_TILE_PRODUCT_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_TILE_PRODUCT_INL_HPP
#endif

HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE::tiles {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRows = 6;                                  // of a tile
constexpr int64_t kVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;  // in a row of it: all registers
template <class T>
constexpr int64_t kColumns = kVectors* HWY_LANES(T);

template <class T>
struct Left {  // A(i, p) lies at data[i * row + p * step]
  const T* data;
  int64_t row, step;
};

template <int64_t R, int64_t V, class T>
HWY_INLINE void tile(int64_t k, Left<T> a, const T* HWY_RESTRICT b, int64_t ldb, T* HWY_RESTRICT c,
                     int64_t ldc, bool add) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  hn::Vec<decltype(d)> s[R][V];
#pragma GCC unroll 8
  for (int64_t i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < V; ++v) s[i][v] = add ? hn::LoadU(d, c + i * ldc + v * L) : hn::Zero(d);
  const T* at = a.data;
  for (int64_t p = 0; p < k; ++p, at += a.step, b += ldb) {
    hn::Vec<decltype(d)> y[V];
#pragma GCC unroll 4
    for (int64_t v = 0; v < V; ++v) y[v] = hn::LoadU(d, b + v * L);
#pragma GCC unroll 8
    for (int64_t i = 0; i < R; ++i) {
      auto x = hn::Set(d, at[i * a.row]);
#pragma GCC unroll 4
      for (int64_t v = 0; v < V; ++v) s[i][v] = hn::MulAdd(x, y[v], s[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < V; ++v) hn::StoreU(s[i][v], d, c + i * ldc + v * L);
}

// One panel of `vectors` <= kVectors vectors, m rows.
template <class T>
HWY_NOINLINE void panel(int64_t m, int64_t vectors, int64_t k, Left<T> a, const T* b, int64_t ldb,
                        T* c, int64_t ldc, bool add) {
  constexpr int64_t L = HWY_LANES(T);
  for (; m >= kRows; m -= kRows, a.data += kRows * a.row, c += kRows * ldc) {
    if (vectors == kVectors)
      tile<kRows, kVectors>(k, a, b, ldb, c, ldc, add);
    else
      for (int64_t v = 0; v < vectors; ++v)
        tile<kRows, 1>(k, a, b + v * L, ldb, c + v * L, ldc, add);
  }
  for (; m > 0; --m, a.data += a.row, c += ldc) {
    if (vectors == kVectors)
      tile<1, kVectors>(k, a, b, ldb, c, ldc, add);
    else
      for (int64_t v = 0; v < vectors; ++v) tile<1, 1>(k, a, b + v * L, ldb, c + v * L, ldc, add);
  }
}

// n is whole vectors.
template <class T>
HWY_INLINE void product(int64_t m, int64_t n, int64_t k, Left<T> a, const T* b, int64_t ldb, T* c,
                        int64_t ldc, bool add) {
  constexpr int64_t L = HWY_LANES(T);
  for (int64_t j = 0; j < n; j += kColumns<T>)
    panel(m, std::min(kVectors, (n - j) / L), k, a, b + j, ldb, c + j, ldc, add);
}

// B transposed into panels of kColumns: element (p, j) at [j / kColumns][p][j % kColumns]; what is
// missing in the last panel is zero.
template <class T>
HWY_INLINE void pack_transposed(const T* HWY_RESTRICT x, int64_t row, int64_t n, int64_t k,
                                T* HWY_RESTRICT to) {
  constexpr int64_t C = kColumns<T>;
  for (int64_t j = 0; j < n; j += C, to += k * C, x += C * row) {
    int64_t width = std::min(C, n - j);
    for (int64_t i = 0; i < width; ++i)
      for (int64_t p = 0; p < k; ++p) to[p * C + i] = x[i * row + p];
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = width; i < C; ++i) to[p * C + i] = T(0);
  }
}
// C = A B for the first n columns of such panels; C has room for whole vectors.
template <class T>
HWY_INLINE void product_packed(int64_t m, int64_t n, int64_t k, Left<T> a, const T* packed, T* c,
                               int64_t ldc) {
  constexpr int64_t C = kColumns<T>, L = HWY_LANES(T);
  for (int64_t j = 0; j < n; j += C)
    panel(m, std::min(kVectors, (n - j + L - 1) / L), k, a, packed + j * k, C, c + j, ldc, false);
}

template <class T>
constexpr int64_t whole_vectors(int64_t n) {
  constexpr int64_t L = HWY_LANES(T);
  return (n + L - 1) / L * L;
}

// Rows of n elements copied side by side, filled up with zeros to `width`, times `by`.
template <class T>
HWY_INLINE void copy_rows(const T* HWY_RESTRICT x, int64_t row, int64_t rows, int64_t n, T by,
                          T* HWY_RESTRICT to, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, x += row, to += width) {
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] * by;
    for (int64_t i = n; i < width; ++i) to[i] = T(0);
  }
}

}  // namespace adjoin::cpu::HWY_NAMESPACE::tiles
HWY_AFTER_NAMESPACE();
#endif

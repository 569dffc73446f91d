// plugins/cpu/product/few_rows_body.hpp: products of a few rows with a large matrix, which is read
// once and where it lies; included by tile_x86.cpp like tile_body.hpp. No lambdas: they would not
// be compiled for the set.

// What tiles and few rows of one step a k have in common.
template <class S>
struct Plain {
  template <class In, class V>
  static void columns(const In* row, const In*, V (&y)[2]) {
    y[0] = S::stored(row), y[1] = S::stored(row + S::kLanes);
  }
  template <class T>
  static void straighten(T*) {}
};

template <class S, int M, int Steps>
void along_pass(int64_t q, int64_t k, int64_t n, const typename S::Packed* x, int64_t xs,
                const typename S::Stored* b, int64_t ld, typename S::Sum* out, int64_t out_ld) {
  constexpr int P = S::kPair, G = S::kGroup, V = G / S::kLanes;
  typename S::Operand factor[M][Steps];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int u = 0; u < Steps; ++u) factor[i][u] = S::spread(x + i * xs + q + u * P);
  bool alone = q + P * Steps > k;  // the last k has no partner
  int64_t groups = (n + G - 1) / G;
  for (int64_t g = 0; g < groups; ++g) {
    const typename S::Stored* from = b + q * ld + (g + 1 < groups ? g * G : n - G);
    typename S::Operand y[Steps][V];
#pragma GCC unroll 4
    for (int u = 0; u < Steps; ++u, from += P * ld)
      S::columns(from, alone && u == Steps - 1 ? nullptr : from + ld, y[u]);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        typename S::Sum* to = out + i * out_ld + g * G + v * S::kLanes;
        typename S::Vector sum = S::load(to);
#pragma GCC unroll 4
        for (int u = 0; u < Steps; ++u) sum = S::fma(factor[i][u], y[u][v], sum);
        S::store(to, sum);
      }
  }
}

// out[M][columns] = x[M][k] times b, whose element (q, j) lies at q * ld + j; there is a group of
// columns at least. The last group ends with the last column, over columns that the group before it
// has too, so out has room for whole groups. Every sum runs through k in order.
template <class S, int M>
void few_along(int64_t k, int64_t n, const void* x_, int64_t xs, const void* b_, int64_t ld,
               void* out_, int64_t out_ld) {
  using T = typename S::Sum;
  const typename S::Packed* x = static_cast<const typename S::Packed*>(x_);
  const typename S::Stored* b = static_cast<const typename S::Stored*>(b_);
  T* out = static_cast<T*>(out_);
  constexpr int P = S::kPair, U = M <= 2 ? 4 : 2, G = S::kGroup;
  int64_t groups = (n + G - 1) / G, q = 0;
  for (int i = 0; i < M; ++i) std::fill_n(out + i * out_ld, groups * G, T(0));
  for (; q + U * P <= k; q += U * P) along_pass<S, M, U>(q, k, n, x, xs, b, ld, out, out_ld);
  for (; q < k; q += P) along_pass<S, M, 1>(q, k, n, x, xs, b, ld, out, out_ld);
  for (int i = 0; i < M; ++i) {
    T* row = out + i * out_ld;
    for (int64_t g = 0; g < groups; ++g) S::straighten(row + g * G);
    if (n % G) std::memmove(row + n - G, row + (groups - 1) * G, G * sizeof(T));
  }
}

template <class S, int M, int Columns>
inline void across_step(const typename S::Stored* b, int64_t ld, const typename S::Packed* x,
                        int64_t xs, typename S::Vector (&sum)[Columns][M]) {
  typename S::Operand y[Columns];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c) y[c] = S::stored(b + c * ld);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    typename S::Operand f = S::operand(x + i * xs);
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) sum[c][i] = S::fma(f, y[c], sum[c][i]);
  }
}

template <class S, int M, int Columns>
void across_pass(int64_t k, const typename S::Packed* x, int64_t xs, const typename S::Stored* b,
                 int64_t ld, typename S::Sum* out, int64_t out_ld) {
  constexpr int W = S::kLanes * S::kPair;
  typename S::Vector sum[Columns][M];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c)
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sum[c][i] = S::zero();
  int64_t q = 0;
  for (; q + W <= k; q += W) across_step<S, M, Columns>(b + q, ld, x + q, xs, sum);
  if (q < k) {
    typename S::Stored rest[Columns * W] = {};
    for (int c = 0; c < Columns; ++c)
      std::memcpy(rest + c * W, b + c * ld + q, size_t(k - q) * sizeof *rest);
    across_step<S, M, Columns>(rest, W, x + q, xs, sum);
  }
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c)
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) out[i * out_ld + c] = S::total(sum[c][i]);
}

// The same of b whose element (q, j) lies at j * ld + q: rows of both are multiplied. x is filled
// up with zeros to whole vectors.
template <class S, int M>
void few_across(int64_t k, int64_t n, const void* x_, int64_t xs, const void* b_, int64_t ld,
                void* out_, int64_t out_ld) {
  const typename S::Packed* x = static_cast<const typename S::Packed*>(x_);
  const typename S::Stored* b = static_cast<const typename S::Stored*>(b_);
  typename S::Sum* out = static_cast<typename S::Sum*>(out_);
  // Columns at once; more rows than four go in two parts, over what is near then.
  constexpr int J = M == 1 ? 8 : 4, First = M < 4 ? M : 4, Second = M - First;
  int64_t j = 0;
  for (; j + J <= n; j += J) {
    across_pass<S, First, J>(k, x, xs, b + j * ld, ld, out + j, out_ld);
    if constexpr (Second > 0)
      across_pass<S, Second, J>(k, x + First * xs, xs, b + j * ld, ld, out + First * out_ld + j,
                                out_ld);
  }
  for (; j < n; ++j) {
    across_pass<S, First, 1>(k, x, xs, b + j * ld, ld, out + j, out_ld);
    if constexpr (Second > 0)
      across_pass<S, Second, 1>(k, x + First * xs, xs, b + j * ld, ld, out + First * out_ld + j,
                                out_ld);
  }
}

// A few rows as the two above read them: x(i, q) lies at i * rs + q * qs.
template <class S>
void pack_few(const void* x_, int64_t rs, int64_t qs, int64_t rows, int64_t k, void* out_,
              int64_t stride) {
  using E = typename S::Packed;
  const typename S::Stored* x = static_cast<const typename S::Stored*>(x_);
  E* out = static_cast<E*>(out_);
  for (int64_t i = 0; i < rows; ++i, out += stride) {
    for (int64_t q = 0; q < k; ++q) out[q] = S::convert(x[i * rs + q * qs]);
    std::fill_n(out + k, stride - k, E(0));
  }
}

template <class S, class Rows>
struct FewOf;
template <class S, int... M>
struct FewOf<S, std::integer_sequence<int, M...>> {
  static constexpr FewFn along[] = {&few_along<S, M + 1>...}, across[] = {&few_across<S, M + 1>...};
};

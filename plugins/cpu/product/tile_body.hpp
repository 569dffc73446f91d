// plugins/cpu/product/tile_body.hpp: the innermost loops of our products, written once;
// tile_x86.cpp includes this file once for each instruction set, within a namespace and a target of
// its own, after the vector types of that set.
//
// The scheme is Goto and van de Geijn's (Anatomy of high-performance matrix multiplication, 2008):
// a tile of C stays in registers while k passes by; one operand is broadcast, the other one packed
// so that its vectors lie one after another. A step is one k, or two where the instruction
// multiplies pairs.

// c[M][columns] = or += the product over `steps`. Element (i, step) of a lies at i * rs + step *
// ps, vectors of b at step * bs; `start` (optional) is what the sums begin with. kPanel: the rows
// of a are neighbours.
template <class S, int M, int NV, bool kPanel>
void tile(int64_t steps, const void* a_, int64_t rs, int64_t ps, const void* b_, int64_t bs,
          void* c_, int64_t ldc, Into into, const void* start_) {
  using E = typename S::Packed;
  using T = typename S::Sum;
  const E* a = static_cast<const E*>(a_);
  const E* b = static_cast<const E*>(b_);
  T* c = static_cast<T*>(c_);
  const T* start = static_cast<const T*>(start_);
  if (NV == 4 || steps >= 48) {  // C is written at the end: its lines may come meanwhile
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j)
        __builtin_prefetch(into == Into::stored
                               ? static_cast<const char*>(c_) +
                                     (i * ldc + j * S::kLanes) * int64_t(sizeof(typename S::Stored))
                               : reinterpret_cast<const char*>(c + i * ldc + j * S::kLanes),
                           1);
  }
  typename S::Vector sum[M][NV];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) sum[i][j] = start ? S::load(start + j * S::kLanes) : S::zero();
  for (int64_t p = 0; p < steps; ++p, a += ps, b += bs) {
    typename S::Operand y[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) y[j] = S::operand(b + j * S::kLanes * S::kPair);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      typename S::Operand x = S::spread(a + i * (kPanel ? int64_t(S::kPair) : rs));
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) sum[i][j] = S::fma(x, y[j], sum[i][j]);
    }
  }
  if constexpr (!std::is_same_v<T, typename S::Stored>) {
    if (into == Into::stored) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j)
          S::store(static_cast<typename S::Stored*>(c_) + i * ldc + j * S::kLanes, sum[i][j]);
      return;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) {
      T* to = c + i * ldc + j * S::kLanes;
      S::store(to, into == Into::add ? S::plus(sum[i][j], S::load(to)) : sum[i][j]);
    }
}

constexpr int64_t kAhead = 512;  // bytes

// Element (q, i) of x lies at [q * ld + i]: out[step * width + i], `pair` neighbours in k together,
// zeros beyond count and k.
template <class S>
void pack_along(const void* x_, int64_t ld, int64_t count, int64_t width, int64_t k, void* out_) {
  using In = typename S::Stored;
  using E = typename S::Packed;
  const In* x = static_cast<const In*>(x_);
  E* out = static_cast<E*>(out_);
  constexpr int P = S::kPair;
  for (int64_t q = 0; q < k; q += P, out += width * P) {
    const In* row = x + q * ld;
    const In* next = q + 1 < k ? row + ld : nullptr;
    for (int64_t j = 0; j < count; j += 64 / int64_t(sizeof(In)))
      __builtin_prefetch(row + kAhead / sizeof(In) + j);
    int64_t i = 0;
    for (; i + S::kLanes <= count; i += S::kLanes)
      S::join(row + i, next ? next + i : nullptr, out + i * P);
    for (; i < count; ++i) {
      out[i * P] = S::convert(row[i]);
      if (P == 2) out[i * P + P - 1] = next ? S::convert(next[i]) : E(0);
    }
    for (; i < width; ++i) out[i * P] = out[i * P + P - 1] = E(0);
  }
}

// Element (q, i) of x lies at [i * ld + q]: the same result. Squares are turned in registers.
template <class S>
void pack_across(const void* x_, int64_t ld, int64_t count, int64_t width, int64_t k, void* out_) {
  using In = typename S::Stored;
  using E = typename S::Packed;
  const In* x = static_cast<const In*>(x_);
  E* out = static_cast<E*>(out_);
  constexpr int P = S::kPair, Q = S::kSquare;
  int64_t steps = k / P, last = (k + P - 1) / P, i = 0;
  for (; i + Q <= count; i += Q) {
    int64_t s = 0;
    for (; s + Q <= steps; s += Q)
      S::turn(x + i * ld + s * P, ld, out + s * width * P + i * P, width * P);
    for (; s < last; ++s)
      for (int64_t j = i; j < i + Q; ++j)
        for (int r = 0; r < P; ++r)
          out[(s * width + j) * P + r] = s * P + r < k ? S::convert(x[j * ld + s * P + r]) : E(0);
  }
  for (int64_t s = 0; s < last; ++s)
    for (int64_t j = i; j < width; ++j)
      for (int r = 0; r < P; ++r)
        out[(s * width + j) * P + r] =
            j < count && s * P + r < k ? S::convert(x[j * ld + s * P + r]) : E(0);
}

// Rows one after another, `stride` apart, filled up with zeros to whole steps.
template <class S>
void pack_rows(const void* x_, int64_t ld, int64_t count, int64_t k, void* out_, int64_t stride) {
  using In = typename S::Stored;
  using E = typename S::Packed;
  const In* x = static_cast<const In*>(x_);
  E* out = static_cast<E*>(out_);
  for (int64_t i = 0; i < count; ++i, x += ld, out += stride) {
    if constexpr (std::is_same_v<In, E>) {
      // The next row is another page: nobody else would fetch it in time.
      if (i + 1 < count)
        for (int64_t q = 0; q < k; q += 64 / int64_t(sizeof(E))) __builtin_prefetch(x + ld + q);
      std::memcpy(out, x, size_t(k) * sizeof(E));
    } else {
      for (int64_t q = 0; q < k; ++q) out[q] = S::convert(x[q]);
    }
    if (S::kPair == 2 && k % 2) out[k] = E(0);
  }
}

// C lies turned and nothing is scaled or added to but a bias of rows: squares are turned in
// registers, through a copy where rows are missing.
template <class S>
void finish_turned(const Finish& f) {
  constexpr int Q = S::kSquare;
  using T = typename S::Sum;
  const T* bias = static_cast<const T*>(f.bias);
  T in[Q * Q] = {}, out[Q * Q];
  for (int64_t i = 0; i < f.rows; i += Q) {
    const int64_t rows = std::min<int64_t>(Q, f.rows - i);
    const T* from = static_cast<const T*>(f.from) + i * f.ld;
    T* to = static_cast<T*>(f.to) + i;
    int64_t j = 0;
    for (; j + Q <= f.columns; j += Q) {
      if (rows == Q) {
        S::turn(from + j, f.ld, to + j * f.cs, f.cs);
        continue;
      }
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(in + r * Q, from + r * f.ld + j, sizeof in / Q);
      S::turn(in, Q, out, Q);
      for (int64_t c = 0; c < Q; ++c)
        for (int64_t r = 0; r < rows; ++r) to[(j + c) * f.cs + r] = out[c * Q + r];
    }
    for (; j < f.columns; ++j)
      for (int64_t r = 0; r < rows; ++r) to[j * f.cs + r] = from[r * f.ld + j];
    if (bias)
      for (j = 0; j < f.columns; ++j)
        for (int64_t r = 0; r < rows; ++r) to[j * f.cs + r] += bias[i + r];
  }
}

// to(i, j) = alpha * from + beta * to + bias, with rows of `from` ld apart; to(i, j) lies at i * rs
// + j * cs.
template <class S>
void finish(const Finish& f) {
  using In = typename S::Stored;
  using T = typename S::Sum;
  const T* from = static_cast<const T*>(f.from);
  const In* bias = static_cast<const In*>(f.bias);
  T alpha = T(f.alpha), beta = T(f.beta);
  bool by_column = bias && !f.bias_by_row,
       plain = f.cs == 1 && f.beta == 0 && f.alpha == 1 && !bias;
  if constexpr (S::kPair == 1 && std::is_same_v<In, T> && std::is_same_v<T, typename S::Packed>)
    if (f.rs == 1 && f.cs != 1 && f.beta == 0 && f.alpha == 1 && !by_column)
      return finish_turned<S>(f);
  for (int64_t i = 0; i < f.rows; ++i, from += f.ld) {
    In* row = static_cast<In*>(f.to) + i * f.rs;
    T more = bias && f.bias_by_row ? T(S::widen(bias[i])) : T(0);
    int64_t j = 0;
    if (plain) {
      for (; j + S::kLanes <= f.columns; j += S::kLanes) S::store(row + j, S::load(from + j));
      for (; j < f.columns; ++j) row[j] = S::narrow(from[j]);
    }
    if (by_column && f.cs == 1 && f.beta == 0 && f.alpha == 1)
      for (; j < f.columns; ++j) row[j] = S::narrow(from[j] + T(0) + T(S::widen(bias[j])));
    if (!by_column && f.cs == 1 && f.beta != 0)
      for (; j < f.columns; ++j)
        row[j] = S::narrow(alpha * from[j] + beta * T(S::widen(row[j])) + more);
    for (; j < f.columns; ++j) {
      In& one = row[j * f.cs];
      T old = f.beta == 0 ? T(0) : beta * T(S::widen(one));
      one = S::narrow(alpha * from[j] + old + (by_column ? T(S::widen(bias[j])) : more));
    }
  }
}

template <class S>
void widen(const void* x, int64_t n, void* out) {
  for (int64_t i = 0; i < n; ++i)
    static_cast<typename S::Sum*>(out)[i] = S::widen(static_cast<const typename S::Stored*>(x)[i]);
}

template <class S, int NV, bool kPanel, class Rows>
struct TilesOf;
template <class S, int NV, bool kPanel, int... M>
struct TilesOf<S, NV, kPanel, std::integer_sequence<int, M...>> {
  static constexpr TileFn by_rows[] = {&tile<S, M + 1, NV, kPanel>...};
};

// Float: whose tiles serve, as halves are packed as float32; they write sums, which finish()
// rounds.
template <class S, int R, int R4, class Float = S>
constexpr Tiles table_of() {
  using Rows = std::make_integer_sequence<int, R>;
  using Few = std::make_integer_sequence<int, R4>;
  return {S::kLanes,
          {R, R, R4},
          S::kPair,
          int(sizeof(typename S::Stored)),
          int(sizeof(typename S::Packed)),
          int(sizeof(typename S::Sum)),
          std::is_same_v<S, Float>,
          {TilesOf<Float, 1, false, Rows>::by_rows, TilesOf<Float, 2, false, Rows>::by_rows,
           TilesOf<Float, 4, false, Few>::by_rows},
          {TilesOf<Float, 1, true, Rows>::by_rows, TilesOf<Float, 2, true, Rows>::by_rows,
           TilesOf<Float, 4, true, Few>::by_rows},
          &pack_along<S>,
          &pack_across<S>,
          &pack_rows<S>,
          &finish<S>,
          FewOf<S, std::make_integer_sequence<int, kFew>>::along,
          FewOf<S, std::make_integer_sequence<int, kFew>>::across,
          &pack_few<S>,
          S::kGroup,
          &widen<S>};
}

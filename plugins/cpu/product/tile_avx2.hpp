// plugins/cpu/product/tile_avx2.hpp: vector types of 256 bits for tile_body.hpp; included by
// tile_x86.cpp.

// How elements come in and go out; products are computed in float32.
struct FloatIn {
  using Stored = float;
  static __m256 load8(const float* p) { return _mm256_loadu_ps(p); }
  static float widen(float x) { return x; }
  static float narrow(float x) { return x; }
};
struct BrainIn {
  using Stored = uint16_t;
  static __m256 load8(const uint16_t* p) {
    __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void store8(uint16_t* p, __m256 x) {
    uint16_t out[8];
    float in[8];
    _mm256_storeu_ps(in, x);
    for (int i = 0; i < 8; ++i) out[i] = narrow(in[i]);
    std::memcpy(p, out, sizeof out);
  }
  static float widen(uint16_t x) {
    uint32_t bits = uint32_t(x) << 16;
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  static uint16_t narrow(float x) {  // to the nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : nearest);
  }
};
struct HalfIn {
  using Stored = uint16_t;
  static __m256 load8(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store8(uint16_t* p, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, 0));
  }
  static float widen(uint16_t x) { return _cvtsh_ss(x); }
  static uint16_t narrow(float x) { return _cvtss_sh(x, 0); }
};

// Turns 8 x 8 words that lie in rows.
inline void turn8(__m256 (&r)[8], float* out, int64_t step) {
  __m256 s[8], t[8];
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    t[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    t[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    t[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    t[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + i * step, _mm256_permute2f128_ps(t[i], t[i + 4], 0x20));
    _mm256_storeu_ps(out + (i + 4) * step, _mm256_permute2f128_ps(t[i], t[i + 4], 0x31));
  }
}

template <class In>
struct SingleIn : In {
  using Packed = float;
  using Sum = float;
  static constexpr int kPair = 1, kSquare = 8;
  static float convert(typename In::Stored x) { return In::widen(x); }
  static void turn(const typename In::Stored* x, int64_t ld, float* out, int64_t step) {
    __m256 r[8];
    for (int i = 0; i < 8; ++i) r[i] = In::load8(x + i * ld);
    turn8(r, out, step);
  }
};

struct DoubleIn {
  using Stored = double;
  using Packed = double;
  using Sum = double;
  static constexpr int kPair = 1, kSquare = 4;
  static double convert(double x) { return x; }
  static double widen(double x) { return x; }
  static double narrow(double x) { return x; }
  static void turn(const double* x, int64_t ld, double* out, int64_t step) {
    __m256d a = _mm256_loadu_pd(x), b = _mm256_loadu_pd(x + ld), c = _mm256_loadu_pd(x + 2 * ld),
            d = _mm256_loadu_pd(x + 3 * ld);
    __m256d e = _mm256_unpacklo_pd(a, b), f = _mm256_unpackhi_pd(a, b),
            g = _mm256_unpacklo_pd(c, d), h = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(out, _mm256_permute2f128_pd(e, g, 0x20));
    _mm256_storeu_pd(out + step, _mm256_permute2f128_pd(f, h, 0x20));
    _mm256_storeu_pd(out + 2 * step, _mm256_permute2f128_pd(e, g, 0x31));
    _mm256_storeu_pd(out + 3 * step, _mm256_permute2f128_pd(f, h, 0x31));
  }
};

inline float total8(__m256 v) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline double total4(__m256d v) {
  __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

template <class In>
struct Single : SingleIn<In>, Plain<Single<In>> {
  using Vector = __m256;
  using Operand = __m256;
  static constexpr int kLanes = 8, kGroup = 16;
  static Operand stored(const typename In::Stored* p) { return In::load8(p); }
  static float total(Vector v) { return total8(v); }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store(uint16_t* p, Vector v) { In::store8(p, v); }
  static Operand operand(const float* p) { return _mm256_loadu_ps(p); }
  static Operand spread(const float* p) { return _mm256_broadcast_ss(p); }
  static Vector fma(Operand x, Operand y, Vector s) { return _mm256_fmadd_ps(x, y, s); }
  static Vector plus(Vector x, Vector y) { return _mm256_add_ps(x, y); }
  static void join(const typename In::Stored* x, const typename In::Stored*, float* out) {
    _mm256_storeu_ps(out, In::load8(x));
  }
};

struct Double : DoubleIn, Plain<Double> {
  using Vector = __m256d;
  using Operand = __m256d;
  static constexpr int kLanes = 4, kGroup = 8;
  static Operand stored(const double* p) { return load(p); }
  static double total(Vector v) { return total4(v); }
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static Operand operand(const double* p) { return _mm256_loadu_pd(p); }
  static Operand spread(const double* p) { return _mm256_broadcast_sd(p); }
  static Vector fma(Operand x, Operand y, Vector s) { return _mm256_fmadd_pd(x, y, s); }
  static Vector plus(Vector x, Vector y) { return _mm256_add_pd(x, y); }
  static void join(const double* x, const double*, double* out) { store(out, load(x)); }
};

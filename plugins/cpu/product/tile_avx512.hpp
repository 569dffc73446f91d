// plugins/cpu/product/tile_avx512.hpp: vector types of 512 bits for tile_body.hpp; included by
// tile_x86.cpp.

template <class In>
struct Single : avx2::SingleIn<In>, Plain<Single<In>> {
  using Vector = __m512;
  using Operand = __m512;
  static constexpr int kLanes = 16, kGroup = 32;
  static Operand stored(const float* p) { return _mm512_loadu_ps(p); }
  static Operand stored(const uint16_t* p) {
    alignas(64) float both[16];
    _mm256_store_ps(both, In::load8(p));
    _mm256_store_ps(both + 8, In::load8(p + 8));
    return _mm512_load_ps(both);
  }
  static float total(Vector v) {
    alignas(64) float both[16];
    _mm512_store_ps(both, v);
    return avx2::total8(_mm256_add_ps(_mm256_load_ps(both), _mm256_load_ps(both + 8)));
  }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static void store(uint16_t* p, Vector v) {
    alignas(64) float both[16];
    _mm512_store_ps(both, v);
    In::store8(p, _mm256_load_ps(both));
    In::store8(p + 8, _mm256_load_ps(both + 8));
  }
  static Operand operand(const float* p) { return _mm512_loadu_ps(p); }
  static Operand spread(const float* p) { return _mm512_set1_ps(*p); }
  static Vector fma(Operand x, Operand y, Vector s) { return _mm512_fmadd_ps(x, y, s); }
  static Vector plus(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  static void join(const typename In::Stored* x, const typename In::Stored*, float* out) {
    _mm256_storeu_ps(out, In::load8(x));
    _mm256_storeu_ps(out + 8, In::load8(x + 8));
  }
};

struct Double : avx2::DoubleIn, Plain<Double> {
  using Vector = __m512d;
  using Operand = __m512d;
  static constexpr int kLanes = 8, kGroup = 16;
  static Operand stored(const double* p) { return load(p); }
  static double total(Vector v) {
    alignas(64) double both[8];
    _mm512_store_pd(both, v);
    return avx2::total4(_mm256_add_pd(_mm256_load_pd(both), _mm256_load_pd(both + 4)));
  }
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  static Operand operand(const double* p) { return _mm512_loadu_pd(p); }
  static Operand spread(const double* p) { return _mm512_set1_pd(*p); }
  static Vector fma(Operand x, Operand y, Vector s) { return _mm512_fmadd_pd(x, y, s); }
  static Vector plus(Vector x, Vector y) { return _mm512_add_pd(x, y); }
  static void join(const double* x, const double*, double* out) { store(out, load(x)); }
};

// plugins/cpu/tile_avx512.hpp: vector types of 512 bits for tile_body.hpp; included by
// tile_x86.cpp.

template <class In>
struct Single : avx2::SingleIn<In> {
  using Vector = __m512;
  using Operand = __m512;
  static constexpr int kLanes = 16;
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

struct Double : avx2::DoubleIn {
  using Vector = __m512d;
  using Operand = __m512d;
  static constexpr int kLanes = 8;
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  static Operand operand(const double* p) { return _mm512_loadu_pd(p); }
  static Operand spread(const double* p) { return _mm512_set1_pd(*p); }
  static Vector fma(Operand x, Operand y, Vector s) { return _mm512_fmadd_pd(x, y, s); }
  static Vector plus(Vector x, Vector y) { return _mm512_add_pd(x, y); }
  static void join(const double* x, const double*, double* out) { store(out, load(x)); }
};

// plugins/cpu/product/tile_bf16.hpp: bfloat16 multiplied in pairs by the processor's own
// instruction, for tile_body.hpp; included by tile_x86.cpp.

struct Brain : avx2::BrainIn {
  using Packed = uint16_t;
  using Sum = float;
  using Vector = __m512;
  using Operand = __m512i;
  static constexpr int kPair = 2, kSquare = 8, kLanes = 16, kGroup = 32;
  static uint16_t convert(uint16_t x) { return x; }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  // Like the products, the conversion takes denormal numbers for zero.
  static void store(uint16_t* p, Vector v) {
    __m256bh out = _mm512_cvtneps_pbh(v);
    std::memcpy(p, &out, sizeof out);
  }
  static Operand operand(const uint16_t* p) { return _mm512_loadu_si512(p); }
  static Operand spread(const uint16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  static Vector fma(Operand x, Operand y, Vector s) {
    return _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)y);
  }
  static Vector plus(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  static void join(const uint16_t* x, const uint16_t* next, uint16_t* out) {
    using Narrow = uint16_t __attribute__((vector_size(32)));
    using Wide = uint32_t __attribute__((vector_size(64)));
    auto read = [](const uint16_t* p, Narrow* to) { std::memcpy(to, p, sizeof *to); };
    Narrow first, second = {};
    read(x, &first);
    if (next) read(next, &second);
    Wide pairs =
        __builtin_convertvector(first, Wide) | (__builtin_convertvector(second, Wide) << 16);
    std::memcpy(out, &pairs, sizeof pairs);
  }
  static Operand stored(const uint16_t* p) { return operand(p); }
  static float total(Vector v) {
    alignas(64) float both[16];
    store(both, v);
    return avx2::total8(_mm256_add_ps(_mm256_load_ps(both), _mm256_load_ps(both + 8)));
  }
  // Pairs of two rows of 32, in the order that costs one instruction each: columns 0-3, 8-11,
  // 16-19, 24-27 and then the others. straighten() brings sums back.
  static void columns(const uint16_t* row, const uint16_t* next, Operand (&y)[2]) {
    Operand a = operand(row), b = next ? operand(next) : _mm512_setzero_si512();
    y[0] = _mm512_maskz_unpacklo_epi16(~__mmask32(0), a, b);
    y[1] = _mm512_maskz_unpackhi_epi16(~__mmask32(0), a, b);
  }
  static void straighten(float* sums) {
    alignas(64) float old[32];
    std::memcpy(old, sums, sizeof old);
    for (int i = 0; i < 4; ++i) {
      std::memcpy(sums + 8 * i, old + 4 * i, 16);
      std::memcpy(sums + 8 * i + 4, old + 16 + 4 * i, 16);
    }
  }
  static void turn(const uint16_t* x, int64_t ld, uint16_t* out, int64_t step) {
    __m256 r[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(x + i * ld));
    avx2::turn8(r, reinterpret_cast<float*>(out), step / 2);
  }
};

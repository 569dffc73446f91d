// plugins/vector/transpose.cpp: planes turned round in blocks of whole cache lines.
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/transpose.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16 bytes of each of some lines, one line a lane: line, line + step, ...
template <class T, class D>
HWY_INLINE hn::Vec<D> lanes_of(D d, const char* from, int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  } else {
    const hn::Half<D> half;
    constexpr int64_t lines = int64_t(hn::MaxLanes(D()) * sizeof(T) / 32);
    return hn::Combine(d, lanes_of<T>(half, from + lines * step, step),
                       lanes_of<T>(half, from, step));
  }
}

// One block: 16 bytes of each of as many lines as a vector has elements. Rounds of interleaving
// turn each lane of 16 bytes.
template <class T>
HWY_INLINE void block(char* to, int64_t to_step, const char* from, int64_t from_step, bool stream) {
  const hn::ScalableTag<T> d;
  constexpr int kSide = 16 / sizeof(T);
  hn::Vec<decltype(d)> x[kSide], y[kSide];
#pragma GCC unroll 16
  for (int r = 0; r < kSide; ++r) x[r] = lanes_of<T>(d, from + r * from_step, kSide * from_step);
#pragma GCC unroll 4
  for (int half = 1; half < kSide; half *= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < kSide / 2; ++k) {
      y[2 * k] = hn::InterleaveLower(d, x[k], x[k + kSide / 2]);
      y[2 * k + 1] = hn::InterleaveUpper(d, x[k], x[k + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < kSide; ++k) x[k] = y[k];
  }
#pragma GCC unroll 16
  for (int r = 0; r < kSide; ++r) {
    T* line = reinterpret_cast<T*>(to + r * to_step);
    stream ? hn::Stream(x[r], d, line) : hn::StoreU(x[r], d, line);
  }
}

template <class T>
void edges(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t i0, int64_t i1,
           int64_t j0, int64_t j1) {
  for (int64_t j = j0; j < j1; ++j) {
    T* line = reinterpret_cast<T*>(to + j * to_step);
    const char* column = from + j * int64_t(sizeof(T));
    for (int64_t i = i0; i < i1; ++i) line[i] = *reinterpret_cast<const T*>(column + i * from_step);
  }
}

// Strips of two cache lines of the source, so that each of its lines is read once.
template <class T>
void turn(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n0, int64_t n1,
          bool stream) {
  constexpr int64_t kSize = sizeof(T), kSide = 16 / kSize, kLine = 128 / kSize;
  const int64_t lanes = int64_t(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t whole0 = n0 / lanes * lanes, whole1 = n1 / kSide * kSide;
  // A vector that is a whole cache line may go past the caches.
  stream &= lanes * kSize == 64 && to_step % 64 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0;
  for (int64_t strip = 0; strip < whole1; strip += kLine)
    for (int64_t i = 0; i < whole0; i += lanes)
      for (int64_t j = strip; j < std::min(whole1, strip + kLine); j += kSide)
        block<T>(to + j * to_step + i * kSize, to_step, from + i * from_step + j * kSize, from_step,
                 stream);
  edges<T>(to, to_step, from, from_step, 0, n0, whole1, n1);
  edges<T>(to, to_step, from, from_step, whole0, n0, 0, whole1);
}

void turn_any(int64_t size, char* to, int64_t to_step, const char* from, int64_t from_step,
              int64_t n0, int64_t n1, bool stream) {
  switch (size) {
    case 1:
      return turn<uint8_t>(to, to_step, from, from_step, n0, n1, stream);
    case 2:
      return turn<uint16_t>(to, to_step, from, from_step, n0, n1, stream);
    case 4:
      return turn<uint32_t>(to, to_step, from, from_step, n0, n1, stream);
    case 8:
      return turn<uint64_t>(to, to_step, from, from_step, n0, n1, stream);
    default:
      return edges<Bytes16>(to, to_step, from, from_step, 0, n0, 0, n1);
  }
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
void transpose(int64_t size, char* to, int64_t to_step, const char* from, int64_t from_step,
               int64_t n0, int64_t n1, bool stream) {
  AJ_SIMD(turn_any)(size, to, to_step, from, from_step, n0, n1, stream);
}
}  // namespace adjoin::cpu
#endif

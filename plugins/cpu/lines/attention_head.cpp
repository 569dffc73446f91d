// plugins/cpu/lines/attention_head.cpp: attention of one head in vector code.
#include "attention_head.hpp"

#include <adjoin/kit/scalar_math.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lines/attention_head.cpp"
#include "vector/simd.hpp"

// after it, once per target; in this order
// clang-format off
#include "vector/math-inl.hpp"
#include "vector/row_math-inl.hpp"
#include "vector/tile_product-inl.hpp"
#if AJ_VECTORS
#include "attention_forward-inl.hpp"
#include "attention_backward-inl.hpp"
#endif
// clang-format on

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace {

template <class T>
constexpr AttentionCode<T> kCode = {&attention_forward<T>, &attention_backward<T>};

}  // namespace

AJ_CODE(AttentionCode, attention_code, kCode)

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {

struct Room {
  std::unique_ptr<char[]> memory;
  size_t bytes = 0;
};

void* room_of(size_t bytes) {
  thread_local Room room;
  if (room.bytes < bytes) {
    room.memory.reset();
    room.memory.reset(new char[bytes + 64]);
    room.bytes = bytes;
  }
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(room.memory.get()) + 63) & ~63ull);
}

}  // namespace

template <>
float* attention_room<float>(int64_t n) {
  return static_cast<float*>(room_of(size_t(n) * sizeof(float)));
}
template <>
double* attention_room<double>(int64_t n) {
  return static_cast<double*>(room_of(size_t(n) * sizeof(double)));
}
AJ_CHOSEN_CODE(AttentionCode, attention_code)

}  // namespace adjoin::cpu
#endif

// tests/plugins/paper_card/numbers.hpp: number types that the paper libraries compute over.
#ifndef ADJOIN_TESTS_PAPER_CARD_NUMBERS_HPP
#define ADJOIN_TESTS_PAPER_CARD_NUMBERS_HPP
#include <adjoin/kit/dtype.hpp>
#include <cstdint>
#include <cstring>

namespace paper {

using Half = adjoin::kit::Half;  // _Float16 is not there for every compiler

struct BFloat16 {
  uint16_t bits;
  BFloat16(float x) {
    uint32_t all;
    std::memcpy(&all, &x, sizeof all);
    bits = uint16_t((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
  operator float() const {
    uint32_t all = uint32_t(bits) << 16;
    float x;
    std::memcpy(&x, &all, sizeof x);
    return x;
  }
};

// A float32 as tensor cores read it in the mode TF32: 10 bits behind the point.
inline float as_tf32(float x) {
  uint32_t all;
  std::memcpy(&all, &x, sizeof all);
  all = (all + 0xfff + (all >> 13 & 1)) & ~0x1fffu;
  std::memcpy(&x, &all, sizeof x);
  return x;
}

}  // namespace paper
#endif

// adjoin/kit/philox.hpp: Philox 4x32-10, and how its words become numbers: the same on every
// backend.
//
// key = seed; counter = (offset + block: 64 bits, stream: 64 bits). Element i of a tensor, in
// logical C order, takes word i mod 4 of block i / 4; types of 64 bits take two words: block i / 2.
//
// A draw that a device's graph keeps has its place in memory, so that each launch of the graph can
// have another one: generator_draw then gives the address of two words of that device, seed and
// offset, as the seed, and kInGraph | blocks behind them as the offset. Kernels of a device that
// captures graphs begin with placed(philox).
#ifndef ADJOIN_KIT_PHILOX_HPP
#define ADJOIN_KIT_PHILOX_HPP
#include <adjoin/kit/normal.hpp>
#include <cmath>

namespace adjoin {
namespace AJ_HIDDEN kit {

struct Philox {
  uint64_t seed, offset;
  struct Block {
    uint32_t word[4];
    AJ_HD uint64_t wide(int i) const { return word[2 * i] | uint64_t(word[2 * i + 1]) << 32; }
  };

  AJ_HD Block operator()(uint64_t block, uint64_t stream = 0) const {
    uint64_t low = offset + block;
    uint32_t c[4] = {uint32_t(low), uint32_t(low >> 32), uint32_t(stream), uint32_t(stream >> 32)};
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
      uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k1,
                          uint32_t(a)};
      for (int i = 0; i < 4; ++i) c[i] = next[i];
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c[0], c[1], c[2], c[3]}};
  }
};

inline constexpr uint64_t kInGraph = uint64_t(1) << 63;
AJ_HD inline Philox placed(const Philox& draw) {
  if (!(draw.offset & kInGraph)) return draw;
  auto* at = reinterpret_cast<const uint64_t*>(draw.seed);
  return {at[0], at[1] + (draw.offset & ~kInGraph)};
}

AJ_HD inline float uniform_of(uint32_t word) { return float(word >> 8) * 0x1p-24f; }  // [0, 1)
AJ_HD inline double uniform_of(uint64_t word) { return double(word >> 11) * 0x1p-53; }

template <class T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;  // elements of a block

// Fills values[0 .. kPerBlock) of one block. T is float or double.
template <class T>
AJ_HD inline void uniform_block(const Philox::Block& b, T* values) {
  for (int i = 0; i < kPerBlock<T>; ++i) {
    if constexpr (sizeof(T) == 8)
      values[i] = uniform_of(b.wide(i));
    else
      values[i] = uniform_of(b.word[i]);
  }
}

// Box-Muller on pairs of uniforms: the cosine to the even element, the sine to the odd one.
template <class T>
AJ_HD inline void normal_block(const Philox::Block& b, T* values) {
  uniform_block(b, values);
  for (int i = 0; i < kPerBlock<T>; i += 2) normal_pair<OneNumber<T>>(values + i, values + i + 1);
}

// Numbers of [0, 1) or normal ones, stretched and moved: one rounding.
template <class T>
AJ_HD inline T scaled(T x, T by, T start) {
  return std::fma(x, by, start);
}

// An integer of [0, range) for element i, by multiply-high. A range over 2^24 rejects the few words
// that would favour some values and draws again from the same place of the next stream; over 2^32
// it takes two words.
AJ_HD inline uint64_t integer_of(const Philox& philox, uint64_t i, uint64_t range) {
  for (uint64_t stream = 0;; ++stream) {
    if (range <= uint64_t(1) << 32) {
      uint64_t product = philox(i / 4, stream).word[i % 4] * range;
      uint32_t low = uint32_t(product);
      if (range <= (1u << 24) || low >= uint32_t((uint64_t(1) << 32) % range)) return product >> 32;
    } else {
      auto product = static_cast<unsigned __int128>(philox(i / 2, stream).wide(i % 2)) * range;
      if (uint64_t(product) >= (0 - range) % range) return uint64_t(product >> 64);
    }
  }
}

}  // namespace kit
}  // namespace adjoin
#endif

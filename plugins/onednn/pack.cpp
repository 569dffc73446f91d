// plugins/onednn/pack.cpp: blocks of 16 channels of a weight, turned in registers.
#include "pack.hpp"

#include <adjoin/kit/parallel.hpp>
#include <algorithm>
#include <vector>

#include "transpose.hpp"

namespace adjoin::onednn {
namespace {

using kit::grain_of;
using kit::parallel_for;

constexpr int64_t kSide = 16;

// Where [small channel, big channel, taps] lie in a blocked layout: each index adds its own part.
class Blocks {
 public:
  Blocks(const dnnl_memory_desc_t& d, const Weight& w) : d_(d) {
    if (d.ndims != 4 || d.format_kind != dnnl_blocked || !has_tiles() || d.offset0 != 0) return;
    taps_ = d.dims[2] * d.dims[3];
    const auto& b = blocking();
    bool dense = w.stride[1] == taps_ && w.stride[3] == d.dims[3] && w.stride[4] == 1;
    for (int i = 0; i < 4; ++i) dense &= d.dims[i] == d.padded_dims[i];
    if (!dense || b.inner_nblks == 0 || b.inner_blks[b.inner_nblks - 1] % kSide != 0) return;
    inner_ = int(b.inner_idxs[b.inner_nblks - 1]);
    if (inner_ > 1) inner_ = -1;
  }
  int inner() const { return inner_; }  // 0: small channels are contiguous; 1: big ones; -1: other
  int64_t small() const { return d_.dims[0]; }
  int64_t big() const { return d_.dims[1]; }
  int64_t taps() const { return taps_; }

  int64_t part(int dimension, int64_t index) const {
    const auto& b = blocking();
    int64_t inside = 0, step = 1, rest = index, whole = 1;
    for (int i = 0; i < b.inner_nblks; ++i)
      if (b.inner_idxs[i] == dimension) whole *= b.inner_blks[i];
    rest %= whole;
    for (int i = b.inner_nblks; i-- > 0; step *= b.inner_blks[i])
      if (b.inner_idxs[i] == dimension) {
        inside += rest % b.inner_blks[i] * step;
        rest /= b.inner_blks[i];
      }
    return index / whole * b.strides[dimension] + inside;
  }
  int64_t tap(int64_t t) const { return part(2, t / d_.dims[3]) + part(3, t % d_.dims[3]); }
  // Of a small channel's row [big channels, taps].
  std::vector<int64_t> row() const {
    std::vector<int64_t> at(size_t(big() * taps_), 0);
    for (int64_t c = 0; c < big(); ++c)
      for (int64_t t = 0; t < taps_; ++t) at[size_t(c * taps_ + t)] = part(1, c) + tap(t);
    return at;
  }

 private:
  const dnnl_blocking_desc_t& blocking() const { return d_.format_desc.blocking; }
  const dnnl_memory_desc_t& d_;
  int64_t taps_ = 0;
  int inner_ = -1;
};

void pack_small(const Blocks& b, const Weight& w, float* packed) {
  std::vector<int64_t> at = b.row();
  int64_t n = int64_t(at.size()), whole = n / kSide * kSide;
  parallel_for(b.small() / kSide, grain_of(kSide * n), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      const float* from = w.data + lo * kSide * w.stride[0];
      float* to = packed + b.part(0, lo * kSide);
      for (int64_t j = 0; j < whole; j += kSide)
        scatter_tile(from + j, w.stride[0], kSide, to, at.data() + j);
      for (int64_t j = whole; j < n; ++j)
        for (int64_t i = 0; i < kSide; ++i) to[at[size_t(j)] + i] = from[i * w.stride[0] + j];
    }
  });
}

void unpack_small(const Blocks& b, const float* packed, const Weight& w) {
  std::vector<int64_t> at = b.row();
  int64_t n = int64_t(at.size()), whole = n / kSide * kSide;
  parallel_for(b.small() / kSide, grain_of(kSide * n), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      float* to = w.data + lo * kSide * w.stride[0];
      const float* from = packed + b.part(0, lo * kSide);
      for (int64_t j = 0; j < whole; j += kSide)
        gather_tile(from, at.data() + j, to + j, w.stride[0]);
      for (int64_t j = whole; j < n; ++j)
        for (int64_t i = 0; i < kSide; ++i) to[i * w.stride[0] + j] = from[at[size_t(j)] + i];
    }
  });
}

// Sixteen big channels of one small one are a matrix [16, taps].
void pack_big(const Blocks& b, const Weight& w, float* packed) {
  int64_t taps = b.taps();
  std::vector<int64_t> at(size_t(taps), 0);
  for (int64_t t = 0; t < taps; ++t) at[size_t(t)] = b.tap(t);
  parallel_for(b.small(), grain_of(b.big() * taps), [&](int64_t lo, int64_t hi) {
    float edge[kSide * kSide] = {};
    for (; lo < hi; ++lo)
      for (int64_t c = 0; c < b.big(); c += kSide) {
        const float* from = w.data + lo * w.stride[0] + c * taps;
        float* to = packed + b.part(0, lo) + b.part(1, c);
        for (int64_t t = 0; t < taps; t += kSide) {
          int rows = int(std::min(kSide, taps - t));
          // A tile reads 16 columns, which the last channels of the weight need not have.
          bool inside = rows == kSide || (kSide - 1) * taps + t + kSide <= (b.big() - c) * taps;
          for (int64_t i = 0; i < kSide && !inside; ++i)
            std::copy_n(from + i * taps + t, rows, edge + i * kSide);
          scatter_tile(inside ? from + t : edge, inside ? taps : kSide, rows, to, at.data() + t);
        }
      }
  });
}

}  // namespace

bool pack(const dnnl_memory_desc_t& layout, const Weight& weight, float* packed) {
  Blocks b(layout, weight);
  if (b.inner() < 0 || (b.inner() == 0 ? b.small() : b.big()) % kSide != 0) return false;
  b.inner() == 0 ? pack_small(b, weight, packed) : pack_big(b, weight, packed);
  return true;
}

bool unpack(const dnnl_memory_desc_t& layout, const float* packed, const Weight& weight) {
  Blocks b(layout, weight);
  if (b.inner() != 0 || b.small() % kSide != 0) return false;
  unpack_small(b, packed, weight);
  return true;
}

}  // namespace adjoin::onednn

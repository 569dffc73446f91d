// plugins/cpu/lines/attention_head.hpp: attention of one head, forward and backward.
//
// Blocks of keys pass by a block of queries, whose softmax is corrected as larger scores appear
// (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022,
// "FlashAttention"), so the scores never leave the cache. Backward makes them again out of the
// saved logarithms of the sums.
#ifndef ADJOIN_PLUGINS_CPU_LINES_ATTENTION_HEAD_HPP
#define ADJOIN_PLUGINS_CPU_LINES_ATTENTION_HEAD_HPP
#include <cstdint>

namespace adjoin::cpu {

template <class T>
struct Rows2 {  // rows of contiguous elements
  T* data;
  int64_t step;
  T* operator[](int64_t i) const { return data + i * step; }
};

template <class T>
struct Head {
  Rows2<const T> query, key, value;
  int64_t queries, keys, depth, width;  // depth of query and key, width of value
  bool causal;
  T scale;
  const T* added;    // a mask that is added to the scores, or
  const bool* seen;  // one that says what counts, or neither
  int64_t mask_row, mask_column;
  Rows2<T> out;
  T* log_sums;  // by query
  // backward only
  Rows2<const T> grad;
  Rows2<T> of_query, of_key, of_value;

  // Of queries [lo, hi): keys in front of this one may be seen.
  int64_t reach(int64_t hi) const { return causal && hi < keys ? hi : keys; }
};

constexpr int64_t kAttentionQueries = 48, kAttentionKeys = 512;  // a block of the forward pass

template <class T>
struct AttentionCode {
  void (*forward)(const Head<T>& h, int64_t lo, int64_t hi);  // queries [lo, hi)
  void (*backward)(const Head<T>& h);
};
template <class T>
const AttentionCode<T>& attention_code();

// Room that a thread keeps from one head to the next: n elements, aligned.
template <class T>
T* attention_room(int64_t n);

}  // namespace adjoin::cpu
#endif

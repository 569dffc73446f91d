// plugins/cpu/sort_keys.hpp: values as unsigned integers of the same order, and sorting those by
// radix, least significant digit first: stable, and without a comparison.
#ifndef ADJOIN_PLUGINS_CPU_SORT_KEYS_HPP
#define ADJOIN_PLUGINS_CPU_SORT_KEYS_HPP
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <bit>
#include <memory>
#include <vector>

namespace adjoin::cpu {

// NaN are one key above all others; the two zeros are one key.
template <class T>
struct Keys {
  using Bits = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;
  static constexpr Bits kTop = Bits(1) << (sizeof(Bits) * 8 - 1);

  static Bits of(T x, bool descending) {
    Bits key;
    if constexpr (std::is_floating_point_v<T>) {
      Bits b = std::bit_cast<Bits>(x + T(0));
      key = x != x ? ~Bits(0) : b ^ (b & kTop ? ~Bits(0) : kTop);
    } else if constexpr (std::is_signed_v<T>) {
      key = Bits(std::make_signed_t<Bits>(x)) ^ kTop;
    } else {
      key = Bits(x);
    }
    return descending ? ~key : key;
  }
  // Is the value the key's? Else it has to be fetched.
  static bool exact(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x == x && (x != 0 || !std::signbit(x));
    else
      return true;
  }
  static T value(Bits key, bool descending) {
    if (descending) key = ~key;
    if constexpr (std::is_floating_point_v<T>)
      return std::bit_cast<T>(key ^ (key & kTop ? kTop : ~Bits(0)));
    else if constexpr (std::is_signed_v<T>)
      return T(std::make_signed_t<Bits>(key ^ kTop));
    else
      return T(key);
  }
};

// A key and its index; 64 bits where both fit.
template <class Bits>
struct Pair {
  Bits key;
  Bits index;
  friend bool operator<(Pair a, Pair b) {  // total: an unstable algorithm gives the stable order
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};
template <>
struct Pair<uint32_t> {
  uint32_t index, key;
  friend bool operator<(Pair a, Pair b) {
    return std::bit_cast<uint64_t>(a) < std::bit_cast<uint64_t>(b);
  }
};

template <class P>
void insertion_sort(P* a, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    P p = a[i];
    int64_t j = i;
    for (; j > 0 && p < a[j - 1]; --j) a[j] = a[j - 1];
    a[j] = p;
  }
}

// Sorts a by digits of `bits` bits; b is room of the same size. Returns the one that has the
// result. The work of a pass is cut into `parts`, which follow each other in every bucket, so the
// result does not depend on their number.
template <int bits, class P>
P* radix_sort(P* a, P* b, int64_t n, int64_t parts) {
  using Bits = decltype(P::key);
  constexpr int64_t buckets = int64_t(1) << bits;
  std::unique_ptr<uint32_t[]> room(new uint32_t[size_t(parts * buckets)]);
  uint32_t* count = room.get();
  int64_t share = (n + parts - 1) / parts;
  for (unsigned shift = 0; shift < sizeof(Bits) * 8; shift += bits) {
    auto digit = [=](const P& p) { return size_t(p.key >> shift) & (buckets - 1); };
    kit::parallel_for(parts, 1, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        uint32_t* c = count + lo * buckets;
        std::fill_n(c, buckets, 0u);
        for (int64_t i = lo * share; i < std::min(n, (lo + 1) * share); ++i) ++c[digit(a[i])];
      }
    });
    uint32_t at = 0;
    bool one_bucket = false;
    for (int64_t d = 0; d < buckets; ++d) {
      uint32_t before = at;
      for (int64_t p = 0; p < parts; ++p) {
        uint32_t c = count[p * buckets + d];
        count[p * buckets + d] = at;
        at += c;
      }
      one_bucket |= at - before == uint32_t(n);
    }
    if (one_bucket) continue;
    kit::parallel_for(parts, 1, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        uint32_t* c = count + lo * buckets;
        for (int64_t i = lo * share; i < std::min(n, (lo + 1) * share); ++i)
          b[c[digit(a[i])]++] = a[i];
      }
    });
    std::swap(a, b);
  }
  return a;
}

// As radix_sort, for lines that lie in the cache: the digits are counted in one walk.
template <class P>
P* radix_sort_short(P* a, P* b, int64_t n) {
  using Bits = decltype(P::key);
  constexpr int64_t passes = sizeof(Bits), buckets = 256;
  uint32_t count[passes][buckets] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < passes; ++p) ++count[p][uint8_t(a[i].key >> (8 * p))];
  for (int64_t p = 0; p < passes; ++p) {
    uint32_t *c = count[p], at = 0;
    if (c[uint8_t(a[0].key >> (8 * p))] == uint32_t(n)) continue;
    for (int64_t d = 0; d < buckets; ++d) at += std::exchange(c[d], at);
    for (int64_t i = 0; i < n; ++i) b[c[uint8_t(a[i].key >> (8 * p))]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

template <class P>
P* sort_pairs(P* a, P* b, int64_t n, int64_t parts) {
  if (n <= 48) {
    insertion_sort(a, n);
    return a;
  }
  return n <= 1 << 15 ? radix_sort_short(a, b, n) : radix_sort<11>(a, b, n, parts);
}

}  // namespace adjoin::cpu
#endif

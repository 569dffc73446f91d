// plugins/vector/sort_keys.hpp: values as unsigned integers of the same order, packed with their
// places into words of 64 bits; sorting those by radix, and the least of them by halving what is
// left.
#ifndef ADJOIN_PLUGINS_VECTOR_SORT_KEYS_HPP
#define ADJOIN_PLUGINS_VECTOR_SORT_KEYS_HPP
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>
#include <bit>
#include <memory>

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

// Memory from the core's allocator, whose pages are warm.
template <class T>
class Room {
 public:
  Room() = default;
  explicit Room(int64_t n) {
    const int64_t bytes[1] = {n * int64_t(sizeof(T))};
    held_ = Tensor::steal(kit::new_tensor({kDLCPU, 0}, kit::dtype_of<uint8_t>, bytes));
    at_ = reinterpret_cast<T*>(kit::MutView(held_.get()).bytes());
  }
  T* get() const { return at_; }

 private:
  Tensor held_;
  T* at_ = nullptr;
};

inline void insertion_sort(uint64_t* a, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    uint64_t p = a[i];
    int64_t j = i;
    for (; j > 0 && p < a[j - 1]; --j) a[j] = a[j - 1];
    a[j] = p;
  }
}

// Sorts a by digits of `bits` bits from bit `low` up to `high`; b is room of the same size. Returns
// the one that has the result. The work of a pass is cut into `parts`, which follow each other in
// every bucket, so the result does not depend on their number.
template <int bits>
uint64_t* radix_sort(uint64_t* a, uint64_t* b, int64_t n, int64_t parts, unsigned low,
                     unsigned high) {
  constexpr int64_t buckets = int64_t(1) << bits;
  std::unique_ptr<uint32_t[]> room(new uint32_t[size_t(parts * buckets)]);
  uint32_t* count = room.get();
  int64_t share = (n + parts - 1) / parts;
  for (unsigned shift = low; shift < high; shift += bits) {
    const uint64_t mask = (uint64_t(1) << std::min<unsigned>(bits, high - shift)) - 1;
    auto digit = [=](uint64_t word) { return size_t(word >> shift & mask); };
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
inline uint64_t* radix_sort_short(uint64_t* a, uint64_t* b, int64_t n, unsigned low,
                                  unsigned high) {
  constexpr int64_t buckets = 256;
  const int64_t passes = (high - low + 7) / 8;
  uint32_t count[8][buckets];
  std::fill_n(count[0], passes * buckets, 0u);
  const uint64_t mask = high - low < 64 ? (uint64_t(1) << (high - low)) - 1 : ~uint64_t(0);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t rest = a[i] >> low & mask;
    for (int64_t p = 0; p < passes; ++p, rest >>= 8) ++count[p][uint8_t(rest)];
  }
  for (int64_t p = 0; p < passes; ++p) {
    uint32_t *c = count[p], at = 0;
    auto digit = [=](uint64_t word) { return uint8_t((word >> low & mask) >> (8 * p)); };
    if (c[digit(a[0])] == uint32_t(n)) continue;
    for (int64_t d = 0; d < buckets; ++d) at += std::exchange(c[d], at);
    for (int64_t i = 0; i < n; ++i) b[c[digit(a[i])]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

// What is sorted but for the bits below `low`, in which few that are otherwise equal differ. False:
// they are too many; equal ones still stand in their first order.
inline bool mend_groups(uint64_t* a, int64_t n, unsigned low) {
  constexpr int64_t most = 32;
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && a[end] >> low == a[i] >> low; ++end)
      if (end - i == most) return false;
    if (end - i > 1) insertion_sort(a + i, end - i);
  }
  return true;
}

// Words that stand in the order of their bits below `low`, and agree above `high`. Many digits are
// sorted by their highest three first.
inline uint64_t* sort_words(uint64_t* a, uint64_t* b, int64_t n, int64_t parts, unsigned low,
                            unsigned high) {
  if (n <= 48) {
    insertion_sort(a, n);
    return a;
  }
  if (low >= high) return a;
  bool near = n <= 1 << 15;
  constexpr unsigned bits = 11;
  unsigned most = near ? 4 * 8 : 3 * bits, from = std::max(low, high > most ? high - most : 0);
  auto sort = [&](uint64_t* x, uint64_t* y, unsigned first) {
    return near ? radix_sort_short(x, y, n, first, high)
                : radix_sort<bits>(x, y, n, parts, first, high);
  };
  uint64_t* sorted = sort(a, b, from);
  if (from == low || mend_groups(sorted, n, from)) return sorted;
  return sort(sorted, sorted == a ? b : a, low);
}

// Brings the `keep` least words to the front, the greatest of them last; words as for sort_words. A
// digit tells which are among them, which are not and which may be; those are looked at further.
inline void select_words(uint64_t* a, uint64_t* b, int64_t n, int64_t keep, unsigned low,
                         unsigned high) {
  constexpr int64_t few = 1024;
  while (n > few && high > low) {
    constexpr unsigned bits = 11;
    uint32_t count[1 << bits] = {};
    unsigned from = std::max(low, high > bits ? high - bits : 0);
    const uint64_t mask = (uint64_t(1) << (high - from)) - 1;
    for (int64_t i = 0; i < n; ++i) ++count[a[i] >> from & mask];
    int64_t below = 0;
    uint64_t digit = 0;
    while (below + count[digit] < keep) below += count[digit++];
    int64_t less = 0, equal = 0;
    for (int64_t i = 0; i < n; ++i) {
      uint64_t word = a[i], d = word >> from & mask;
      a[less] = word, less += d < digit;
      b[equal] = word, equal += d == digit;
    }
    std::copy_n(b, equal, a + less);
    a += less, n = equal, keep -= less, high = from;
  }
  if (high > low && keep > 0) std::nth_element(a, a + keep - 1, a + n);
}

}  // namespace adjoin::cpu
#endif

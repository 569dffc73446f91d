// plugins/gpu/radix.cuh: the stable order of long lines by the digits of their keys, the lowest
// first. A pass over a digit is one launch: a block puts a tile in order, and learns how many of
// each digit stand before it from the tiles before, which say so as soon as they know.
//
// N. Satish, M. Harris, M. Garland, Designing Efficient Sorting Algorithms for Manycore GPUs, 2009;
// D. Merrill, M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016.
#ifndef ADJOIN_PLUGINS_GPU_RADIX_CUH
#define ADJOIN_PLUGINS_GPU_RADIX_CUH
#include "merge.cuh"
#include "pack.cuh"
#include "scan.cuh"

namespace adjoin::gpu {

constexpr int kDigits = 256;
constexpr int kRadixEach = 32;  // elements of a thread
constexpr int kRadixTile = kRadixEach * int(kBlock);
constexpr int kNibbles = 16;  // a tile is put in order by half a digit, then by the other half
static_assert(kDigits == 2 * kBlock && kNibbles * kNibbles == kDigits);

// A number whose order is the wanted one: NaN is the largest, the two zeros are equal.
template <class T>
using Word =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
template <class T>
AJ_HD Word<T> word_of(T x, bool descending) {
  using W = Word<T>;
  constexpr W kTop = W(W(1) << (8 * sizeof(T) - 1)), kAll = W(~W(0));
  W word;
  if constexpr (is_half<T> || std::is_floating_point_v<T>) {
    Math<T> value = Math<T>(x);
    W bits;
    if constexpr (is_half<T>)
      bits = x.bits;
    else
      bits = std::bit_cast<W>(x);
    word = scalar::is_nan(value)   ? kAll
           : value == Math<T>(0)   ? kTop
           : (bits & kTop) != W(0) ? W(~bits)
                                   : W(bits | kTop);
  } else {
    word = std::is_signed_v<T> ? W(W(x) ^ kTop) : W(x);
  }
  return descending ? W(~word) : word;
}

// What a tile says of a digit: how many it has itself, or all tiles up to it.
constexpr uint32_t kItself = uint32_t(1) << 30, kUpTo = uint32_t(2) << 30;

template <class T>
struct Radix {
  Keys<T> keys;
  const Word<T>* words;  // in the order so far; NULL: that of the keys
  const uint32_t* places;
  Word<T>* words_to;  // NULL: this is the last digit
  uint32_t* places_to;
  int64_t* order;     // of the last digit
  const int* totals;  // [line][digit]
  uint32_t* before;   // [tile][digit]
  int* tickets;       // tiles that blocks have taken: in this order they run
  int64_t tasks;
  Divisor tiles;  // of a line
  int32_t shift;

  AJ_DEVICE Word<T> word(int64_t line, int64_t k) const {
    return words ? words[line * keys.size + k]
                 : word_of(keys.x[in_line(line, k, keys.size, keys.inner)], keys.descending);
  }
};

// All digits of all keys, counted.
template <class T>
struct Totals {
  Keys<T> keys;
  int* totals;  // [digit's place][line][digit]
  int64_t tasks, lines;
  Divisor tiles;
  int32_t passes;
};
template <class T>
AJ_GLOBAL void radix_totals_kernel(AJ_ARGUMENT Totals<T> p) {
  AJ_SHARED int counts[sizeof(T)][kDigits];
  int me = int(thread_x());
  for (int64_t task = block_x(); task < p.tasks; task += blocks_x()) {
    Quotient at = p.tiles.divided(task);
    int64_t begin = at.rest * kRadixTile, left = p.keys.size - begin;
    int count = int(left < kRadixTile ? left : kRadixTile);
    for (int pass = 0; pass < p.passes; ++pass) counts[pass][me] = counts[pass][me + kBlock] = 0;
    sync_block();
    for (int e = me; e < count; e += kBlock) {
      int64_t from = in_line(at.whole, begin + e, p.keys.size, p.keys.inner);
      Word<T> word = word_of(p.keys.x[from], p.keys.descending);
      for (int pass = 0; pass < p.passes; ++pass)
        atomic_add(&counts[pass][word >> (8 * pass) & (kDigits - 1)], 1);
    }
    sync_block();
    for (int pass = 0; pass < p.passes; ++pass)
      for (int digit = me; digit < kDigits; digit += kBlock)
        if (int n = counts[pass][digit])
          atomic_add(&p.totals[(pass * p.lines + at.whole) * kDigits + digit], n);
    sync_block();
  }
}

struct Sums {
  struct State {
    int own, all;
  };
  AJ_HD State start() const { return {0, 0}; }
  AJ_HD void join(State& s, const State& later) const {
    s.own += later.own;
    s.all += later.all;
  }
};

// orders[to]: orders[from], stably by half a digit; orders[from] of the first half is 0, 1, ...
AJ_DEVICE inline void order_by_nibble(const uint8_t* digits, int count, int shift,
                                      const uint16_t* from, uint16_t* to) {
  AJ_SHARED uint16_t counts[kNibbles][kBlock];
  uint16_t* flat = &counts[0][0];
  int me = int(thread_x()), first = me * kRadixEach;
  int end = first + kRadixEach < count ? first + kRadixEach : count;
  for (int n = 0; n < kNibbles; ++n) counts[n][me] = 0;
  auto element = [&](int e) { return from ? from[e] : uint16_t(e); };
  auto nibble = [&](int element) { return digits[element] >> shift & (kNibbles - 1); };
  for (int e = first; e < end; ++e) ++counts[nibble(element(e))][me];
  sync_block();
  int sum = 0;
  for (int k = 0; k < kNibbles; ++k) sum += flat[me * kNibbles + k];
  Sums::State mine = {sum, 0};
  int stand_before = before_me(Sums(), &mine).own;
  for (int k = 0; k < kNibbles; ++k) {
    uint16_t& place = flat[me * kNibbles + k];
    int own = place;
    place = uint16_t(stand_before);
    stand_before += own;
  }
  sync_block();
  for (int e = first; e < end; ++e) {
    uint16_t which = element(e);
    to[counts[nibble(which)][me]++] = which;
  }
  sync_block();
}

template <class T>
AJ_GLOBAL void radix_kernel(AJ_ARGUMENT Radix<T> p) {
  AJ_SHARED uint8_t digits[kRadixTile];
  AJ_SHARED uint16_t orders[2][kRadixTile];
  AJ_SHARED int counts[kDigits], goes[kDigits], ticket;
  int me = int(thread_x());
  for (;;) {
    if (me == 0) ticket = atomic_add(p.tickets, 1);
    counts[me] = counts[me + kBlock] = 0;
    sync_block();
    int64_t task = ticket;
    if (task >= p.tasks) return;
    Quotient at = p.tiles.divided(task);
    int64_t line = at.whole, begin = at.rest * kRadixTile, left = p.keys.size - begin;
    int count = int(left < kRadixTile ? left : kRadixTile);
    for (int e = me; e < count; e += kBlock) {
      uint8_t digit = uint8_t(p.word(line, begin + e) >> p.shift);
      digits[e] = digit;
      atomic_add(&counts[digit], 1);
    }
    sync_block();
    // A word says both what it counts and how many, so none is seen without the other.
    uint32_t* own = p.before + task * kDigits;
    for (int digit = me; digit < kDigits; digit += kBlock)
      static_cast<volatile uint32_t&>(own[digit]) =
          uint32_t(counts[digit]) | (at.rest ? kItself : kUpTo);
    order_by_nibble(digits, count, 0, nullptr, orders[0]);
    order_by_nibble(digits, count, 4, orders[0], orders[1]);

    // Neighbours, so that what stands before a thread's digits is those of the threads before.
    const int* totals = p.totals + line * kDigits;
    int first = 2 * me;
    Sums::State mine = {counts[first] + counts[first + 1], totals[first] + totals[first + 1]};
    Sums::State stand = before_me(Sums(), &mine);
    for (int digit = first; digit < first + 2; ++digit) {
      uint32_t before = 0;
      for (int64_t tile = at.rest - 1; tile >= 0;) {
        const volatile uint32_t& word = p.before[(task - at.rest + tile) * kDigits + digit];
        uint32_t told = word;
        if (told < kItself) continue;  // it will say
        before += told & (kItself - 1);
        if (told >= kUpTo) break;
        --tile;
      }
      if (at.rest)
        static_cast<volatile uint32_t&>(own[digit]) = (before + uint32_t(counts[digit])) | kUpTo;
      goes[digit] = stand.all + int(before) - stand.own;
      stand.own += counts[digit];
      stand.all += totals[digit];
    }
    sync_block();
    for (int j = me; j < count; j += kBlock) {
      int e = orders[1][j];
      int64_t from = line * p.keys.size + begin + e;
      int64_t to = line * p.keys.size + goes[digits[e]] + j;
      uint32_t place = p.places ? p.places[from] : uint32_t(begin + e);
      if (p.words_to) {
        p.words_to[to] = p.word(line, begin + e);
        p.places_to[to] = place;
      } else {
        p.order[to] = place;
      }
    }
    sync_block();
  }
}

// A step of merging reads each key a dozen times, from anywhere; a pass streams through memory.
template <class T>
bool by_digits(int64_t size) {
  int64_t steps = 0;
  while ((kSortTile << steps) < size) ++steps;
  return 3 * steps > int64_t(sizeof(T)) + 2 && size < kItself;
}
// The whole order of each line in `order`; both rooms hold whole lines.
template <class T>
void order_by_digits(const aj_call* call, const Keys<T>& keys, int64_t lines, int64_t* order,
                     int64_t* room) {
  using W = Word<T>;
  int64_t n = lines * keys.size, tiles = (keys.size + kRadixTile - 1) / kRadixTile;
  int64_t tasks = lines * tiles, passes = int64_t(sizeof(T));
  // What is zero at the start: totals, what stands before, tickets.
  int64_t counted = passes * lines * kDigits, told = passes * tasks * kDigits;
  Buffer<int> zeros(call, counted + told + passes);
  fill_zero(call, zeros.data(), (counted + told + passes) * int64_t(sizeof(int)));
  int* totals = zeros.data();
  auto* before = reinterpret_cast<uint32_t*>(totals + counted);
  Totals<T> count = {keys, totals, tasks, lines, tiles, int32_t(passes)};
  launch_blocks<&radix_totals_kernel<T>>(call, tasks, kBlock, count);

  Buffer<W> one(call, passes > 1 ? n : 0), other(call, passes > 2 ? n : 0);
  W* words[2] = {one.data(), other.data()};
  auto* half = reinterpret_cast<uint32_t*>(room);
  uint32_t* places[2] = {half, half + n};
  Radix<T> p = {};
  p.keys = keys, p.tasks = tasks, p.tiles = tiles;
  for (int64_t pass = 0; pass < passes; ++pass) {
    bool last = pass + 1 == passes;
    int to = int(pass % 2);
    p.words = pass ? words[1 - to] : nullptr, p.places = pass ? places[1 - to] : nullptr;
    p.words_to = last ? nullptr : words[to], p.places_to = last ? nullptr : places[to];
    p.order = order, p.shift = int32_t(8 * pass);
    p.totals = totals + pass * lines * kDigits;
    p.before = before + pass * tasks * kDigits;
    p.tickets = totals + counted + told + pass;
    launch_blocks<&radix_kernel<T>>(call, tasks, kBlock, p);
  }
}

}  // namespace adjoin::gpu
#endif

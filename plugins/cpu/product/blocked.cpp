// plugins/cpu/product/blocked.cpp: the loops around the tiles: which block is packed when.
#include "blocked.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace adjoin::cpu {
namespace {

// Bytes of packed blocks: in L3, in L2, and of B that is looped over inside.
constexpr int64_t kBytesOfB = 4 << 20, kBytesOfA = 512 << 10, kNearB = 320 << 10;
constexpr int64_t kShortBlock = 512, kLongBlock = 4096;  // most of k at a time
constexpr int64_t kMostSums = 4096;                      // rows of C that wait for the rest of k
constexpr int64_t kRowsAtOnce = 8;                       // packed together: pages and lines
constexpr int64_t kStride = 16;  // elements between packed rows, against equal cache sets
constexpr int kMostRows = 14, kMostColumns = 64;

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }
const char* at(const void* base, int64_t elements, int bytes) {
  return static_cast<const char*>(base) + elements * bytes;
}

// Of float32 (4 bytes) or float64: every sign is turned.
template <class Bits>
void negate(void* x, int64_t n) {
  constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  for (auto* p = static_cast<Bits*>(x); n-- > 0; ++p) *p ^= sign;
}
void negate(void* x, int64_t n, int bytes) {
  bytes == 4 ? negate<uint32_t>(x, n) : negate<uint64_t>(x, n);
}

// A panel of B as the tiles read it.
struct Panel {
  const void* data;
  int64_t step;  // elements between steps
};

class Blocked {
 public:
  Blocked(const Product& p, const Tiles& t) : p_(p), t_(t) {
    // Wide tiles load least for what they multiply; they want enough registers.
    bool wide = p.n > 2 * t.lanes && t.rows[2] > 2;
    size_ = wide ? 2 : p.n > t.lanes;
    width_ = t.lanes << size_;
    high_ = t.rows[size_];
    bool same = t.stored == t.packed && t.pair == 1;
    alpha_ = p.alpha;
    direct_c_ =
        !(p.bias && p.swapped) && t.stored == t.sum && p.cs == 1 && (p.beta == 0 || p.beta == 1);
    // C -= A B: the smaller of A and B is packed with the other sign, which is exact; not a B that
    // others read.
    if (direct_c_ && p.alpha == -1 && same && !p.bias)
      alpha_ = 1, negative_a_ = p.m <= p.n || p.packed.block, negative_b_ = !negative_a_;
    direct_c_ = direct_c_ && alpha_ == 1;
    stores_ = t.stores && p.cs == 1 && p.alpha == 1 && p.beta == 0 && !(p.bias && p.swapped) &&
              p.k <= kLongBlock;
    int64_t most = direct_c_ ? kShortBlock : kLongBlock;
    int64_t blocks = (p.k + most - 1) / most;
    kc_ = blocks == 1 ? p.k : round_up((p.k + blocks - 1) / blocks, 8);
    // Rows of B that follow each other lie as packed ones would.
    direct_b_ = same && !p.turned_b && !negative_b_ &&
                (p.m <= 2 * high_ || (kc_ <= 64 && p.m <= 8 * high_) || p.ldb == width_);
    if (p.packed.block) {
      kc_ = p.packed.block;
      if (p.packed.late_bias) direct_c_ = stores_ = false;
      if (p.packed.data) direct_b_ = false;
    }
    bool whole = t.pair == 1 || p.k % 2 == 0;
    bool reads_a = p.turned_a ? same : t.stored == t.packed && whole;
    direct_a_ = reads_a && !negative_a_ && (p.n <= 2 * width_ || p.m * p.k <= 1 << 14);
    nc_ = std::max(width_, kBytesOfB / (kc_ * t.packed) / width_ * width_);
    if (kc_ < p.k && !direct_c_) nc_ = std::min(nc_, 8 * width_);
    mc_ = std::max<int64_t>(high_, kBytesOfA / (kc_ * t.packed) / high_ * high_);
  }

  int64_t block() const { return kc_; }
  bool reads_b() const { return direct_b_; }
  int64_t width() const { return width_; }
  void pack_whole(char* to, int64_t columns) {
    for (int64_t q = 0; q < p_.k; q += kc_) {
      int64_t k = std::min(kc_, p_.k - q);
      steps_ = (k + t_.pair - 1) / t_.pair;
      packed_b_ = to + q * columns * t_.packed;
      pack_b(0, p_.n, q, k);
    }
  }

  void run() {
    for (int64_t j = 0; j < p_.n; j += nc_) {
      int64_t columns = std::min(nc_, p_.n - j);
      if (!direct_c_ && kc_ < p_.k)
        sum_ = scratch(2, size_t(p_.m * round_up(columns, width_) * t_.sum));
      for (int64_t q = 0; q < p_.k; q += kc_) block_of_b(j, columns, q, std::min(kc_, p_.k - q));
      if (sum_) finish(0, j, p_.m, columns, sum_, round_up(columns, width_), p_.beta);
    }
  }

 private:
  void block_of_b(int64_t j, int64_t columns, int64_t q, int64_t k) {
    steps_ = (k + t_.pair - 1) / t_.pair;
    first_ = q == 0;
    packed_b_ = nullptr;
    const PackedB& whole = p_.packed;
    // Even if B is read where it lies, its last columns may be no whole vectors.
    int64_t from = direct_b_ ? columns / width_ * width_ : 0;
    if (whole.data) {
      const char* base = at(whole.data, q * whole.columns, t_.packed);
      packed_b_ = const_cast<char*>(at(base, (whole.from + j) * steps_ * t_.pair, t_.packed));
    } else if (from < columns) {
      packed_b_ = static_cast<char*>(
          scratch(0, size_t(steps_ * t_.pair * round_up(columns - from, width_) * t_.packed)));
      pack_b(j + from, columns - from, q, k);
      if (negative_b_)
        negate(packed_b_, steps_ * t_.pair * round_up(columns - from, width_), t_.packed);
    }
    prepare_start(j, columns);
    bool b_inside = columns * k * t_.packed <= kNearB;
    for (int64_t i = 0; i < p_.m; i += mc_) {
      int64_t rows = std::min(mc_, p_.m - i);
      place_a(i, rows, q, k);
      // What is looped over inside stays in a near cache: rows of C one after another if all of B
      // does.
      for (int64_t r = 0; r < rows;) {
        int64_t some = b_inside ? rows_of(r, rows) : rows;
        for (int64_t at_j = 0; at_j < columns; at_j += width_) {
          Panel panel = at_j < from ? Panel{at(p_.b, q * p_.ldb + j + at_j, t_.stored), p_.ldb}
                                    : packed_panel(at_j - from, columns - from);
          panel_of_c(i, r, r + some, rows, j, at_j, columns, panel);
        }
        r += some;
      }
    }
  }

  int64_t panel_width(int64_t left) const {
    return left > 2 * t_.lanes ? width_ : left > t_.lanes ? 2 * t_.lanes : t_.lanes;
  }
  Panel packed_panel(int64_t from, int64_t columns) const {
    return {packed_b_ + from * steps_ * t_.pair * t_.packed, panel_width(columns - from) * t_.pair};
  }

  void pack_b(int64_t j, int64_t columns, int64_t q, int64_t k) {
    int64_t rows = p_.turned_b ? k : kRowsAtOnce;
    for (int64_t r = 0; r < k; r += rows)
      for (int64_t s = 0; s < columns; s += width_) {
        int64_t wide = panel_width(columns - s), count = std::min(width_, columns - s);
        char* out = packed_b_ + (s * steps_ * t_.pair + r * wide) * t_.packed;
        if (p_.turned_b)
          t_.across(at(p_.b, (j + s) * p_.ldb + q, t_.stored), p_.ldb, count, wide, k, out);
        else
          t_.along(at(p_.b, (q + r) * p_.ldb + j + s, t_.stored), p_.ldb, count, wide,
                   std::min(rows, k - r), out);
      }
  }

  // Panels of A's rows, about equally many in each.
  int64_t rows_of(int64_t i, int64_t rows) const {
    int64_t panels = (rows - i + high_ - 1) / high_;
    return (rows - i + panels - 1) / panels;
  }

  void place_a(int64_t i, int64_t rows, int64_t q, int64_t k) {
    if (direct_a_) {
      a_ = at(p_.a, p_.turned_a ? q * p_.lda + i : i * p_.lda + q, t_.stored);
      row_step_ = p_.turned_a ? 1 : p_.lda, k_step_ = p_.turned_a ? p_.lda : t_.pair;
      return;
    }
    int64_t whole = steps_ * t_.pair;
    row_step_ = round_up(whole, 2 * kStride) + kStride;
    char* out = static_cast<char*>(scratch(1, size_t(rows * row_step_ * t_.packed)));
    a_ = out;
    if (!p_.turned_a) {
      k_step_ = t_.pair;
      t_.rows_of(at(p_.a, i * p_.lda + q, t_.stored), p_.lda, rows, k, out, row_step_);
      for (int64_t r = 0; negative_a_ && r < rows; ++r)
        negate(out + r * row_step_ * t_.packed, k, t_.packed);
      return;
    }
    row_step_ = whole;  // a panel is [step][rows of the panel][pair]
    for (int64_t r = 0; r < rows;) {
      int64_t some = rows_of(r, rows);
      t_.along(at(p_.a, q * p_.lda + i + r, t_.stored), p_.lda, some, some, k,
               out + r * whole * t_.packed);
      if (negative_a_) negate(out + r * whole * t_.packed, some * whole, t_.packed);
      r += some;
    }
  }

  // Rows [r, end) of the `rows` from i on, and one panel of columns.
  void panel_of_c(int64_t i, int64_t r, int64_t end, int64_t rows, int64_t j, int64_t at_j,
                  int64_t columns, const Panel& b) {
    int64_t count = std::min(width_, columns - at_j), wide = panel_width(count);
    int which = wide == t_.lanes ? 0 : wide == 2 * t_.lanes ? 1 : 2;
    const TileFn* tiles = p_.turned_a ? t_.panel_tiles[which] : t_.row_tiles[which];
    const void* start = start_ && first_ ? at(start_, at_j, t_.sum) : nullptr;
    alignas(64) char sums[kMostRows * kMostColumns * sizeof(float)];
    while (r < end) {
      int64_t some = rows_of(r, rows);
      const void* a = at(a_, r * row_step_, t_.packed);
      int64_t k_step = p_.turned_a && !direct_a_ ? some * t_.pair : k_step_;
      TileFn tile = tiles[some - 1];
      int64_t i_c = i + r, j_c = j + at_j;
      if (direct_c_ && count == wide) {
        char* c = static_cast<char*>(p_.c) + (i_c * p_.rs + j_c) * t_.stored;
        tile(steps_, a, row_step_, k_step, b.data, b.step, c, p_.rs,
             !first_ || p_.beta == 1 ? Into::add : Into::write, start);
      } else if (stores_ && count == wide) {
        char* c = static_cast<char*>(p_.c) + (i_c * p_.rs + j_c) * t_.stored;
        tile(steps_, a, row_step_, k_step, b.data, b.step, c, p_.rs, Into::stored, start);
      } else if (sum_) {
        int64_t ld = round_up(columns, width_);
        char* c = static_cast<char*>(sum_) + (i_c * ld + at_j) * t_.sum;
        tile(steps_, a, row_step_, k_step, b.data, b.step, c, ld, first_ ? Into::write : Into::add,
             start);
      } else {
        tile(steps_, a, row_step_, k_step, b.data, b.step, sums, wide, Into::write, start);
        finish(i_c, j_c, some, count, sums, wide, first_ ? p_.beta : 1);
      }
      r += some;
    }
  }

  void finish(int64_t i, int64_t j, int64_t rows, int64_t columns, const void* from, int64_t ld,
              double beta) {
    Finish f = {from, ld, rows, columns, nullptr, p_.rs, p_.cs, alpha_, beta, nullptr, true};
    f.to = static_cast<char*>(p_.c) + (i * p_.rs + j * p_.cs) * t_.stored;
    if (p_.bias && p_.swapped) f.bias = at(p_.bias, i, t_.stored);
    if (p_.bias && p_.packed.late_bias) f.bias = at(p_.bias, j, t_.stored), f.bias_by_row = false;
    t_.finish(f);
  }

  // What the sums begin with, in the type of the sums and filled up to whole panels.
  void prepare_start(int64_t j, int64_t columns) {
    start_ = nullptr;
    if (!p_.bias || p_.swapped || p_.packed.late_bias || !first_) return;
    int64_t wide = round_up(columns, width_);
    start_ = scratch(3, size_t(wide * t_.sum));
    std::memset(start_, 0, size_t(wide * t_.sum));
    t_.widen(at(p_.bias, j, t_.stored), columns, start_);
  }

  const Product& p_;
  const Tiles& t_;
  double alpha_;  // what is left of it
  bool negative_a_ = false, negative_b_ = false;
  int size_;  // of the tiles: 0, 1, 2 for 1, 2, 4 vectors
  int64_t high_, width_, kc_, nc_, mc_, steps_ = 0;
  bool direct_a_, direct_b_, direct_c_;  // read or written where they lie
  bool stores_, first_ = true;           // tiles write C as stored; the first block of k
  char* packed_b_ = nullptr;
  const void* a_ = nullptr;
  int64_t row_step_ = 0, k_step_ = 0;
  void *sum_ = nullptr, *start_ = nullptr;
};

}  // namespace

void* scratch(int which, size_t bytes) {
  struct Block {
    void* data = nullptr;
    size_t size = 0;
    ~Block() { std::free(data); }
  };
  thread_local Block blocks[4];
  Block& b = blocks[which];
  if (bytes > b.size) {
    constexpr size_t kHuge = 2 << 20;
    size_t align = bytes >= kHuge ? kHuge : 4096, padded = (bytes + align - 1) / align * align;
    std::free(b.data);
    b.size = 0;
    b.data = std::aligned_alloc(align, padded);
    if (!b.data) throw std::bad_alloc();
    if (align == kHuge) madvise(b.data, padded, MADV_HUGEPAGE);
    b.size = padded;
  }
  return b.data;
}

namespace {
Product exchanged(const Product& p) {
  Product q = p;
  q.m = p.n, q.n = p.m;
  q.a = p.b, q.lda = p.ldb, q.turned_a = !p.turned_b;
  q.b = p.a, q.ldb = p.lda, q.turned_b = !p.turned_a;
  q.rs = p.cs, q.cs = p.rs;
  q.swapped = !p.swapped;
  return q;
}
}  // namespace

Product best_way(const Product& p, const Tiles& t) {
  Product turned = exchanged(p);
  Product same = p;
  turned.few = p.n < p.m && is_few(turned, t);
  same.few = p.m <= p.n && is_few(p, t);
  if (turned.few || same.few) return turned.few ? turned : same;
  // B's vectors are packed, of A rows are only copied: so the smaller one becomes B where turning
  // it costs most. The price is that C is turned too.
  if (p.turned_b && p.m < 96 && p.n >= 2 * p.m && p.n * p.k > p.m * p.k + 2 * p.m * p.n)
    return turned;
  return p.n < t.lanes && p.m >= 4 * p.n && p.turned_a ? turned : p;
}

Product part(const Product& p, const Tiles& t, int64_t i, int64_t j, int64_t m, int64_t n) {
  Product q = p;
  q.m = m, q.n = n;
  q.a = at(p.a, p.turned_a ? i : i * p.lda, t.stored);
  q.b = at(p.b, p.turned_b ? j * p.ldb : j, t.stored);
  q.c = static_cast<char*>(p.c) + (i * p.rs + j * p.cs) * t.stored;
  if (p.bias) q.bias = at(p.bias, p.swapped ? i : j, t.stored);
  q.packed.from += j;
  return q;
}

PackedB whole_packed(const Product& p, const Tiles& t) {
  constexpr int64_t kLeastColumns = 64, kLeast = 1 << 14, kMostRows = 1024;
  if (p.n < kLeastColumns || p.n * p.k < kLeast || p.m > kMostRows || p.cs != 1) return {};
  Product best = best_way(p, t);
  if (best.few) return {};
  Blocked one(p, t);
  PackedB b = {nullptr, one.block(), 0, 0, best.swapped};
  // The exchanged product sums all of k at a time.
  if (best.swapped) b.block = p.k;
  if (one.reads_b() || (best.swapped && (p.k > kLongBlock || Blocked(best, t).block() < p.k)))
    return {};
  b.columns = round_up(p.n, one.width());
  return b;
}

size_t packed_bytes(const Product& p, const Tiles& t, const PackedB& b) {
  return size_t(round_up(p.k, t.pair) * b.columns * t.packed);
}

void pack_whole(const Product& p, const Tiles& t, const PackedB& b, void* to) {
  Product q = p;
  q.packed = b;
  Blocked(q, t).pack_whole(static_cast<char*>(to), b.columns);
}

void blocked(const Product& p, const Tiles& t) {
  if (p.few) return few(p, t);
  if (p.k <= kLongBlock || p.m <= kMostSums) return Blocked(p, t).run();
  for (int64_t i = 0; i < p.m; i += kMostSums)  // sums between blocks of k take memory
    Blocked(part(p, t, i, 0, std::min(kMostSums, p.m - i), p.n), t).run();
}

}  // namespace adjoin::cpu

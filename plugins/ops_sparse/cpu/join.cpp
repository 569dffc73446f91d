// plugins/ops_sparse/cpu/join.cpp: elements in order, each place once; sums of two matrices of
// rows; where rows begin.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/memory.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <bit>
#include <vector>

#include "vector/sort_keys.hpp"

namespace adjoin::ops {
aj_status* coo_join_body(void*, aj_call* call);
aj_status* csr_add_body(void*, aj_call* call);
aj_status* row_dots_body(void*, aj_call* call);
}  // namespace adjoin::ops

namespace adjoin::cpu {
namespace {
using namespace kit;  // NOLINT: kernels are made of it
using ops::empty_dense;
using ops::Sizes;

constexpr DLDevice kHost{kDLCPU, 0};

void give(aj_call* call, uint32_t i, Tensor t) {
  call->rets[i] = aj_value{AJ_TENSOR, 0, {0}};
  call->rets[i].v.tensor = t.take();
}

// Places as numbers, each with the element's in its lower bits: they are sorted as words.
struct Words {
  Room<uint64_t> a, b;
  uint64_t* sorted = nullptr;
  unsigned low = 0;
  bool rises = true;  // already, strictly
};

void fill_words(Words& w, const int64_t* indices, Span size, int64_t n) {
  uint64_t* words = w.a.get();
  const int64_t sd = int64_t(size.size());
  uint64_t before = 0;
  bool rises = true;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t key = sd ? uint64_t(indices[i]) : 0;
    for (int64_t d = 1; d < sd; ++d)
      key = key * uint64_t(size[size_t(d)]) + uint64_t(indices[d * n + i]);
    rises &= i == 0 || before < key;
    before = key;
    words[i] = key << w.low | uint64_t(i);
  }
  w.rises = rises;
}

// Sorts by the uppermost bits first, so that the rest of each bucket is sorted in the cache.
uint64_t* in_order(Words& w, int64_t n, unsigned bits) {
  constexpr int kMost = 11;            // bits of the first pass
  constexpr int kBucket = 9;           // about so many bits has the count of a bucket
  constexpr int64_t kWhole = 1 << 12;  // as few are in the cache as they are
  const int64_t parts = n > (1 << 16) ? 8 : 1;
  const unsigned high = w.low + bits,
                 top = unsigned(std::clamp(int(std::bit_width(uint64_t(n))) - kBucket, 1, kMost));
  if (n < kWhole || bits < top + 8) return sort_words(w.a.get(), w.b.get(), n, parts, w.low, high);
  const unsigned cut = high - top;
  uint64_t* from = radix_sort<kMost>(w.a.get(), w.b.get(), n, parts, cut, high);
  uint64_t* room = from == w.a.get() ? w.b.get() : w.a.get();
  const int64_t buckets = int64_t(1) << top;
  parallel_for(buckets, grain_of(n / buckets * 16), [&](int64_t lo, int64_t hi) {
    auto begin = [&](int64_t bucket) {
      auto below = [&](uint64_t word, int64_t b) { return int64_t(word >> cut) < b; };
      return std::lower_bound(from, from + n, bucket, below) - from;
    };
    for (int64_t b = lo, at = begin(lo), end; b < hi; ++b, at = end) {
      end = at;
      while (end < n && int64_t(from[end] >> cut) == b) ++end;
      if (end - at < 2) continue;
      const uint64_t* made = radix_sort_short(from + at, room + at, end - at, w.low, cut);
      if (made != from + at) std::copy_n(made, end - at, from + at);
    }
  });
  return from;
}

// Rows and columns of groups of a matrix, read from their places.
void write_rows(const uint64_t* words, const int64_t* begins, int64_t groups, unsigned low,
                uint64_t width, int64_t* rows, int64_t* columns) {
  parallel_for(groups, grain_of(4), [&](int64_t lo, int64_t hi) {
    uint64_t row = 0, first = 0;  // the row's place
    for (int64_t g = lo; g < hi; ++g) {
      const uint64_t place = words[begins[g]] >> low;
      if (place - first >= width) row = place / width, first = row * width;
      rows[g] = int64_t(row), columns[g] = int64_t(place - first);
    }
  });
}

// Sums of the values of each group, as rows of `width` elements.
template <class T>
void add_groups(const uint64_t* words, const int64_t* begins, int64_t groups, uint64_t mask,
                const T* values, int64_t width, T* out) {
  parallel_for(groups, grain_of(width * 4), [&](int64_t lo, int64_t hi) {
    for (int64_t g = lo; g < hi; ++g) {
      T* to = out + g * width;
      for (int64_t k = begins[g]; k < begins[g + 1]; ++k) {
        const T* from = values + int64_t(words[k] & mask) * width;
        if (k == begins[g])
          std::copy_n(from, width, to);
        else
          for (int64_t j = 0; j < width; ++j) to[j] = T(to[j] + from[j]);
      }
    }
  });
}

aj_status* coo_join(void* self, aj_call* call) {
  const DLTensor& values = call->args[1].v.tensor->dl;
  const aj_value& given = call->args[2];
  const Span size(given.v.ints, given.aux);
  uint64_t places = 1;
  for (int64_t s : size) places *= uint64_t(s);  // the core has seen that it fits
  const int64_t n = values.shape[0];
  const unsigned low = unsigned(std::bit_width(uint64_t(std::max<int64_t>(n, 1)))),
                 bits = unsigned(std::bit_width(places));
  const bool known = values.dtype.code == kDLFloat
                         ? values.dtype.bits >= 32
                         : (values.dtype.code == kDLInt || values.dtype.code == kDLComplex) &&
                               values.dtype.bits >= 32 && values.dtype.bits <= 128;
  if (!known || low + bits > 64 || n == 0) return ops::coo_join_body(self, call);
  return guard(call, [&] {
    const Tensor &at = Tensor::view(call->args[0].v.tensor),
                 &v = Tensor::view(call->args[1].v.tensor);
    Dense<int64_t> indices{TensorView(at.get())};
    Words w{Room<uint64_t>(n), Room<uint64_t>(n), nullptr, low, true};
    fill_words(w, indices.data(), size, n);
    if (w.rises) {  // nothing is to be added
      give(call, 0, at), give(call, 1, v);
      return;
    }
    w.sorted = in_order(w, n, bits);
    Room<int64_t> begins(n + 1);
    int64_t groups = 0;
    const uint64_t* words = w.sorted;
    for (int64_t i = 0; i < n; ++i) {
      begins.get()[groups] = i;
      groups += i == 0 || (words[i] >> low) != (words[i - 1] >> low);
    }
    begins.get()[groups] = n;
    const int64_t sd = int64_t(size.size());
    const uint64_t mask = (uint64_t(1) << low) - 1;
    Tensor out = empty_dense({sd, groups}, int64, kHost);
    int64_t* to = out.data<int64_t>();
    const int64_t* from = indices.data();
    if (sd == 2)
      write_rows(words, begins.get(), groups, low, uint64_t(size[1]), to, to + groups);
    else
      parallel_for(groups, grain_of(sd * 4), [&](int64_t lo, int64_t hi) {
        for (int64_t g = lo; g < hi; ++g) {
          const int64_t i = int64_t(words[begins.get()[g]] & mask);
          for (int64_t d = 0; d < sd; ++d) to[d * groups + g] = from[d * n + i];
        }
      });
    Sizes shape(v.shape());
    shape[0] = groups;
    Tensor sums = empty_dense(shape, v.dtype(), kHost);
    const int64_t width = v.numel() / n;
    visit<Types<float, double, int32_t, int64_t, Complex64, Complex128>>(v.dtype(), [&]<class T>() {
      Dense<T> rows{TensorView(v.get())};
      add_groups(words, begins.get(), groups, mask, rows.data(), width,
                 static_cast<T*>(sums.data_ptr()));
    });
    give(call, 0, out), give(call, 1, sums);
  });
}

aj_status* row_begins(void*, aj_call* call) {
  return guard(call, [&] {
    Dense<int64_t> rows{TensorView(call->args[0].v.tensor)};
    const int64_t n = call->args[1].v.i, count = Tensor::view(call->args[0].v.tensor).numel();
    Tensor out = empty_dense({n + 1}, int64, kHost);
    int64_t* to = out.data<int64_t>();
    int64_t row = 0;
    for (int64_t i = 0; i < count; ++i)
      for (const int64_t last = std::min(rows[i], n); row <= last; ++row) to[row] = i;
    for (; row <= n; ++row) to[row] = count;
    give(call, 0, out);
  });
}

// A row of each of two matrices, whose columns rise; which of them is next is no branch, as the
// processor could not guess it.
template <class I>
struct Row {
  const I *a, *a_end, *b, *b_end;
  bool open() const { return a < a_end && b < b_end; }
  int64_t shared() const {
    int64_t both = 0;
    for (Row left = *this; left.open();) {
      const I x = *left.a, y = *left.b;
      both += x == y;
      left.a += x <= y, left.b += y <= x;
    }
    return both;
  }
};

// How many columns two rows share, by a bit for each column: no step waits for the one before, so
// it takes a third of the time of going through both in order. A row whose columns do not rise, or
// that reaches beyond the bits, is counted in order, as it is written.
template <class I>
class Marks {
 public:
  static constexpr int64_t kMost = 1 << 15;  // words, of the second-level cache

  explicit Marks(int64_t words) : words_(size_t(words)), mask_(words - 1) {}

  int64_t shared(const Row<I>& row) {
    int64_t both = 0;
    const bool first =
        each(row.a, row.a_end, [](uint64_t& word, int bit) { word |= uint64_t(1) << bit; });
    const bool second =
        each(row.b, row.b_end, [&](uint64_t& word, int bit) { both += int64_t(word >> bit & 1); });
    for (const I* c = row.a; c < row.a_end; ++c) at(*c) = 0;
    return first && second ? both : row.shared();
  }

 private:
  uint64_t& at(I column) { return words_[size_t(column >> 6 & mask_)]; }
  // Do the columns rise, from 0 on, to the end of the bits at most?
  template <class F>
  bool each(const I* c, const I* end, F&& f) {
    I last = -1;
    bool rise = true;
    for (; c < end; ++c) {
      rise &= *c > last;
      last = *c;
      f(at(last), int(last & 63));
    }
    return rise && int64_t(last) >> 6 <= mask_;
  }

  std::vector<uint64_t> words_;
  int64_t mask_;  // words_.size() - 1; that is a power of two
};
template <class T, class I>
struct Written : Row<I> {
  const T *u, *v;  // their values
  I* columns;
  T* values;
  void write() {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const I x = *this->a, y = *this->b;
    const bool first = x <= y, second = y <= x;
    const Bits p = std::bit_cast<Bits>(*u), q = std::bit_cast<Bits>(*v),
               sum = std::bit_cast<Bits>(T(*u + *v)), keep = -Bits(first), also = -Bits(second);
    *columns++ = first ? x : y;
    *values++ = std::bit_cast<T>((keep & also & sum) | (keep & ~also & p) | (~keep & q));
    this->a += first, u += first;
    this->b += second, v += second;
  }
  void finish() {
    while (this->open()) write();
    for (; this->a < this->a_end; ++this->a) *columns++ = *this->a, *values++ = *u++;
    for (; this->b < this->b_end; ++this->b) *columns++ = *this->b, *values++ = *v++;
  }
};

// Two matrices of rows.
template <class T, class I>
struct Sum {
  const I *a_begins, *a_columns, *b_begins, *b_columns;
  const T *a, *b;
  Row<I> row(int64_t r) const {
    return {a_columns + a_begins[r], a_columns + a_begins[r + 1], b_columns + b_begins[r],
            b_columns + b_begins[r + 1]};
  }
  // Words that have a bit for each column, a power of two; rows beyond kMost need none.
  int64_t words(int64_t rows) const {
    uint64_t most = 0;
    for (int64_t r = 0; r < rows; ++r) {
      if (a_begins[r] < a_begins[r + 1])
        most = std::max(most, uint64_t(a_columns[a_begins[r + 1] - 1]));
      if (b_begins[r] < b_begins[r + 1])
        most = std::max(most, uint64_t(b_columns[b_begins[r + 1] - 1]));
    }
    return int64_t(std::bit_ceil(std::min<uint64_t>(most / 64 + 1, 2 * Marks<I>::kMost)));
  }
  int64_t all(int64_t r) const {
    return a_begins[r + 1] - a_begins[r] + b_begins[r + 1] - b_begins[r];
  }
  Written<T, I> written(int64_t r, int64_t at, I* columns, T* values) const {
    return {row(r), a + a_begins[r], b + b_begins[r], columns + at, values + at};
  }
  // Two rows in turn: each waits for its own last step alone.
  void write(int64_t lo, int64_t hi, const I* begins, I* columns, T* values) const {
    for (int64_t r = lo; r < hi; r += 2) {
      Written<T, I> x = written(r, begins[r], columns, values);
      if (r + 1 == hi) return x.finish();
      Written<T, I> y = written(r + 1, begins[r + 1], columns, values);
      while (x.open() && y.open()) x.write(), y.write();
      x.finish(), y.finish();
    }
  }
};

template <class T, class I>
void add_rows(aj_call* call) {
  auto view = [&](uint32_t i) { return TensorView(call->args[i].v.tensor); };
  Dense<I> ab(view(0)), ac(view(1)), bb(view(3)), bc(view(4));
  Dense<T> av(view(2)), bv(view(5));
  const Sum<T, I> s{ab.data(), ac.data(), bb.data(), bc.data(), av.data(), bv.data()};
  const int64_t n = view(0).numel() - 1,
                each = (view(1).numel() + view(4).numel()) / std::max<int64_t>(n, 1) + 1;
  const DLDataType index = view(0).dtype();
  Tensor begins = empty_dense({n + 1}, index, kHost);
  I* at = begins.data<I>();
  const int64_t words = s.words(n);
  const bool marked = words <= Marks<I>::kMost && words <= view(1).numel() + view(4).numel();
  parallel_for(n, grain_of(each * 4), [&](int64_t lo, int64_t hi) {
    Marks<I> marks(marked ? words : 1);
    for (int64_t r = lo; r < hi; ++r)
      at[r + 1] = I(s.all(r) - (marked ? marks.shared(s.row(r)) : s.row(r).shared()));
  });
  at[0] = 0;
  for (int64_t row = 0; row < n; ++row) at[row + 1] = I(at[row + 1] + at[row]);
  Tensor columns = empty_dense({int64_t(at[n])}, index, kHost),
         values = empty_dense({int64_t(at[n])}, view(2).dtype(), kHost);
  I* c = columns.data<I>();
  T* v = static_cast<T*>(values.data_ptr());
  parallel_for(n, grain_of(each * 4), [&](int64_t lo, int64_t hi) { s.write(lo, hi, at, c, v); });
  give(call, 0, begins), give(call, 1, columns), give(call, 2, values);
}

bool plain_rows(const aj_call* call, uint32_t begins, uint32_t columns) {
  const DLTensor &b = call->args[begins].v.tensor->dl, &c = call->args[columns].v.tensor->dl;
  return b.dtype.code == kDLInt && c.dtype.code == kDLInt && b.dtype.bits == c.dtype.bits &&
         b.dtype.bits >= 32;
}

aj_status* csr_add(void* self, aj_call* call) {
  const DLTensor &a = call->args[2].v.tensor->dl, &b = call->args[5].v.tensor->dl;
  const bool known = a.dtype.code == kDLFloat && a.dtype.bits >= 32 &&
                     a.dtype.bits == b.dtype.bits && b.dtype.code == kDLFloat && a.ndim == 1 &&
                     plain_rows(call, 0, 1) && plain_rows(call, 3, 4) &&
                     call->args[0].v.tensor->dl.dtype.bits == call->args[3].v.tensor->dl.dtype.bits;
  if (!known) return ops::csr_add_body(self, call);
  return guard(call, [&] {
    const bool narrow = call->args[0].v.tensor->dl.dtype.bits == 32;
    visit<floating>(a.dtype, [&]<class T>() {
      narrow ? add_rows<T, int32_t>(call) : add_rows<T, int64_t>(call);
    });
  });
}

template <class T, class I>
void dots(aj_call* call) {
  auto view = [&](uint32_t i) { return TensorView(call->args[i].v.tensor); };
  Dense<I> begins(view(0)), columns(view(1));
  Dense<T> a(view(2)), b(view(3));
  const int64_t n = view(0).numel() - 1, k = view(2).size(1), count = view(1).numel();
  Tensor out = empty_dense({count}, view(2).dtype(), kHost);
  T* to = static_cast<T*>(out.data_ptr());
  parallel_for(n, grain_of((count / std::max<int64_t>(n, 1) + 1) * (k + 1)),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t row = lo; row < hi; ++row)
                   for (int64_t e = begins[row]; e < begins[row + 1]; ++e) {
                     const T *x = a.data() + row * k, *y = b.data() + int64_t(columns[e]) * k;
                     T lane[8] = {}, sum = 0;
                     int64_t j = 0;
                     for (; j + 8 <= k; j += 8)
                       for (int64_t l = 0; l < 8; ++l) lane[l] += x[j + l] * y[j + l];
                     for (; j < k; ++j) sum += x[j] * y[j];
                     for (T l : lane) sum += l;
                     to[e] = sum;
                   }
               });
  give(call, 0, out);
}

aj_status* row_dots(void* self, aj_call* call) {
  const DLTensor &a = call->args[2].v.tensor->dl, &b = call->args[3].v.tensor->dl;
  const bool known = a.dtype.code == kDLFloat && a.dtype.bits >= 32 && b.dtype.code == kDLFloat &&
                     a.dtype.bits == b.dtype.bits && plain_rows(call, 0, 1);
  if (!known) return ops::row_dots_body(self, call);
  return guard(call, [&] {
    const bool narrow = call->args[0].v.tensor->dl.dtype.bits == 32;
    visit<floating>(a.dtype,
                    [&]<class T>() { narrow ? dots<T, int32_t>(call) : dots<T, int64_t>(call); });
  });
}

}  // namespace

AJ_KERNELS(sparse_join_kernels) = {
    {"_::coo_join", {coo_join, 0, 0}},
    {"_::row_begins", {row_begins, 0, 0}},
    {"_::csr_add", {csr_add, 0, 0}},
    {"_::row_dots", {row_dots, 0, 0}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/cpu/image/constant_pad.cpp: tensors with a constant around them, each element of the
// result written once.
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// One dimension of the result: its elements [lo, hi) are the input's.
struct Dimension {
  int64_t size, before, after, from_step, to_step;

  int64_t lo() const { return std::max<int64_t>(before, 0); }
  int64_t hi() const { return std::max(lo(), size - std::max<int64_t>(after, 0)); }
};

// pad holds pairs, those of the last dimension first. Dimensions that nothing is put around are one
// with the dimension before them where both tensors allow it.
std::vector<Dimension> dimensions(TensorView x, TensorView out, Span pad) {
  std::vector<Dimension> dims;
  for (int64_t d = 0; d < out.ndim(); ++d) {
    const size_t i = 2 * size_t(out.ndim() - 1 - d);
    const bool padded = i < pad.size();
    const Dimension next{out.size(d), padded ? pad[i] : 0, padded ? pad[i + 1] : 0,
                         x.strides()[size_t(d)], out.strides()[size_t(d)]};
    Dimension* last = dims.empty() ? nullptr : &dims.back();
    if (last && next.before == 0 && next.after == 0 &&
        last->from_step == next.from_step * next.size && last->to_step == next.to_step * next.size)
      *last = {last->size * next.size, last->before * next.size, last->after * next.size,
               next.from_step, next.to_step};
    else
      dims.push_back(next);
  }
  while (dims.size() < 2) dims.insert(dims.begin(), {1, 0, 0, 0, 0});
  return dims;
}

// Rows are short: what fills them up has no loop of vectors to prepare.
template <class T>
inline void fill_short(T* to, int64_t n, T value) {
  if (n > 0) *to = value;
  if (n > 1) std::fill_n(to + 1, n - 1, value);
}

template <class T>
struct Padding {
  std::span<const Dimension> dims;  // two at least
  T value;

  // Elements [begin, end) of a dimension and all that is behind it; from: the input's, null outside
  // of it.
  void run(size_t d, const T* from, T* to, int64_t begin, int64_t end) const {
    if (d + 2 == dims.size()) return rows(from, to, begin, end);
    const Dimension& s = dims[d];
    for (int64_t o = begin; o < end; ++o)
      run(d + 1, inside(s, from, o), to + o * s.to_step, 0, dims[d + 1].size);
  }

 private:
  static const T* inside(const Dimension& s, const T* from, int64_t o) {
    return from && o >= s.lo() && o < s.hi() ? from + (o - s.before) * s.from_step : nullptr;
  }

  void rows(const T* from, T* to, int64_t begin, int64_t end) const {
    const Dimension &s = dims[dims.size() - 2], row = dims.back();
    const int64_t lo = row.lo(), hi = row.hi(), first = lo - row.before;
    const bool dense = row.from_step == 1 && row.to_step == 1;
    for (int64_t o = begin; o < end; ++o) {
      const T* x = hi > lo ? inside(s, from, o) : nullptr;
      T* y = to + o * s.to_step;
      if (dense && x) {
        fill_short(y, lo, value);
        std::memcpy(y + lo, x + first, size_t(hi - lo) * sizeof(T));
        fill_short(y + hi, row.size - hi, value);
        continue;
      }
      if (dense) {
        std::fill_n(y, row.size, value);
        continue;
      }
      for (int64_t i = 0; i < row.size; ++i)
        y[i * row.to_step] = x && i >= lo && i < hi ? x[(i - row.before) * row.from_step] : value;
    }
  }
};

// As where numbers fill tensors: unsigned integers may be given as negative ints.
void check_fits(const aj_value& v, DLDataType to) {
  const bool sign = to.code == kDLInt, whole = sign || to.code == kDLUInt;
  bool fits = v.tag != AJ_COMPLEX || to.code == kDLComplex || v.v.c128[1] == 0;
  if (whole && v.tag == AJ_INT && to.bits <= (sign ? 64 : 32)) {
    const int64_t high = int64_t(~uint64_t(0) >> (64 - to.bits + sign)), low = -high - sign;
    fits = v.v.i >= low && v.v.i <= high;
  }
  if (whole && v.tag == AJ_FLOAT) {
    const double f = std::trunc(v.v.f), bound = std::ldexp(1, to.bits - sign);
    fits = f >= (sign ? -bound : 0) && f < bound;
  }
  if (!fits)
    raise(AJ_INVALID_ARGUMENT, "the number does not fit into ", to,
          "; give one that does, or a tensor");
}

void constant_pad(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  check_fits(args[2], x.dtype());
  if (out.numel() == 0) return;
  const std::vector<Dimension> dims = dimensions(x, out, args.ints(1));
  alignas(16) char value[16];
  visit<stored>(x.dtype(), [&]<class T>() {
    const T number_given = number<T>(args[2]);
    std::memcpy(value, &number_given, sizeof(T));
  });
  visit_size(x.dtype(), [&]<class T>() {
    Padding<T> padding{dims, {}};
    std::memcpy(&padding.value, value, sizeof(T));
    parallel_for(dims[0].size, grain_of(out.numel() / dims[0].size), [&](int64_t lo, int64_t hi) {
      padding.run(0, x.data<T>(), out.data<T>(), lo, hi);
    });
  });
}

}  // namespace

AJ_KERNELS(constant_pad_kernels) = {
    {"constant_pad_nd", custom<constant_pad, stored>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

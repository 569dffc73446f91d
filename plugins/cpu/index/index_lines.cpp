// plugins/cpu/index/index_lines.cpp: where the lines of an index begin, and what they say.
#include "index_lines.hpp"

#include <adjoin/kit/indexing.hpp>

#include "vector/stream.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/index/index_lines.cpp"
#include "vector/simd.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
// check_indices() in vectors; what is told is told by that.
static uint64_t outside(const int64_t* index, int64_t n, uint64_t last) {
  uint64_t signs = 0;
  for (int64_t k = 0; k < n; ++k) signs |= uint64_t(index[k]) | (last - uint64_t(index[k]));
  return signs >> 63;
}
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
void check(const int64_t* index, int64_t n, int64_t size, int64_t dim) {
  if (AJ_SIMD(outside)(index, n, uint64_t(size) - 1)) check_indices(index, n, size, dim);
}

}  // namespace

IndexLines::IndexLines(TensorView index, int64_t dim, Span shape, Span strides, Span other_strides)
    : values_(index) {
  if (index.numel() == 0) return;  // it may have dimensions of its own then
  count_ = 1;
  const int64_t n = index.ndim();
  dim_ = n && dim < 0 ? dim + n : n ? dim : 0;
  const std::vector<int64_t> dense = dense_strides(index.shape());
  // Where one tensor has one dimension, another may have none: that is a line of one element.
  auto at = [](Span list, int64_t d, int64_t none) {
    return size_t(d) < list.size() ? list[size_t(d)] : none;
  };
  auto step = [&](int64_t d) {
    return Start{at(dense, d, 1), at(strides, d, 0), at(other_strides, d, 0)};
  };
  size_ = at(shape, dim_, 1), length_ = at(index.shape(), dim_, 1), step_ = step(dim_);
  for (int64_t d = 0; d < n; ++d)
    if (d != dim_) add(index.size(d), step(d));
  along_ = step_.own == 1;
  int64_t all = 1;
  for (int64_t s : shape) all *= s;
  whole_ = along_ && count_ * size_ == all && size_ <= kCached;
}

// Dimensions that lie in all three as one are one.
void IndexLines::add(int64_t size, Start step) {
  count_ *= size;
  if (size == 1) return;
  if (!dims_.empty()) {
    Dim& last = dims_.back();
    if (last.step.own == size * step.own && last.step.place == size * step.place &&
        last.step.other == size * step.other) {
      last.size *= size, last.step = step;
      return;
    }
  }
  dims_.push_back({size, step});
}

IndexLines::Cursor::Cursor(const std::vector<Dim>& dims, int64_t line) : dims_(dims) {
  for (size_t d = dims.size(); d-- > 0; line /= dims[d].size) {
    index_[d] = line % dims[d].size;
    move(dims[d].step, index_[d]);
  }
}

void IndexLines::Cursor::advance(int64_t lines) {
  for (size_t d = dims_.size(); d-- > 0; lines = 1) {
    const auto& [size, step] = dims_[d];
    move(step, lines);
    if ((index_[d] += lines) < size) return;
    move(step, -size);
    index_[d] = 0;
  }
}

IndexPart IndexLines::after_each_other(const Cursor& at, int64_t first, int64_t lines) {
  const int64_t* index = values_.data() + first * length_;
  check(index, lines * length_, size_, dim_);
  const Start begin = *at, line = at.step();
  return {index, lines,       length_,     length_,    begin.place, line.place,
          0,     step_.place, begin.other, line.other, step_.other, first};
}

IndexPart IndexLines::piece_of_line(const Cursor& at, int64_t first, int64_t n) {
  const Start begin = *at;
  const int64_t* index = values_.data() + begin.own + first;
  check(index, n, size_, dim_);
  return {index,
          1,
          n,
          0,
          begin.place,
          0,
          0,
          step_.place,
          begin.other + first * step_.other,
          0,
          step_.other,
          0,
          size_ > kCached};
}

IndexPart IndexLines::beside_each_other(const Cursor& at, int64_t m, int64_t row, int64_t rows) {
  const Start begin = *at, next = at.step();
  const int64_t* index = values_.data() + begin.own + row * step_.own;
  for (int64_t k = 0; k < rows; ++k) check(index + k * step_.own, m, size_, dim_);
  return {index,       rows,        m,
          step_.own,   begin.place, 0,
          next.place,  step_.place, begin.other + row * step_.other,
          step_.other, next.other,  0};
}

bool names_rows(TensorView index, Span beside, Span named, int64_t dim) {
  int64_t inner = 1;
  if (index.ndim() < 2 || !std::ranges::equal(index.shape(), beside)) return false;
  for (int64_t d = 0; d < index.ndim(); ++d) {
    if (d == dim) continue;
    const int64_t size = index.size(d);
    if (size != named[size_t(d)] || (size > 1 && index.stride(d) != 0)) return false;
    if (d > dim) inner *= size;
  }
  return inner >= 8;
}

std::vector<int64_t> named_rows(TensorView index, int64_t dim, int64_t size) {
  std::vector<int64_t> rows(size_t(index.size(dim)));
  for (size_t k = 0; k < rows.size(); ++k)
    rows[k] = index.data<int64_t>()[int64_t(k) * index.stride(dim)];
  check_indices(rows.data(), int64_t(rows.size()), size, dim);
  return rows;
}

void start_from(TensorView x, MutView out) {
  if (x.get() == out.get()) return;
  const int64_t size = bytes_of(x.dtype());
  if (x.dense() && out.dense())
    return parallel_for(x.numel(), 1 << 16, [&](int64_t lo, int64_t hi) {
      copy_neighbours(out.bytes() + lo * size, x.bytes() + lo * size, (hi - lo) * size);
    });
  const std::vector<int64_t> from = offsets_of(x.shape(), x.strides()),
                             to = offsets_of(out.shape(), out.strides());
  visit_size(x.dtype(), [&]<class T>() {
    for (size_t i = 0; i < from.size(); ++i) out.data<T>()[to[i]] = x.data<T>()[from[i]];
  });
}

}  // namespace adjoin::cpu
#endif

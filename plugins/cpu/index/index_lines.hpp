// plugins/cpu/index/index_lines.hpp: the lines of an index along a dimension, in parts small enough
// for the first-level cache, for what reads or writes the elements that it names.
#ifndef ADJOIN_PLUGINS_CPU_INDEX_INDEX_LINES_HPP
#define ADJOIN_PLUGINS_CPU_INDEX_INDEX_LINES_HPP
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <array>
#include <vector>

namespace adjoin::cpu {
using namespace kit;

// Element j of line i of a part names what lies at place + i * place_line + j * place_next +
// index[i * index_line + j] * place_step of a tensor; what is beside it in the tensor of values
// lies at other + i * other_line + j * other_next. All in elements.
struct IndexPart {
  const int64_t* index;
  int64_t lines, length, index_line;
  int64_t place, place_line, place_next, place_step;
  int64_t other, other_line, other_next;
  int64_t first;  // of the lines, counted through the whole index; not told of lines side by side
  bool far = false;  // one line, which names what lies beyond the caches
};

// f(place, other) for all of a part in the order of the lines; near(place) and beside(other) ask
// for the memory of what is to come: of a far line what is named later, else the next line's. All
// that the loops need is in registers, since a store might change a member. kUnrolled: what
// programs use most; else a sixth of the code.
template <bool kUnrolled, class F, class Near, class Beside>
[[gnu::always_inline]] inline void each_of(const IndexPart& part, F f, Near near, Beside beside) {
  const IndexPart p = part;
  const int64_t* index = p.index;
  int64_t place = p.place, other = p.other;
  if (p.length == 1) {  // nothing waits for what it reads
    for (int64_t i = 0; i < p.lines;
         ++i, index += p.index_line, place += p.place_line, other += p.other_line)
      f(place + *index * p.place_step, other);
    return;
  }
  for (int64_t i = 0; i < p.lines;
       ++i, index += p.index_line, place += p.place_line, other += p.other_line) {
    int64_t j = 0;
    if (p.place_step != 1 || p.place_next != 0 || p.other_next != 1) {
      for (; j < p.length; ++j)
        f(place + j * p.place_next + index[j] * p.place_step, other + j * p.other_next);
      continue;
    }
    if (p.far) {
      constexpr int64_t ahead = 32;
      if constexpr (kUnrolled) {
#pragma GCC unroll 4
        for (; j + ahead < p.length; ++j) {
          near(place + index[j + ahead]);
          f(place + index[j], other + j);
        }
      }
      for (; j + ahead < p.length; ++j) {
        near(place + index[j + ahead]);
        f(place + index[j], other + j);
      }
    }
    for (; j + 16 <= p.length; j += 16) {  // the work on one line hides the way of the next
      __builtin_prefetch(index + p.index_line + j);
      __builtin_prefetch(index + p.index_line + j + 8);
      near(place + p.place_line + j);
      beside(other + p.other_line + j);
      if constexpr (kUnrolled) {
#pragma GCC unroll 16
        for (int64_t k = j; k < j + 16; ++k) f(place + index[k], other + k);
      } else {
#pragma GCC unroll 1
        for (int64_t k = j; k < j + 16; ++k) f(place + index[k], other + k);
      }
    }
    for (; kUnrolled && j + 8 <= p.length; j += 8) {
#pragma GCC unroll 8
      for (int64_t k = j; k < j + 8; ++k) f(place + index[k], other + k);
    }
    for (; kUnrolled && j + 4 <= p.length; j += 4) {
#pragma GCC unroll 4
      for (int64_t k = j; k < j + 4; ++k) f(place + index[k], other + k);
    }
    for (; j < p.length; ++j) f(place + index[j], other + j);
  }
}

// What is done with a part: named elements, those beside them.
using PartWork = void (*)(void* named, void* other, const IndexPart&);

class IndexLines {
 public:
  // The index along dim, the shape and the strides of what it names, the strides of what lies
  // beside it (none: one value serves all).
  IndexLines(TensorView index, int64_t dim, Span shape, Span strides, Span other_strides);

  // f(part), where no index is outside. A line belongs to one thread. reads_lines: f walks all that
  // a part's lines name, not only what is named, so that a part is small.
  template <class F>
  void each(F f, bool reads_lines = true) {
    const int64_t longest = reads_lines ? std::max(length_, size_) : length_;
    // Lines side by side want to be so many that what is read of each row is worth its way.
    const int64_t beside = along_ || dims_.empty() ? 1 : dims_.back().size;
    parallel_for(count_, std::max(grain_of(length_), std::min<int64_t>(beside, 128)),
                 [&](int64_t lo, int64_t hi) {
                   Cursor at(dims_, lo);
                   for (int64_t m; lo < hi; lo += m, at.advance(m)) {
                     m = std::min(at.left(), hi - lo);
                     if (!along_) {
                       side_by_side(at, m, f);
                     } else if (!whole_ && length_ > kPiece) {
                       m = 1, in_pieces(at, f);
                     } else {
                       m = std::min(m, std::max<int64_t>(1, kTogether / longest));
                       f(after_each_other(at, lo, m));
                     }
                   }
                 });
  }

  // Is every line of a dense tensor of the shape named by one line of the index, in the same order,
  // and small enough to be worked on while it lies in the cache? Then parts have whole lines.
  bool whole() const { return whole_; }
  int64_t size() const { return size_; }

 private:
  static constexpr int64_t kTogether = 256;  // elements of a part of several lines
  static constexpr int64_t kPiece = 2048;    // of a part of a long line
  static constexpr int64_t kCached = 1 << 16;
  struct Start {
    int64_t own = 0, place = 0, other = 0;
  };
  struct Dim {
    int64_t size;
    Start step;
  };

  // Where a line begins: counted, not listed, since a list for short lines is as large as their
  // elements.
  class Cursor {
   public:
    Cursor(const std::vector<Dim>& dims, int64_t line);
    const Start& operator*() const { return at_; }
    // So many lines, this one among them, begin one step after each other.
    int64_t left() const {
      return dims_.empty() ? 1 : dims_.back().size - index_[dims_.size() - 1];
    }
    Start step() const { return dims_.empty() ? Start() : dims_.back().step; }
    void advance(int64_t lines);  // at most left()

   private:
    void move(const Start& step, int64_t by) {
      at_.own += step.own * by, at_.place += step.place * by, at_.other += step.other * by;
    }
    std::span<const Dim> dims_;
    Start at_;
    std::array<int64_t, 64> index_;
  };

  void add(int64_t size, Start step);
  IndexPart after_each_other(const Cursor& at, int64_t first, int64_t lines);
  // A line's indices are checked while the first-level cache holds them for what follows.
  template <class F>
  void in_pieces(const Cursor& at, F& f) {
    for (int64_t k = 0; k < length_; k += kPiece)
      f(piece_of_line(at, k, std::min(kPiece, length_ - k)));
  }
  IndexPart piece_of_line(const Cursor& at, int64_t first, int64_t n);
  // Rows of m neighbours.
  template <class F>
  void side_by_side(const Cursor& at, int64_t m, F& f) {
    const int64_t rows = std::max<int64_t>(1, kTogether / m);
    for (int64_t k = 0; k < length_; k += rows)
      f(beside_each_other(at, m, k, std::min(rows, length_ - k)));
  }
  IndexPart beside_each_other(const Cursor& at, int64_t m, int64_t row, int64_t rows);

  Dense<int64_t> values_;
  std::vector<Dim> dims_;  // all but dim, from the outermost to the innermost
  int64_t count_ = 0, size_ = 1, length_ = 1, dim_ = 0;
  Start step_{1, 0, 0};  // along dim
  bool along_ = true, whole_ = false;
};

// Does the index say the same for all elements of a row, as one expanded from a vector does? Its
// rows are those of what it names and of what lies beside it, and of some length.
bool names_rows(TensorView index, Span beside, Span named, int64_t dim);
// What it says of each row, none of them outside of `size`.
std::vector<int64_t> named_rows(TensorView index, int64_t dim, int64_t size);

// The output as its input is, unless it is its input.
void start_from(TensorView x, MutView out);

// The op of that name. Indices are checked part by part.
void scatter_add(TensorView x, int64_t dim, TensorView index, TensorView source, MutView out);

}  // namespace adjoin::cpu
#endif

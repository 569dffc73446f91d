// plugins/cpu/line_starts.hpp: where the lines of an index along a dimension begin: in itself, in
// the tensor that it names elements of, and in the one of values beside it. Counted, not listed: a
// list of the beginnings of short lines is as large as their elements.
#ifndef ADJOIN_PLUGINS_CPU_LINE_STARTS_HPP
#define ADJOIN_PLUGINS_CPU_LINE_STARTS_HPP
#include <adjoin/kit/view.hpp>
#include <array>
#include <vector>

namespace adjoin::cpu {

struct LineStart {
  int64_t own = 0, to = 0, other = 0;
};

class LineStarts {
  struct Dim {
    int64_t size;
    LineStart step;
  };

 public:
  // From the outermost dimension to the innermost; those that lie in all three as one are one.
  void add(int64_t size, LineStart step) {
    count_ *= size;
    if (size == 1) return;
    if (!dims_.empty()) {
      Dim& last = dims_.back();
      if (last.step.own == size * step.own && last.step.to == size * step.to &&
          last.step.other == size * step.other) {
        last.size *= size, last.step = step;
        return;
      }
    }
    dims_.push_back({size, step});
  }
  int64_t count() const { return count_; }

  // Walks from one line to the next.
  class Cursor {
   public:
    Cursor(const LineStarts& starts, int64_t line) : dims_(starts.dims_) {
      for (size_t d = dims_.size(); d-- > 0;) {
        const auto& [size, step] = dims_[d];
        index_[d] = line % size;
        line /= size;
        move(step, index_[d]);
      }
    }
    const LineStart& operator*() const { return at_; }
    void next() {
      for (size_t d = dims_.size(); d-- > 0;) {
        const auto& [size, step] = dims_[d];
        move(step, 1);
        if (++index_[d] < size) return;
        move(step, -size);
        index_[d] = 0;
      }
    }

   private:
    void move(const LineStart& step, int64_t by) {
      at_.own += step.own * by, at_.to += step.to * by, at_.other += step.other * by;
    }
    std::span<const Dim> dims_;
    LineStart at_;
    std::array<int64_t, 64> index_;
  };

 private:
  std::vector<Dim> dims_;
  int64_t count_ = 1;
};

}  // namespace adjoin::cpu
#endif

// plugins/gpu/merge.cuh: stable order of lines by a merge in steps (bottom-up).
#ifndef ADJOIN_PLUGINS_GPU_MERGE_CUH
#define ADJOIN_PLUGINS_GPU_MERGE_CUH
#include <adjoin/kit/scalar.hpp>

#include "element.cuh"

namespace adjoin::gpu {

// NaN is larger than every number.
template <class T>
AJ_HD bool less(T a, T b) {
  return a < b || (scalar::is_nan(b) && !scalar::is_nan(a));
}

// One step: runs of `run` places that are in order are merged to runs of twice that. A thread finds
// where its element k goes: its rank in its own run plus its rank in the neighbour. before(j,
// first): whether the neighbour's j stands before it; first: it is of the first run, whose equals
// stand first.
template <class Before>
AJ_DEVICE int64_t merged_place(int64_t k, int64_t size, int64_t run, Before before) {
  int64_t begin = k / (2 * run) * 2 * run, middle = begin + run < size ? begin + run : size;
  int64_t end = begin + 2 * run < size ? begin + 2 * run : size;
  bool first = k < middle;
  int64_t start = first ? middle : begin, lo = start, hi = first ? end : middle;
  while (lo < hi) {
    int64_t j = lo + (hi - lo) / 2;
    if (before(j, first))
      lo = j + 1;
    else
      hi = j;
  }
  return begin + (k - (first ? begin : middle)) + (lo - start);
}

template <class T>
struct Merge {
  const T* x;           // the line's values, by place in the line
  const int64_t* from;  // places in order so far; NULL: 0, 1, ...
  int64_t* to;
  int64_t size, inner, run;
  bool descending;
  AJ_HD int64_t place(int64_t line, int64_t k) const {
    return (line / inner * size + k) * inner + line % inner;
  }
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t line = i / size, k = i % size;
    const int64_t* order = from ? from + line * size : nullptr;
    auto at = [&](int64_t j) { return order ? order[j] : j; };
    auto value = [&](int64_t j) { return Math<T>(x[place(line, at(j))]); };
    Math<T> mine = value(k);
    int64_t found = merged_place(k, size, run, [&](int64_t j, bool first) {
      Math<T> other = value(j);
      bool earlier = descending ? less(mine, other) : less(other, mine);
      bool later = descending ? less(other, mine) : less(mine, other);
      return first ? earlier : !later;
    });
    to[line * size + found] = at(k);
  }
};

// The order of each line, in one of the two rooms; NULL where lines are of one element at most.
template <class T>
const int64_t* merge_all(const aj_call* call, const T* x, int64_t lines, int64_t size,
                         int64_t inner, bool descending, int64_t* one, int64_t* other) {
  const int64_t* from = nullptr;
  for (int64_t run = 1; run < size && lines; run *= 2) {
    each(call, lines * size, Merge<T>{x, from, one, size, inner, run, descending});
    from = one;
    std::swap(one, other);
  }
  return from;
}

}  // namespace adjoin::gpu
#endif

// plugins/vector/reduce_leaf.hpp: leaves of the reduction tree in vector code, for float32 and
// float64.
//
// The lanes are those of the kit's tree, so the bits are the same for every instruction set.
#ifndef ADJOIN_PLUGINS_VECTOR_REDUCE_LEAF_HPP
#define ADJOIN_PLUGINS_VECTOR_REDUCE_LEAF_HPP
#include <cstdint>

namespace adjoin::cpu {

// Of n elements, n > 0; NaN is the largest and the least. The *_rows work on `width` columns of
// `rows` rows, a row every `stride` bytes; they write s.
template <class T>
struct Leaves {
  T (*sum)(const T* x, int64_t n);
  T (*products)(const T* x, const T* y, int64_t n);                     // sum of x y
  T (*squares)(const T* x, int64_t n, T mean);                          // sum of (x - mean)^2
  void (*moments)(const T* x, int64_t n, T pivot, T* sum, T* squares);  // of x - pivot
  T (*absolutes)(const T* x, int64_t n);
  T (*product)(const T* x, int64_t n);
  double (*wide_product)(const T* x, int64_t n);  // computed in double
  T (*largest)(const T* x, int64_t n);
  T (*least)(const T* x, int64_t n);
  int64_t (*first_largest)(const T* x, int64_t n, T* value);  // its index
  int64_t (*first_least)(const T* x, int64_t n, T* value);

  using RowsFn = void (*)(T* s, const char* x, int64_t stride, int64_t rows, int64_t width);
  RowsFn sum_rows, square_rows, product_rows, largest_rows, least_rows;
  using PlacesFn = void (*)(T* s, int64_t* place, const char* x, int64_t stride, int64_t rows,
                            int64_t width);  // place: the row
  PlacesFn first_largest_rows, first_least_rows;
  // Of each column's distances from a pivot near its mean.
  void (*moment_rows)(T* sums, T* squares, T* pivots, const char* x, int64_t stride, int64_t rows,
                      int64_t width);
};

template <class T>
const Leaves<T>& leaves();

// The same of whole numbers, whose sums and extremes don't depend on an order.
struct WholeLeaves {
  int64_t (*sum)(const int64_t* x, int64_t n);
  int64_t (*largest)(const int64_t* x, int64_t n);
  int64_t (*least)(const int64_t* x, int64_t n);
};
const WholeLeaves& whole_leaves();

// `rows` rows of `width` elements added up, for each of n places.
void add_few(const float* x, int64_t step, int64_t rows, int64_t row_step, int64_t width, float* to,
             int64_t to_step, int64_t n);

}  // namespace adjoin::cpu
#endif

// plugins/ops_statistics/cpu/row_order.cpp: the order of a matrix's rows.
#include <adjoin/kit/scalar.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <numeric>

#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

using ordered = Join<reals_bool, halves>;

// Does row i stand before row j?
template <class T>
bool row_before(const void* rows, int64_t width, int64_t i, int64_t j) {
  const T *a = static_cast<const T*>(rows) + i * width,
          *b = static_cast<const T*>(rows) + j * width;
  for (int64_t c = 0; c < width; ++c) {
    if (a[c] == b[c]) continue;
    bool bad = scalar::is_nan(a[c]), other = scalar::is_nan(b[c]);  // larger than all numbers
    if (bad && other) continue;
    return bad || other ? other : a[c] < b[c];
  }
  return false;
}

// The sort is compiled once: rows are compared by call.
void order_rows(bool (*before)(const void*, int64_t, int64_t, int64_t), const void* rows,
                int64_t width, int64_t* order, int64_t n) {
  std::iota(order, order + n, int64_t(0));
  std::stable_sort(order, order + n,
                   [=](int64_t i, int64_t j) { return before(rows, width, i, j); });
}

void row_order(Args args) {
  TensorView t = args.tensor(0);
  visit<ordered>(t.dtype(), [&]<class S>() {
    using T = Math<S>;
    Dense<T> rows(t);
    Dense<int64_t> out(args.result(0));
    order_rows(row_before<T>, rows.data(), t.size(1), out.data(), t.size(0));
    out.commit();
  });
}

}  // namespace

AJ_KERNELS(row_order_kernels) = {
    {"_::row_order", custom<row_order>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/cpu/product/few_rows.cpp: products of a few rows with a large matrix: the matrix is read
// once, nothing of it is packed.
#include <algorithm>

#include "blocked.hpp"

namespace adjoin::cpu {
namespace {

constexpr int64_t kNear = 16 << 10,
                  kNearB = 256 << 10;  // bytes: sums stay in L1, B in L2

const char* at(const void* base, int64_t elements, int bytes) {
  return static_cast<const char*>(base) + elements * bytes;
}

}  // namespace

bool is_few(const Product& p, const Tiles& t) {
  if (p.turned_b) return p.m <= 2 * kFew;
  return p.m <= (t.pair > 1 ? kFew : 3) &&
         p.n >= t.group;  // more read in place by tiles, if those can
}

void few(const Product& p, const Tiles& t) {
  int64_t width = int64_t(t.lanes) * t.pair, xs = (p.k + width - 1) / width * width;
  char* x = static_cast<char*>(scratch(1, size_t(p.m * xs * t.packed)));
  t.pack_few(p.a, p.turned_a ? 1 : p.lda, p.turned_a ? p.lda : 1, p.m, p.k, x, xs);
  int64_t most = kNear / (std::min<int64_t>(p.m, kFew) * t.sum);
  if (p.m > kFew) most = std::min(most, kNearB / (p.k * t.stored));  // it is read again
  most = std::max<int64_t>(1, most / t.group) * t.group;
  int64_t ld = most + t.group;
  void* out = scratch(2, size_t(kFew * ld * t.sum));
  for (int64_t j = 0; j < p.n; j += most) {
    int64_t from = j, columns = std::min(most, p.n - j);
    if (!p.turned_b && columns < t.group) from = p.n - t.group;  // some of them once more
    const void* b = at(p.b, p.turned_b ? from * p.ldb : from, t.stored);
    for (int64_t i = 0; i < p.m; i += kFew) {
      int64_t rows = std::min<int64_t>(kFew, p.m - i);
      FewFn run = (p.turned_b ? t.few_across : t.few_along)[rows - 1];
      run(p.k, j - from + columns, x + i * xs * t.packed, xs, b, p.ldb, out, ld);
      Finish f = {at(out, j - from, t.sum),
                  ld,
                  rows,
                  columns,
                  nullptr,
                  p.rs,
                  p.cs,
                  p.alpha,
                  p.beta,
                  nullptr,
                  p.swapped};
      f.to = static_cast<char*>(p.c) + (i * p.rs + j * p.cs) * t.stored;
      if (p.bias) f.bias = at(p.bias, p.swapped ? i : j, t.stored);
      t.finish(f);
    }
  }
}

}  // namespace adjoin::cpu

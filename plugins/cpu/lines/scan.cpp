// plugins/cpu/lines/scan.cpp: running sums and products; float32 is carried in double.
#include <adjoin/kit/loops.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>
#include <vector>

#include "scan_rows.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
using Carry = std::conditional_t<std::is_same_v<T, float>, double,
                                 std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;

char* start(const aj_plan& p, uint32_t op, int64_t line, uint32_t from) {
  char* at = static_cast<char*>(p.ops[op].data);
  for (uint32_t d = from; d < p.ndim; line /= p.sizes[d++])
    at += line % p.sizes[d] * p.ops[op].strides[d];
  return at;
}

// Lines of one dtype that are contiguous, or lie side by side. A long line is cut into pieces that
// begin with the sum of those before, however many threads there are.
template <class T>
bool sum_in_vectors(const aj_plan& p) {
  constexpr int64_t size = sizeof(T), piece = 1 << 16, most = kScanColumns;
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  if (!same(to.dtype, dtype_of<T>) || !same(from.dtype, dtype_of<T>) || p.numel == 0) return false;
  int64_t n = p.sizes[0], lines = p.numel / n;
  const ScanRows<T>& code = scan_rows<T>();
  auto read = [&](int64_t line, uint32_t d) {
    return reinterpret_cast<const T*>(start(p, 1, line, d));
  };
  auto write = [&](int64_t line, uint32_t d) { return reinterpret_cast<T*>(start(p, 0, line, d)); };
  if (to.strides[0] == size && from.strides[0] == size) {
    int64_t pieces = (n + piece - 1) / piece;
    std::vector<double> carry(size_t(pieces > 1 ? lines * pieces : 0));
    auto each = [&](auto f) {
      parallel_for(lines * pieces, grain_of(std::min(n, piece)), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo)
          f(lo, lo / pieces, lo % pieces * piece, std::min(piece, n - lo % pieces * piece));
      });
    };
    if (pieces > 1)
      each([&](int64_t i, int64_t line, int64_t at, int64_t m) {
        carry[i] = code.sum(read(line, 1) + at, m);
      });
    for (int64_t line = 0; pieces > 1 && line < lines; ++line) {
      double before = 0;
      for (int64_t i = line * pieces; i < (line + 1) * pieces; ++i)
        before += std::exchange(carry[i], before);
    }
    each([&](int64_t i, int64_t line, int64_t at, int64_t m) {
      code.scan(read(line, 1) + at, write(line, 1) + at, m, pieces > 1 ? carry[i] : 0);
    });
    return true;
  }
  if (p.ndim < 2 || to.strides[1] != size || from.strides[1] != size) return false;
  int64_t width = p.sizes[1], strips = (width + most - 1) / most;
  parallel_for(lines / width * strips, grain_of(n * std::min(width, most)),
               [&](int64_t lo, int64_t hi) {
                 for (; lo < hi; ++lo) {
                   int64_t at = lo % strips * most, o = lo / strips;
                   code.columns(read(o, 2) + at, from.strides[0] / size, write(o, 2) + at,
                                to.strides[0] / size, n, std::min(most, width - at));
                 }
               });
  return true;
}

// Lines side by side: a row of carries walks along them.
template <class F, class T>
bool scan_columns(const aj_plan& p) {
  constexpr int64_t size = sizeof(T), most = kScanColumns;
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  if (p.ndim < 2 || p.numel == 0 || to.strides[1] != size || from.strides[1] != size ||
      !same(to.dtype, dtype_of<T>) || !same(from.dtype, dtype_of<T>))
    return false;
  const int64_t n = p.sizes[0], width = p.sizes[1], strips = (width + most - 1) / most;
  parallel_for(p.numel / n / width * strips, grain_of(n * std::min(width, most)),
               [&](int64_t lo, int64_t hi) {
                 Carry<T> carry[most];
                 for (; lo < hi; ++lo) {
                   const int64_t at = lo % strips * most, m = std::min(most, width - at);
                   const char* x = start(p, 1, lo / strips, 2) + at * size;
                   char* y = start(p, 0, lo / strips, 2) + at * size;
                   std::fill_n(carry, m, Carry<T>(F::first));
                   for (int64_t i = 0; i < n; ++i, x += from.strides[0], y += to.strides[0])
                     for (int64_t j = 0; j < m; ++j) {
                       carry[j] = F()(carry[j], Carry<T>(reinterpret_cast<const T*>(x)[j]));
                       reinterpret_cast<T*>(y)[j] = cast<T>(carry[j]);
                     }
                 }
               });
  return true;
}

// kLines contiguous lines in one loop: a line waits for its own carry alone.
template <class F, int kLines, class T>
void walk_lines(const T* const* from, T* const* to, int64_t n) {
  Carry<T> carry[kLines];
  std::fill_n(carry, kLines, Carry<T>(F::first));
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < kLines; ++k) {
      carry[k] = F()(carry[k], Carry<T>(from[k][i]));
      to[k][i] = cast<T>(carry[k]);
    }
  }
}
template <class F, class T>
bool scan_lines(const aj_plan& p) {
  constexpr int64_t size = sizeof(T), several = 4;
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  if (p.numel == 0 || to.strides[0] != size || from.strides[0] != size ||
      !same(to.dtype, dtype_of<T>) || !same(from.dtype, dtype_of<T>))
    return false;
  const int64_t n = p.sizes[0], lines = p.numel / n;
  parallel_for((lines + several - 1) / several, grain_of(n * several), [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      const int64_t first = lo * several, m = std::min(several, lines - first);
      const T* x[several];
      T* y[several];
      for (int64_t k = 0; k < m; ++k) {
        x[k] = reinterpret_cast<const T*>(start(p, 1, first + k, 1));
        y[k] = reinterpret_cast<T*>(start(p, 0, first + k, 1));
      }
      if (m == several) walk_lines<F, several>(x, y, n);
      for (int64_t k = 0; m < several && k < m; ++k) walk_lines<F, 1>(x + k, y + k, n);
    }
  });
  return true;
}

template <class F>
aj_status* scan(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    int64_t n = p.sizes[0], lines = n ? p.numel / n : 0;
    visit<all_types>(p.compute, [&]<class T>() {
      if constexpr (F::first == 0 && (std::is_same_v<T, float> || std::is_same_v<T, double>))
        if (sum_in_vectors<T>(p)) return;
      if constexpr (std::is_same_v<T, int64_t> ||
                    (F::first == 1 && (std::is_same_v<T, float> || std::is_same_v<T, double>)))
        if (scan_columns<F, T>(p)) return;
      if constexpr (F::first == 1 && (std::is_same_v<T, float> || std::is_same_v<T, double>))
        if (scan_lines<F, T>(p)) return;
      parallel_for(lines, grain_of(n), [&](int64_t lo, int64_t hi) {
        T block[kBlock];
        for (int64_t line = lo; line < hi; ++line) {
          char *to = start(p, 0, line, 1), *from = start(p, 1, line, 1);
          int64_t out_step = p.ops[0].strides[0], in_step = p.ops[1].strides[0];
          Carry<T> carry(F::first);
          for (int64_t at = 0; at < n; at += kBlock) {
            int64_t m = std::min(kBlock, n - at);
            Convert<T>::load(block, from + at * in_step, p.ops[1].dtype, in_step, m);
            for (int64_t i = 0; i < m; ++i) {
              carry = F()(carry, Carry<T>(block[i]));
              block[i] = cast<T>(carry);
            }
            Convert<T>::store(to + at * out_step, p.ops[0].dtype, out_step, block, m);
          }
        }
      });
    });
  });
}
struct Sums : scalar::Add {
  static constexpr int first = 0;
};
struct Products : scalar::Mul {
  static constexpr int first = 1;
};

}  // namespace

AJ_KERNELS(scan_kernels) = {
    {"cumsum", {&scan<Sums>, all_types::mask, AJ_KERNEL_CASTS}},
    {"cumprod", {&scan<Products>, all_types::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/cpu/scan.cpp: running sums and products; float32 is carried in double.
#include <adjoin/kit/loops.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/scalar.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
using Carry = std::conditional_t<std::is_same_v<T, float>, double,
                                 std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;

template <class F>
aj_status* scan(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    int64_t n = p.sizes[0], lines = n ? p.numel / n : 0;
    visit<all_types>(p.compute, [&]<class T>() {
      parallel_for(lines, grain_of(n), [&](int64_t lo, int64_t hi) {
        T block[kBlock];
        for (int64_t line = lo; line < hi; ++line) {
          char *to = static_cast<char*>(p.ops[0].data), *from = static_cast<char*>(p.ops[1].data);
          int64_t rest = line, out_step = p.ops[0].strides[0], in_step = p.ops[1].strides[0];
          for (uint32_t d = 1; d < p.ndim; rest /= p.sizes[d++]) {
            to += rest % p.sizes[d] * p.ops[0].strides[d];
            from += rest % p.sizes[d] * p.ops[1].strides[d];
          }
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

const Kernel scan_kernels[] = {
    {"cumsum", {&scan<Sums>, all_types::mask, AJ_KERNEL_CASTS}},
    {"cumprod", {&scan<Products>, all_types::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

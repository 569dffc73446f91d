// plugins/cpu/copy.cpp: copies with and without a cast, transposes in tiles, fills.
#include <adjoin/kit/loops.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

// One row; neither end needs to be contiguous.
void copy_row(char* to, const aj_operand& dst, int64_t dst_step, const char* from,
              const aj_operand& src, int64_t src_step, int64_t n) {
  if (dst_step == bytes_of(dst.dtype))
    return visit<stored>(dst.dtype,
                         [&]<class T>() { Convert<T>::load(to, from, src.dtype, src_step, n); });
  if (src_step == bytes_of(src.dtype))
    return visit<stored>(src.dtype,
                         [&]<class T>() { Convert<T>::store(to, dst.dtype, dst_step, from, n); });
  visit<stored>(dst.dtype, [&]<class T>() {
    T block[kBlock];
    for (int64_t lo = 0; lo < n; lo += kBlock) {
      int64_t m = std::min(kBlock, n - lo);
      Convert<T>::load(block, from + lo * src_step, src.dtype, src_step, m);
      Convert<T>::store(to + lo * dst_step, dst.dtype, dst_step, block, m);
    }
  });
}

// dst runs along dimension 0, src along dimension 1: tiles keep the lines of both in the cache.
template <class T>
void transpose(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n0,
               int64_t n1) {
  constexpr int64_t tile = 32;
  for (int64_t j0 = 0; j0 < n1; j0 += tile)
    for (int64_t i0 = 0; i0 < n0; i0 += tile)
      for (int64_t j = j0; j < std::min(n1, j0 + tile); ++j) {
        T* line = reinterpret_cast<T*>(to + j * to_step);
        const char* column = from + j * int64_t(sizeof(T));
        for (int64_t i = i0; i < std::min(n0, i0 + tile); ++i)
          line[i] = *reinterpret_cast<const T*>(column + i * from_step);
      }
}

aj_status* copy(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const aj_operand &dst = p.ops[0], &src = p.ops[1];
    int64_t size = bytes_of(dst.dtype), to_step = row_stride(p, 0), from_step = row_stride(p, 1);
    bool turned = p.ndim >= 2 && same(dst.dtype, src.dtype) && to_step == size &&
                  from_step != size && src.strides[1] == size && p.sizes[0] > 4 && p.sizes[1] > 4;
    if (!turned)
      return for_rows(p, [&](char** at, int64_t n) {
        copy_row(at[0], dst, to_step, at[1], src, from_step, n);
      });
    aj_operand planes_ops[2] = {dst, src};
    aj_plan planes = p;  // the dimensions from 2 on
    int64_t one = 1, zero = 0;
    planes.ndim = std::max<uint32_t>(1, p.ndim - 2);
    planes.sizes = p.ndim > 2 ? p.sizes + 2 : &one;
    for (int k = 0; k < 2; ++k) planes_ops[k].strides = p.ndim > 2 ? p.ops[k].strides + 2 : &zero;
    planes.ops = planes_ops;
    for_rows(planes, [&](char** at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        visit_size(dst.dtype, [&]<class T>() {
          transpose<T>(at[0] + i * planes_ops[0].strides[0], dst.strides[1],
                       at[1] + i * planes_ops[1].strides[0], from_step, p.sizes[0], p.sizes[1]);
        });
    });
  });
}

aj_status* fill(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const aj_operand &dst = p.ops[0], &value = p.ops[1];
    int64_t step = row_stride(p, 0);
    alignas(16) char element[16];
    visit<stored>(dst.dtype, [&]<class T>() {
      Convert<T>::load(element, static_cast<char*>(value.data), value.dtype, 0, 1);
    });
    visit_size(dst.dtype, [&]<class T>() {
      T x;
      std::memcpy(&x, element, sizeof x);
      for_rows(p, [&](char** at, int64_t n) {
        if (step == int64_t(sizeof(T)))
          std::fill_n(reinterpret_cast<T*>(at[0]), n, x);
        else
          for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(at[0] + i * step) = x;
      });
    });
  });
}

}  // namespace

const Kernel copy_kernels[] = {
    {"copy_", {&copy, stored::mask, kInner}},
    {"fill_", {&fill, stored::mask, kInner}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

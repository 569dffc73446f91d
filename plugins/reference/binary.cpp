// plugins/reference/binary.cpp: functions of two and three elements, comparisons, casts.
#include <adjoin/kit/narrow.hpp>
#include <adjoin/kit/scalar_rows.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

aj_status* where(void*, aj_call* call) {
  return guard(call, [&] {
    visit<all_types>(call->plan->compute,
                     [&]<class T>() { map_elements<bool, T, T>(*call->plan, scalar::Where()); });
  });
}

// copy_ and fill_: the element's own dtypes, so that an int64 never goes through a float.
aj_status* assign(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    const aj_operand &to = p.ops[0], &from = p.ops[1];
    if (is_narrow(to.dtype) || is_narrow(from.dtype))
      return for_rows(p, [&](char** at, int64_t n) {
        convert_narrow(at[0], to.dtype, row_stride(p, 0), at[1], from.dtype, row_stride(p, 1), n);
      });
    visit<stored>(to.dtype, [&]<class T>() { map_elements<T>(*call->plan, scalar::Positive()); });
  });
}

}  // namespace

AJ_KERNELS(binary_kernels) = {
    AJ_BINARY_ROWS(two, three),
    AJ_COMPARE_ROWS(two),
    {"div", two<DivChooser, numeric>},
    {"remainder", two<scalar::Remainder, reals>},
    {"fmod", two<scalar::FMod, reals>},
    {"floor_divide", two<scalar::FloorDivide, reals>},
    {"where", {&where, all_types::mask, AJ_KERNEL_CASTS}},
    {"copy_", {&assign, kMoved, AJ_KERNEL_CASTS}},
    {"fill_", {&assign, kMoved, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::reference

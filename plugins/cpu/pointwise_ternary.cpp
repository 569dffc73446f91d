// plugins/cpu/pointwise_ternary.cpp: functions of three elements.
#include <adjoin/kit/choosers.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

aj_status* where(void*, aj_call* call) {
  return guard(call, [&] {
    visit<all_types>(call->plan->compute,
                     [&]<class T>() { map<bool, T, T>(*call->plan, scalar::Where()); });
  });
}

}  // namespace

const Kernel ternary_kernels[] = {
    {"where", {&where, all_types::mask, kInner}},
    {"clamp", ternary<ClampChooser, reals_bool>},
    {"lerp", ternary<scalar::Lerp, floating_complex>},
    {"addcmul", ternary<AddCMulChooser, numeric>},
    {"addcdiv", ternary<AddCDivChooser, floating_complex>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

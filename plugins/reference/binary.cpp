// plugins/reference/binary.cpp: functions of two and three elements, comparisons, casts.
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
    visit<stored>(call->plan->ops[0].dtype,
                  [&]<class T>() { map_elements<T>(*call->plan, scalar::Positive()); });
  });
}

}  // namespace

AJ_KERNELS(binary_kernels) = {
    {"add", two<AddChooser, all_types>},
    {"sub", two<SubChooser, numeric>},
    {"mul", two<scalar::Mul, all_types>},
    {"div", two<DivChooser, numeric>},
    {"maximum", two<scalar::Maximum, reals_bool>},
    {"minimum", two<scalar::Minimum, reals_bool>},
    {"remainder", two<scalar::Remainder, reals>},
    {"fmod", two<scalar::FMod, reals>},
    {"floor_divide", two<scalar::FloorDivide, reals>},
    {"bitwise_and", two<scalar::BitwiseAnd, integral_bool>},
    {"bitwise_or", two<scalar::BitwiseOr, integral_bool>},
    {"bitwise_xor", two<scalar::BitwiseXor, integral_bool>},
    {"bitwise_left_shift", two<scalar::ShiftLeft, integral>},
    {"bitwise_right_shift", two<scalar::ShiftRight, integral>},
    {"pow", two<PowChooser, numeric>},
    {"atan2", two<scalar::Atan2, floating>},
    {"hypot", two<scalar::Hypot, floating>},
    {"logaddexp", two<scalar::LogAddExp, floating>},
    {"eq", two<scalar::Eq, all_types>},
    {"ne", two<scalar::Ne, all_types>},
    {"lt", two<scalar::Lt, reals_bool>},
    {"le", two<scalar::Le, reals_bool>},
    {"gt", two<scalar::Gt, reals_bool>},
    {"ge", two<scalar::Ge, reals_bool>},
    {"logical_and", two<scalar::LogicalAnd, all_types>},
    {"logical_or", two<scalar::LogicalOr, all_types>},
    {"logical_xor", two<scalar::LogicalXor, all_types>},
    {"where", {&where, all_types::mask, AJ_KERNEL_CASTS}},
    {"clamp", three<ClampChooser, reals_bool>},
    {"lerp", three<scalar::Lerp, floating_complex>},
    {"addcmul", three<AddCMulChooser, numeric>},
    {"addcdiv", three<AddCDivChooser, floating_complex>},
    {"copy_", {&assign, stored::mask, AJ_KERNEL_CASTS}},
    {"fill_", {&assign, stored::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::reference

// plugins/gpu/kernels/compare.cuh: comparisons, logic and bits of two elements.
#include "../pointwise.cuh"

namespace adjoin::gpu {

AJ_KERNELS(compare_kernels) = {
    {"maximum", two<scalar::Maximum, reals_bool>},
    {"minimum", two<scalar::Minimum, reals_bool>},
    {"bitwise_and", two<scalar::BitwiseAnd, integral_bool>},
    {"bitwise_or", two<scalar::BitwiseOr, integral_bool>},
    {"bitwise_xor", two<scalar::BitwiseXor, integral_bool>},
    {"bitwise_left_shift", two<scalar::ShiftLeft, integral>},
    {"bitwise_right_shift", two<scalar::ShiftRight, integral>},
    {"eq", two<scalar::Eq, all_types>},
    {"ne", two<scalar::Ne, all_types>},
    {"lt", two<scalar::Lt, reals_bool>},
    {"le", two<scalar::Le, reals_bool>},
    {"gt", two<scalar::Gt, reals_bool>},
    {"ge", two<scalar::Ge, reals_bool>},
    {"logical_and", two<scalar::LogicalAnd, all_types>},
    {"logical_or", two<scalar::LogicalOr, all_types>},
    {"logical_xor", two<scalar::LogicalXor, all_types>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

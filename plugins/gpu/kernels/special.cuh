// plugins/gpu/kernels/special.cuh: special functions of one and two elements.
#include <adjoin/kit/special_rows.hpp>

#include "../trig.cuh"

namespace adjoin::gpu {
namespace {

// In the operand's own dtype: the next half is another number than the next float.
aj_status* nextafter(void*, aj_call* call) {
  return guard(call, [&] {
    visit<stored_floating>(call->plan->ops[0].dtype,
                           [&]<class T>() { map<T, T>(call, scalar::NextAfter()); });
  });
}

}  // namespace

AJ_KERNELS(special_kernels) = {
    AJ_SPECIAL_ROWS(turning, two),
    {"nextafter", {&nextafter, stored_floating::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

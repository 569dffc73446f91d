// plugins/cpu/pointwise_exp.cpp: the exponentials that training spends its time in, for several
// instruction sets.
#include <adjoin/kit/choosers.hpp>

#include "clones.hpp"
#include "tables.hpp"

namespace adjoin::cpu {
namespace {

// A cloned loop over float32; other types and layouts take the common way.
#define AJ_CLONED_(Name)                                                                \
  AJ_CLONES void Name##_row(const void*, void* out, const void* const* in, int64_t n) { \
    float* to = static_cast<float*>(out);                                               \
    const float* from = static_cast<const float*>(in[0]);                               \
    AJ_IVDEP for (int64_t i = 0; i < n; ++i) to[i] = scalar::Name()(from[i]);           \
  }                                                                                     \
  aj_status* Name##_kernel(void*, aj_call* call) {                                      \
    static constexpr Rows cloned = {1, &typed<float>, {&typed<float>}, {&Name##_row}};  \
    return guard(call, [&] {                                                            \
      const aj_plan& p = *call->plan;                                                   \
      visit<floating_complex>(p.compute, [&]<class T>() {                               \
        if constexpr (std::is_same_v<T, float>)                                         \
          RowDriver(p, cloned, nullptr).run();                                          \
        else                                                                            \
          map<T>(p, scalar::Name());                                                    \
      });                                                                               \
    });                                                                                 \
  }
AJ_CLONED_(Exp)
AJ_CLONED_(Log)
AJ_CLONED_(Tanh)
AJ_CLONED_(Sigmoid)
AJ_CLONED_(Silu)
#undef AJ_CLONED_

constexpr Spec cloned(aj_kernel_fn fn) { return {fn, floating_complex::mask, kInner}; }

}  // namespace

const Kernel exp_kernels[] = {
    {"exp", cloned(Exp_kernel)},       {"log", cloned(Log_kernel)},
    {"tanh", cloned(Tanh_kernel)},     {"sigmoid", cloned(Sigmoid_kernel)},
    {"nn::silu", cloned(Silu_kernel)}, {nullptr, {}},
};

}  // namespace adjoin::cpu

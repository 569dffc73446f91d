// plugins/ops_sparse/register.hpp: what the plugin's init calls.
#pragma once
#include <adjoin/kit/plugin.hpp>

namespace adjoin::ops::sparse {

void define_wrapper(const aj_plugin_env* env);
void define_kernels(kit::Registrar& plugin);
void define_derivatives(const aj_plugin_env* env);

// The derivative of an op where an argument is sparse.
void define_vjp(const aj_plugin_env* env, const char* op, const aj_save* save, uint32_t nsave,
                aj_status* (*vjp)(void*, aj_grad_call*), void* self);
void define_product_vjps(const aj_plugin_env* env);
void define_slice_vjps(const aj_plugin_env* env);
void define_reduce_vjps(const aj_plugin_env* env);

// Tables of kernels at the key "sparse".
extern const kit::Kernel pointwise_kernels[], shape_kernels[], slice_kernels[], product_kernels[],
    reduce_kernels[];

}  // namespace adjoin::ops::sparse

/* tests/abi/layout.c: the layouts that must never change. Compiling this file is the test; when an assertion fails, the
 * contract changed and AJ_ABI_MAJOR has to move with it (before the freeze, the number here moves instead).
 *
 * SIZE and AT: a frozen struct. FIRST: an extensible one ends here in the version that was first published; fields that are
 * appended later do not move it, and nothing reads beyond it without asking struct_size. */
#include <adjoin/abi/capi.h>
#include <adjoin/abi/report.h>

#ifdef __cplusplus
#define ASSERT(condition, text) static_assert(condition, text)
#else
#define ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define SIZE(T, n) ASSERT(sizeof(T) == (n), "ABI: " #T " changed size")
#define AT(T, field, n) ASSERT(offsetof(T, field) == (n), "ABI: " #T "." #field " moved")
#define FIRST(T, last, n) \
  ASSERT(AJ_END_OF(T, last) == (n) && (n) % 8 == 0, "ABI: " #T " changed before or at its first last field " #last)
#define VALUE(name, n) ASSERT((name) == (n), "ABI: " #name " changed its number")

SIZE(DLDevice, 8);
AT(DLDevice, device_type, 0);
AT(DLDevice, device_id, 4);

SIZE(DLDataType, 4);
AT(DLDataType, code, 0);
AT(DLDataType, bits, 1);
AT(DLDataType, lanes, 2);

SIZE(DLTensor, 48);
AT(DLTensor, data, 0);
AT(DLTensor, device, 8);
AT(DLTensor, ndim, 16);
AT(DLTensor, dtype, 20);
AT(DLTensor, shape, 24);
AT(DLTensor, strides, 32);
AT(DLTensor, byte_offset, 40);

SIZE(DLPackVersion, 8);
AT(DLPackVersion, major, 0);
AT(DLPackVersion, minor, 4);

SIZE(DLManagedTensor, 64);
AT(DLManagedTensor, dl_tensor, 0);
AT(DLManagedTensor, manager_ctx, 48);
AT(DLManagedTensor, deleter, 56);

SIZE(DLManagedTensorVersioned, 80);
AT(DLManagedTensorVersioned, version, 0);
AT(DLManagedTensorVersioned, manager_ctx, 8);
AT(DLManagedTensorVersioned, deleter, 16);
AT(DLManagedTensorVersioned, flags, 24);
AT(DLManagedTensorVersioned, dl_tensor, 32);

SIZE(DLPackExchangeAPIHeader, 16);
AT(DLPackExchangeAPIHeader, version, 0);
AT(DLPackExchangeAPIHeader, prev_api, 8);

SIZE(DLPackExchangeAPI, 56);
AT(DLPackExchangeAPI, header, 0);
AT(DLPackExchangeAPI, managed_tensor_allocator, 16);
AT(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, 24);
AT(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 32);
AT(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 40);
AT(DLPackExchangeAPI, current_work_stream, 48);

SIZE(aj_str, 16);
AT(aj_str, data, 0);
AT(aj_str, len, 8);

SIZE(aj_object, 16);
AT(aj_object, refs_private, 0);
AT(aj_object, type, 8);
AT(aj_object, flags, 12);

SIZE(aj_tensor, 72);
AT(aj_tensor, obj, 0);
AT(aj_tensor, dl, 16);
AT(aj_tensor, keys, 64);

SIZE(aj_value, 16);
AT(aj_value, tag, 0);
AT(aj_value, aux, 4);
AT(aj_value, v, 8);

SIZE(aj_operand, 32);
AT(aj_operand, data, 0);
AT(aj_operand, strides, 8);
AT(aj_operand, tensor, 16);
AT(aj_operand, dtype, 24);
AT(aj_operand, flags, 28);

SIZE(aj_save, 8);
AT(aj_save, what, 0);
AT(aj_save, index, 4);

SIZE(aj_plugin_note, 600);
AT(aj_plugin_note, magic, 0);
AT(aj_plugin_note, struct_size, 8);
AT(aj_plugin_note, abi_major, 12);
AT(aj_plugin_note, minor_min, 14);
AT(aj_plugin_note, minor_built, 16);
AT(aj_plugin_note, machine, 18);
AT(aj_plugin_note, build_flags, 20);
AT(aj_plugin_note, name, 24);
AT(aj_plugin_note, version, 88);
AT(aj_plugin_note, vendor, 120);
AT(aj_plugin_note, license, 184);
AT(aj_plugin_note, provides, 216);
AT(aj_plugin_note, requires_, 472);

FIRST(aj_plan, ops, 64);
FIRST(aj_call, plan, 80);
FIRST(aj_kernel_def, can_run, 96);
FIRST(aj_op_def, self, 112);
FIRST(aj_param, value, 56);
FIRST(aj_op_info, nresults, 128);
FIRST(aj_fallback_entry, nanoseconds, 88);
FIRST(aj_dispatch, set_provider, 192);
FIRST(aj_dtype_info, name, 40);
FIRST(aj_memory_stats, system_allocations, 56);
FIRST(aj_frontend, interrupted, 72);
FIRST(aj_core, manual_seed, 536);
FIRST(aj_grad_call, reserved, 88);
FIRST(aj_vjp_def, traverse, 88);
FIRST(aj_backward, ninputs, 48);
FIRST(aj_autograd, node_results, 304);
FIRST(aj_device_props, bus_id, 152);
FIRST(aj_copy, stream, 80);
FIRST(aj_device_vtbl, graph_free, 280);
FIRST(aj_service_def, table, 48);
FIRST(aj_services, choose, 32);
FIRST(aj_gemm, stream, 152);
FIRST(aj_blas, lapack, 64);
FIRST(aj_tuner, show, 64);
FIRST(aj_report, lines, 24);
FIRST(aj_plugin_env, options, 80);
FIRST(aj_plugin_info, reserved2, 136);
FIRST(aj_plugins, lint, 56);

VALUE(AJ_NONE, 0);
VALUE(AJ_BOOL, 1);
VALUE(AJ_INT, 2);
VALUE(AJ_FLOAT, 3);
VALUE(AJ_COMPLEX, 4);
VALUE(AJ_DTYPE, 5);
VALUE(AJ_DEVICE, 6);
VALUE(AJ_STRING, 7);
VALUE(AJ_INTS, 8);
VALUE(AJ_FLOATS, 9);
VALUE(AJ_BOOLS, 10);
VALUE(AJ_TENSORS, 11);
VALUE(AJ_LAYOUT, 12);
VALUE(AJ_MEMORY_FORMAT, 13);
VALUE(AJ_SYMINT, 14);
VALUE(AJ_TENSOR, 64);
VALUE(AJ_STRING_OBJ, 65);
VALUE(AJ_LIST_OBJ, 66);
VALUE(AJ_DICT_OBJ, 67);
VALUE(AJ_GENERATOR, 68);
VALUE(AJ_STREAM, 69);
VALUE(AJ_FUNCTION, 70);
VALUE(AJ_DYNAMIC_BEGIN, 256);
VALUE(AJ_OUT_OF_MEMORY, 8);
VALUE(AJ_UNIMPLEMENTED, 12);
VALUE(AJ_WRONG_TYPE, 16);
VALUE(AJ_DT_COMPLEX128, 11);
VALUE(AJ_DT_REGISTERED, 32);
VALUE(AJ_BUILD_ASAN, 1);
VALUE(AJ_BUILD_TSAN, 2);
VALUE(AJ_BUILD_MSAN, 4);
VALUE(AJ_PLUGIN_DISABLED, 5);

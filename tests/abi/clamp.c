/* tests/abi/clamp.c: a frontend whose structs are older and shorter, or newer and longer: nothing
 * is written behind struct_size, and nothing that the core does not know. Prints a line for each
 * struct. */
#include <adjoin/abi/capi.h>
#include <stdio.h>
#include <string.h>

static const aj_core* core;
static int failed;

/* Bytes of 0xee behind the size that was told, for each size up to the struct's and beyond. */
#define CLAMPED(T, call)                                                   \
  do {                                                                     \
    union {                                                                \
      T s;                                                                 \
      unsigned char bytes[sizeof(T) + 64];                                 \
    } u;                                                                   \
    int wrote = 0, spilt = 0;                                              \
    for (uint32_t n = 8; n <= sizeof(T) + 32; n += 8) {                    \
      memset(&u, 0xee, sizeof u);                                          \
      u.s.struct_size = n;                                                 \
      aj_status* bad = call;                                               \
      wrote += !bad;                                                       \
      core->status_free(bad);                                              \
      for (size_t k = n; k < sizeof u; ++k) spilt += u.bytes[k] != 0xee;   \
      if (u.s.struct_size != n) ++spilt;                                   \
    }                                                                      \
    printf("%s %s\n", #T, spilt ? "spilt" : wrote ? "ok" : "only errors"); \
    failed |= spilt || !wrote;                                             \
  } while (0)

static int32_t visit(void* self, const aj_plugin_info* info) {
  if (!info->path.len || info->state > AJ_PLUGIN_LOADED) return 0;
  *(aj_str*)self = info->path;
  return 1;
}

int main(void) {
  core = (const aj_core*)aj_get_interface("aj.core", 1);
  const aj_dispatch* op = (const aj_dispatch*)aj_get_interface("aj.op", 1);
  const aj_services* services = (const aj_services*)aj_get_interface("aj.service", 1);
  const aj_plugins* plugins = (const aj_plugins*)aj_get_interface("aj.plugins", 1);
  DLDataType f32 = {kDLFloat, 32, 1};
  DLDevice cpu = {kDLCPU, 0};
  int32_t type;
  aj_str path = AJ_STR_LIT("");
  core->status_free(core->device_find(AJ_STR_LIT("cpu"), &type));
  core->status_free(aj_list_plugins(visit, &path));
  const aj_op* add = op->find_op(AJ_STR_LIT("add"));
  CLAMPED(aj_dtype_info, core->dtype_info(f32, &u.s));
  CLAMPED(aj_memory_stats, core->memory_stats(cpu, &u.s));
  CLAMPED(aj_op_info, op->op_info(add, &u.s));
  CLAMPED(aj_param, op->op_param(add, 0, &u.s));
  CLAMPED(aj_param, op->op_result(add, 0, &u.s));
  CLAMPED(aj_service_def, services->at(AJ_STR_LIT("aj.blas/cpu"), 0, &u.s));
  CLAMPED(aj_plugin_info, plugins->inspect(path, &u.s));
  const aj_device_vtbl* table = NULL;
  core->status_free(plugins->device_table(cpu, &table));
  if (table && table->props) CLAMPED(aj_device_props, table->props(table->self, 0, &u.s));
  return failed;
}

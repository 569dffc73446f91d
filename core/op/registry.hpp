// core/op/registry.hpp: all ops, kernels, keys and derivatives of the process, and transactions
// that add to them.
#pragma once
#include <adjoin/abi/device.h>
#include <adjoin/abi/service.h>
#include <adjoin/abi/wrap.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/transaction.hpp"
#include "core/op/autocast.hpp"
#include "core/op/op.hpp"

namespace adjoin {

// A key's definition. Never freed; one without functions takes its place once its plugin is
// disabled.
struct Wrapper {
  aj_wrapper_def def;
  std::string key, hint, provider;
};

}  // namespace adjoin

// What a plugin's init collects. commit() makes all of it visible at once or, on an error, none.
struct aj_registrar : adjoin::Transaction {
  explicit aj_registrar(std::string plugin_name);
  ~aj_registrar();
  aj_status* commit();

  struct PendingKernel {
    std::string op, key, built_schema;
    adjoin::Kernel kernel;
  };
  struct PendingVjp {
    std::string op;
    adjoin::Vjp* vjp;
  };
  std::vector<aj_op*> ops;
  std::vector<PendingKernel> kernels;
  std::vector<PendingVjp> vjps;
  std::vector<PendingKernel> fallbacks;
  std::vector<std::string> devices;  // added at once, taken back unless committed
  std::vector<std::pair<std::string, adjoin::AutocastRules>> casts;  // of its devices
  std::vector<std::string> keys;
  std::vector<adjoin::Wrapper*> wrappers;  // definitions of tensors without strides
  std::vector<aj_service_def> services;    // names kept in service_names
  std::vector<std::string> service_names;
  bool committed = false;
  aj_registrar* outer;  // init may load another plugin

 private:
  aj_op* find(const std::string& name) const;  // among these and those that are there
  aj_status* check(bool again);
  void attach(bool again);  // what ops and keys get
};

namespace adjoin {

const Vjp* keyed_vjp(const aj_op* op, const aj_value* args, uint32_t nargs);
// The derivative for these arguments: of a key that one of them carries, else the op's own; or
// NULL.
inline const Vjp* vjp_for(const aj_op* op, const aj_value* args, uint32_t nargs) {
  if (__builtin_expect(op->keyed_vjps.load(std::memory_order_acquire) != nullptr, 0))
    if (const Vjp* v = keyed_vjp(op, args, nargs)) return v;
  return op->vjp.load(std::memory_order_acquire);
}

aj_status* def_op(aj_registrar* r, const aj_op_def* d);
aj_status* def_kernel(aj_registrar* r, const aj_kernel_def* d);
aj_status* def_fallback(aj_registrar* r, aj_str key, aj_kernel_fn fn, void* self);
aj_status* def_key(aj_registrar* r, aj_str name, int32_t place, uint64_t* out_mask);
aj_status* def_vjp(aj_registrar* r, const aj_vjp_def* d);
aj_status* def_device(aj_registrar* r, const aj_device_vtbl* v);
aj_status* def_wrapper(aj_registrar* r, const aj_wrapper_def* d);
aj_status* def_service(aj_registrar* r, const aj_service_def* d);

uint64_t key_mask(aj_str name);  // functionality keys and loaded devices
uint32_t op_count();
const aj_op* op_at(uint32_t i);
aj_status* disable_provider(std::string_view plugin);   // its kernels are not chosen any more
std::string provider_summary(std::string_view plugin);  // its ops and kernels, for people
std::string provider_ties(std::string_view plugin);  // what may still point into its code, or empty
void retire_definitions(std::string_view plugin);    // its ops lose their functions, its kernels go

// Fills table[bit] for an op: candidates by priority, then the body. NULL if there is none.
const Kernel* resolve(aj_op* op, int bit);
// What stands in the place of an op's run function and of its kernels while somebody listens; NULL:
// they themselves.
struct Listening {
  RunFn run = nullptr;
  const Kernel* (*kernels)(const aj_op* op, int bit, const Kernel* chain) = nullptr;
};
extern Listening listening;            // under the registry's lock
void forget_resolved();                // after any change of the registry, under its lock
void resolve_again();                  // the same, with the lock taken
Kernel* copy_kernel(const Kernel& k);  // for a chain
std::string kernel_dtypes(const aj_op* op, int bit);
// "plugin 'acme' has one at key 'acme'": where no kernel at the device serves.
std::string kernels_elsewhere(const aj_op* op, std::string_view device);
// The plugin, disabled or unloaded, that had the kernel, or `plugin` itself; empty: neither is.
std::string disabled_server(const aj_op* op, std::string_view device, std::string_view plugin);
std::string kernels_there(const aj_op* op,
                          std::string_view device);  // who has one, for which dtypes; empty: nobody

void init_op(aj_op* op);  // reads tags and schema into the fields of the call path

}  // namespace adjoin

// core/op/registry_state.hpp: what the registry is made of, for the files that change it.
#pragma once
#include <functional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/op/registry.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

struct NameHash {  // looks up what is no std::string, without making one
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

struct Registry {
  std::shared_mutex lock;
  std::vector<aj_op*> ops;
  std::unordered_map<std::string, aj_op*, NameHash, std::equal_to<>> by_name;
  std::vector<aj_registrar::PendingKernel*> orphans;  // kernels of ops that nobody has defined yet
  std::vector<aj_registrar::PendingVjp> orphan_vjps;
  std::unordered_map<std::string, int> keys;               // functionality keys by name
  std::unordered_map<std::string, std::string> key_owner;  // the plugins that defined keys
  std::unordered_map<const Vjp*, std::string> vjp_owner;
  const Kernel* fallbacks[64] = {};
  uint64_t fallback_mask = 0;
  std::atomic<const Wrapper*> wrappers[64] = {};  // by key; read without the lock
  std::atomic<uint64_t> wrapped[64] = {};         // how many tensors without strides live, by key
  std::vector<std::string> disabled;
  std::string replacing;  // the plugin that may define again what it has defined

  Registry() {
    keys = {{"lazy", kLazyBit},         {"autograd", kAutogradBit}, {"transform", kTransformBit},
            {"autocast", kAutocastBit}, {"capture", kCaptureBit},   {"function", kFunctionBit},
            {"profiler", kProfilerBit}};
    fallbacks[kAutocastBit] = &autocast_kernel;  // ops that have a cast have the key in their mask
  }
};

Registry& registry();

// All want the lock.
void add_op(aj_op* op);  // with what waited for it; it is the registry's from now on
// Where the functions of an op stand; body NULL: it has none.
void set_functions(aj_op* op, aj_status* (*infer)(void*, aj_call*), aj_kernel_fn body, void* self);
bool is_disabled(const std::string& plugin);
bool defines_again(const std::string& plugin);  // after it was disabled, or in its own place
// A plugin that registers again finds its old ops: they keep their identity and take the new
// functions.
aj_status* adopt_old_ops(aj_registrar* r);         // fails where they have changed
void replace_old_definitions(aj_registrar* r);     // its old kernels go
void drop_wrappers(std::string_view plugin);       // their tensors can only be released from now on
void drop_old_derivatives(const aj_registrar* r);  // of ops that it gives none any more

}  // namespace adjoin

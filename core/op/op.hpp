// core/op/op.hpp: an op as the core keeps it: schema, kind, kernels by key, derivative.
#pragma once
#include <adjoin/abi/autograd.h>
#include <adjoin/abi/op.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/keys.hpp"
#include "core/base/status.hpp"

namespace adjoin {

struct Param {
  std::string name;
  int32_t base = 0, list = 0;
  uint32_t flags = 0;  // AJ_PARAM_...
  uint64_t dtypes = 0;
  char alias = 0;              // letter of "(a)"
  std::string type;            // of an object: the registered type's name, or empty
  aj_value value{};            // default
  std::shared_ptr<void> keep;  // memory behind a list or string default
};

struct Schema {
  std::string text, space, ident, overload, name;  // name = [space::]ident[.overload]
  std::vector<Param> params, results;
  bool writes = false;           // some parameter is "(x!)"
  bool result_is_first = false;  // the result aliases parameter 0, which is written
};
aj_status* parse_schema(std::string_view text, Schema* out);

struct Kernel {
  aj_kernel_fn fn;
  void* self;
  uint32_t flags;  // AJ_KERNEL_..., kKernelBody
  int32_t priority;
  uint64_t dtypes;
  int32_t (*can_run)(void* self, const aj_call* call);
  const Kernel* next;  // the next candidate by priority
  std::string provider, key;
  uint32_t nparams;  // of the schema it was built with
  mutable const Kernel* told =
      nullptr;  // of the first in a chain: the chain that tells listeners, once there was one
  uint64_t alike = 0;  // dtypes of which dense tensors that are alike go to it without a plan
};
constexpr uint32_t kKernelBody = 1u << 31;      // the op's own composite
constexpr uint32_t kKernelFallback = 1u << 30;  // one for every op at a key
constexpr uint32_t kKernelHost = 1u << 29;      // the host's, through copies

// What is computed in where the kernel casts: halves as float32.
inline int work_dtype(const Kernel* k, int compute) {
  bool half = compute == AJ_DT_FLOAT16 || compute == AJ_DT_BFLOAT16;
  return half && (k->flags & AJ_KERNEL_CASTS) ? int(AJ_DT_FLOAT32) : compute;
}

// The derivative of a row or plugin, copied; strings kept.
struct Vjp {
  aj_vjp_def def;
  std::string name;
  std::vector<aj_save> save;
  std::string key;            // "", or the key that an argument must carry
  uint64_t mask = 0;          // of that key
  const Vjp* next = nullptr;  // another key's
};

using RunFn = aj_status* (*)(aj_op* op, const Kernel* k, uint64_t keys, const aj_value* args,
                             uint32_t nargs, aj_value* rets, uint32_t nrets);

// A value's tag as a bit: tags below 16 as they are, objects from 16 on.
inline uint32_t tag_bit(int32_t tag) { return 1u << ((tag < 32 ? tag : tag - 48) & 31); }

// Word by word: one load of what has just been stored in parts would wait for it.
inline void copy_value(aj_value* to, const aj_value& from) {
  int32_t tag = from.tag;
  uint32_t aux = from.aux;
  uint64_t word = from.v.u;
  asm("" : "+r"(tag), "+r"(aux), "+r"(word));  // the compiler keeps them apart
  to->tag = tag;
  to->aux = aux;
  to->v.u = word;
}

constexpr uint16_t kWaits = 0xffff;  // aj_op.nresults, see waiting.hpp

enum class Kind : uint8_t {
  unary,
  unary_float,
  unary_bool,
  binary,
  binary_float,
  compare,
  pointwise,
  reduce,
  reduce_float,
  reduce_bool,
  reduce_index,
  scan,
  view,
  linear,
  custom
};

}  // namespace adjoin

struct aj_op {
  std::atomic<const adjoin::Kernel*> table[64];  // resolved; NULL leads to resolve()
  std::atomic<uint64_t> mask;                    // keys where this op, or a fallback, has something
  std::atomic<adjoin::RunFn> run;                // that of its kind, or one that tells listeners
  bool writes;                                   // schema.writes
  bool has_look;                 // some argument needs a look before anybody sees it
  bool has_dims, checks_dtypes;  // which look
  uint8_t alike_classes;  // pointwise: bit AJ_CLASS_: tensors alike need no planning, see call.cpp
  uint32_t alike_most;    // elements at most in such a call
  bool alike_bool;        // the result of such a call is bool, not of the tensors' dtype
  std::atomic<const adjoin::Vjp*> vjp;
  adjoin::Kind kind;
  bool ordered, has_body, in_place_ok;
  uint16_t nparams;
  std::atomic<uint16_t> nresults;  // kWaits while its plugin is not loaded: no call is complete
  uint32_t flags;                  // AJ_OP_...
  bool ours;                       // libadjoin's own, or of a file beside it
  uint32_t index;                  // in the registry
  uint32_t cost;                   // ns per 1,000 elements, from the tag
  aj_status* (*infer)(void* self, aj_call* call);
  aj_kernel_fn body;
  void* self;
  adjoin::Kernel body_kernel;
  adjoin::Schema schema;
  std::string doc, kind_name, tags, test, provider;
  // Read off the schema once:
  uint8_t noperands,
      operands[15];     // parameters that are tensors or numbers to compute with, outputs apart
  bool fixed_operands;  // one of them has a dtype of its own: a condition, an index
  int8_t p_dim, p_keepdim, p_dtype,
      p_rounding;          // places of parameters with a meaning to the core; -1
  bool real_result;        // tag: a complex input gives a real result
  uint32_t dim_params;     // bit i: parameter i is a dimension, or several
  uint32_t size_params;    // bit i: parameter i is one size, so not negative
  uint64_t dtypes_ok[32];  // per parameter: a mask of the dtypes its tensors may have
  uint32_t tags_ok[32];    // per parameter: which value tags it takes as they are, see tag_bit
  uint32_t results_ok[8];  // per result: which tags a kernel may give
  bool crosses_devices;    // tag: arguments may be on different devices
  bool keeps_order;        // its results are as good in any order of memory: see order.hpp
  uint64_t tensor_params;  // bit i: parameter i is a tensor, an operand or a list of tensors
  uint32_t grad_results;   // bit i: result i may carry a gradient
  uint8_t autocast[24];    // by device type - 1: a Cast of autocast.hpp
  uint8_t dim_extra;       // tag "dim:+1": dimensions may point one past the last
  std::vector<const adjoin::Kernel*> kernels;  // all registered, under the registry's lock
  std::atomic<const adjoin::Vjp*>
      keyed_vjps;  // derivatives by keys below autograd, the newest first
};

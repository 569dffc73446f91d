// extensions/transform/jvp.hpp: the derivative of one call along tangents, by the rule of its op.
#pragma once
#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <functional>
#include <memory>

#include "level.hpp"

namespace adjoin::transform::jvp {

// A call that has run, on values of the level below: arguments complete, as a kernel sees them.
struct Forward {
  const aj_op* op;
  const aj_value* args;
  const aj_value* rets;
  uint32_t nargs, nrets;
  std::span<const Tensor> tangents;  // one per flattened input; undefined: zero
  std::span<Tensor> out;             // one per flattened result, to be filled; undefined: zero

  bool moves(uint32_t input) const { return tangents[input].defined(); }
};

enum class How : uint8_t {
  zero,         // comparisons, indices, what is drawn
  body,         // the op's own composite, run on duals: not served here
  elementwise,  // the derivative of a result's element is the gradient's formula read the other way
  each,         // linear in every tensor, one by one: products
  joint,        // linear in all tensors together
  view,
  reduced,  // each result has elements of its own: the gradient of ones, times the tangent, summed
  given,    // by a plugin
  twice,    // the derivative of the gradient's formula by the gradient
  written
};

struct Rule {
  How how = How::twice;
  bool holomorphic = false;   // elementwise, and right for complex numbers, too
  bool writes_first = false;  // "Tensor(a!) x) -> Tensor(a!)"
  bool needs_order = false;   // a view that looks at the order of memory
  uint32_t nparams = 0;
  uint64_t only = ~uint64_t(0);    // each: the arguments in which it is linear
  std::vector<int32_t> kind;       // per parameter: Place
  int32_t dim = -1, keepdim = -1;  // reduced: their parameters
  void (*fn)(const Forward&) = nullptr;
  const aj_jvp_def* given = nullptr;  // a plugin's
};
enum Place : int32_t { kNoTensor, kOne, kSeveral };

const Rule& rule_of(const aj_op* op);

// How many inputs and results a call has when lists are taken apart.
uint32_t count_inputs(const Rule& rule, const aj_value* args, uint32_t nargs);
uint32_t count_results(const aj_value* rets, uint32_t nrets);

// f(tensor or NULL, number of the flattened input, parameter, place in its list) for each.
template <class F>
void each_input(const Rule& rule, const aj_value* args, uint32_t nargs, F&& f) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < rule.nparams; i++) {
    if (rule.kind[i] == kNoTensor) continue;
    const aj_value v = i < nargs ? args[i] : aj_value{};
    if (v.tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < v.aux; j++) f(v.v.tensors[j], at++, i, j);
    } else if (rule.kind[i] == kOne) {
      f(v.tag == AJ_TENSOR ? v.v.tensor : nullptr, at++, i, 0u);
    }
  }
}
template <class F>
void each_result(const aj_value* rets, uint32_t nrets, F&& f) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < nrets; i++) {
    uint32_t n = 1;
    const aj_value* items =
        rets[i].tag == AJ_LIST_OBJ ? kit::env.core->list_get(rets[i].v.object, &n) : &rets[i];
    for (uint32_t j = 0; j < n; j++)
      f(items[j].tag == AJ_TENSOR ? items[j].v.tensor : nullptr, at++);
  }
}

// The gradient of f's op, with other arguments if need be: apply_vjp of abi/transform.h.
void gradient(const Forward& f, const aj_value* args, aj_tensor* const* grad_out,
              const uint8_t* needs, aj_tensor** grads);

// The gradient of one input alone, for that of one result.
Tensor pulled(const Forward& f, const aj_value* args, uint32_t input, const Tensor& g);

// Fills f.out by any rule but `body`.
void differentiate(const Rule& rule, const Forward& f);

const aj_jvp_def* given_rule(std::string_view op);  // jvp_given.cpp; NULL: none
void apply_given(const Rule& rule, const Forward& f);
void derivative_twice(const Rule& rule, const Forward& f);  // jvp_twice.cpp
// The derivative along tangents (undefined: zero) of a function that has this gradient.
using Pull =
    std::function<void(aj_tensor* const* grad_out, const uint8_t* needs, aj_tensor** grads)>;
void along_twice(std::span<aj_tensor* const> inputs, std::span<const Tensor> tangents,
                 std::span<aj_tensor* const> results, std::span<Tensor> out, const Pull& pull);
struct Written {
  std::string_view op;
  How how;
  void (*rule)(const Forward&);  // of How::written
};
const Written* written_rule(std::string_view op);  // jvp_written.cpp; NULL: none

// An op's first result; the arguments are values.
Tensor call_with(const aj_op* op, std::span<const aj_value> args, uint32_t nrets = 1,
                 uint32_t result = 0);
Tensor cast(const Tensor& t, DLDataType dtype);
inline Tensor plus(const Tensor& a, const Tensor& b) {  // undefined is zero
  return !a.defined() ? b : !b.defined() ? a : a + b;
}

}  // namespace adjoin::transform::jvp

// core/call/look.hpp: arguments that need a look before anybody sees them: dimensions that may
// count from the end, sizes, tensors of certain dtypes. slow.cpp changes what is more than counted
// back.
#pragma once
#include "core/call/slow.hpp"
#include "core/op/op.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

// How many dimensions args[0] lets others count; 0: look closer.
inline int64_t dims_of_first(const aj_op* op, const aj_value* args) {
  if (args[0].tag == AJ_TENSOR) return args[0].v.tensor->dl.ndim + op->dim_extra;
  if (args[0].tag != AJ_TENSORS || !args[0].aux || !args[0].v.tensors[0]) return 0;
  return args[0].v.tensors[0]->dl.ndim + op->dim_extra;
}

// Dimensions that count from the front and are there, sizes that are not negative, and tensors of
// the dtypes asked for: nothing is to be changed.
[[gnu::always_inline]] inline bool is_settled(const aj_op* op, const aj_value* args,
                                              uint32_t nargs) {
  for (uint32_t left = op->size_params; left; left &= left - 1) {
    const aj_value& v = args[__builtin_ctz(left)];
    if (v.tag == AJ_INT && v.v.i < 0) return false;
  }
  if (op->dim_params) {
    auto ndim = uint64_t(dims_of_first(op, args));
    for (uint32_t left = op->dim_params; left; left &= left - 1) {
      const aj_value& v = args[__builtin_ctz(left)];
      if (v.tag == AJ_INT && uint64_t(v.v.i) >= ndim) return false;
      if (v.tag == AJ_INTS)
        for (uint32_t j = 0; j < v.aux; j++)
          if (uint64_t(v.v.ints[j]) >= ndim) return false;
    }
  }
  if (op->checks_dtypes)
    for (uint32_t i = 0; i < nargs; i++) {
      if (args[i].tag == AJ_TENSORS) return false;
      if (args[i].tag == AJ_TENSOR && !(op->dtypes_ok[i] >> priv(args[i].v.tensor).dtype & 1))
        return false;
    }
  return true;
}

// Few arguments where nothing but dimensions that count from the end is to be changed: the
// commonest change.
struct CountedBack {
  static constexpr uint32_t kMost = 6;
  aj_value args[kMost];
  int64_t ints[kMost];
  CountedBack() {}  // nothing is initialised
  // Is all as it should be? So it is once *given points at what was counted back.
  [[gnu::always_inline]] bool settle(const aj_op* op, const aj_value** given, uint32_t nargs) {
    if (is_settled(op, *given, nargs)) return true;
    if (!take(op, *given, nargs)) return false;
    *given = args;
    return true;
  }
  [[gnu::noinline]] bool take(const aj_op* op, const aj_value* from, uint32_t nargs) {
    int64_t ndim = (from[0].tag == AJ_TENSOR ? from[0].v.tensor->dl.ndim : dims_of(from, nargs)) +
                   op->dim_extra;
    if (op->checks_dtypes || nargs > kMost || ndim == 0) return false;
    for (uint32_t i = 0; i < nargs; i++) copy_value(&args[i], from[i]);
    auto front = [ndim](int64_t* d) {
      if (*d < 0) *d += ndim;
      return uint64_t(*d) < uint64_t(ndim);
    };
    uint32_t used = 0;
    for (uint32_t left = op->dim_params; left; left &= left - 1) {
      aj_value& v = args[__builtin_ctz(left)];
      if (v.tag == AJ_INT && !front(&v.v.i)) return false;
      if (v.tag != AJ_INTS) continue;
      if (v.aux > kMost - used) return false;
      int64_t* to = ints + used;
      for (uint32_t j = 0; j < v.aux; j++)
        if (!front(&(to[j] = v.v.ints[j]))) return false;
      v.v.ints = to;
      used += v.aux;
    }
    for (uint32_t left = op->size_params; left; left &= left - 1)
      if (const aj_value& v = args[__builtin_ctz(left)]; v.tag == AJ_INT && v.v.i < 0) return false;
    return true;
  }
};

}  // namespace adjoin

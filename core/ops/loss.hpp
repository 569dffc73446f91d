// core/ops/loss.hpp: from the losses of elements to what a loss returns.
#pragma once
#include "core/ops/make.hpp"

namespace adjoin::ops {

inline void check_reduction(std::string_view how) {
  if (how != "mean" && how != "sum" && how != "none")
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                  "reduction must be 'mean', 'sum' or 'none', it is '", how, "'");
}
inline Tensor reduced(const Tensor& each, std::string_view how) {
  check_reduction(how);
  return how == "mean" ? mean(each) : how == "sum" ? sum(each) : each;
}

// Is there something to look at? A meta tensor has only a shape.
inline bool has_values(const Tensor& t) {
  return t.numel() > 0 &&
         kit::view_of(kit::env.core->device_name(t.device().device_type)) != "meta";
}

// Somebody found a class that is not there: says which element of the target, its value and what is
// allowed. `passed_over` may stand there because of `why`.
[[noreturn]] void raise_target(const Tensor& target, int64_t classes, int64_t passed_over = 0,
                               std::string_view why = {});

}  // namespace adjoin::ops

// adjoin/kit/losses.hpp: from the losses of elements to what a loss returns.
#ifndef ADJOIN_KIT_LOSSES_HPP
#define ADJOIN_KIT_LOSSES_HPP
#include <adjoin/kit/make.hpp>

namespace adjoin {
namespace AJ_HIDDEN ops {

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
[[noreturn]] inline void raise_target(const Tensor& target, int64_t classes,
                                      int64_t passed_over = 0, std::string_view why = {}) {
  NoGradGuard off;
  Tensor flat = reshape(target, {-1});
  Tensor wrong = logical_and(ne(flat, passed_over), logical_or(lt(flat, 0), ge(flat, classes)));
  int64_t at = select(reshape(nonzero(wrong), {-1}), 0, 0).item<int64_t>();
  kit::raise(AJ_OUT_OF_RANGE, "element ", at, " of target is ", select(flat, 0, at).item<int64_t>(),
             ": input has ", classes, " classes, so targets are 0 to ", classes - 1,
             why.empty() ? "" : kit::text(", or ", passed_over, " (", why, ")"));
}

}  // namespace ops
}  // namespace adjoin
#endif

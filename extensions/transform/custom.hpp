// extensions/transform/custom.hpp: a function with a derivative of its own, as it is applied at one
// level.
#pragma once
#include <adjoin/abi/custom.h>

#include <memory>

#include "level.hpp"

namespace adjoin::transform {

// A call of a function: an input is an argument, whatever it is. Tensors are borrowed.
struct Applied {
  std::span<const aj_value> args, rets;  // rets: tensors
  aj_tensor* input(size_t i) const { return args[i].tag == AJ_TENSOR ? args[i].v.tensor : nullptr; }
};

// What is applied: a plugin's function, or one whose parts see one sample each.
class Function {
 public:
  explicit Function(const aj_custom_def& d) : def_(d) {}
  virtual ~Function() = default;
  const aj_custom_def& def() const { return def_; }
  std::string_view name() const { return view_of(def_.name); }
  virtual bool maps() const = 0;  // it is one over samples

  virtual std::vector<Tensor> forward(std::span<const aj_value> args, uint32_t nrets) const = 0;
  // One gradient for each input, of its shape and dtype; undefined: zero.
  virtual std::vector<Tensor> gradient(const Applied& call, std::span<aj_tensor* const> grad_out,
                                       const uint8_t* needs) const = 0;
  // One tangent for each result; undefined: zero.
  virtual std::vector<Tensor> push(const Applied& call, std::span<const Tensor> tangents) const = 0;

 private:
  const aj_custom_def& def_;
};
using SharedFunction = std::shared_ptr<const Function>;

SharedFunction given_function(const aj_custom_def& d);
// f of samples: dims[i] is 0 where input i has them in front, else -1.
SharedFunction mapped_function(SharedFunction f, std::vector<int32_t> dims, const Level& l);

aj_status* custom_apply(const aj_custom_def* f, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets);

}  // namespace adjoin::transform

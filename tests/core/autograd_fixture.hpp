// tests/core/autograd_fixture.hpp: tensors, gradients and messages for tests of
// the tape.
#pragma once
#include <adjoin/abi/capi.h>
#include <gtest/gtest.h>

#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/ops.hpp>
#include <string>
#include <vector>

namespace adjoin::test {

using Doubles = std::vector<double>;

class Tape : public testing::Test {
 protected:
  void SetUp() override {
    kit::bind(aj_get_interface);
    home = device("reference");
  }
  Tensor numbers(int64_t n) { return arange(1, double(n + 1), 1, float64, home); }
  Tensor leaf(int64_t n) { return numbers(n).requires_grad_(); }
  DLDevice home;
};

inline Doubles elements(const Tensor& t) {
  if (!t.defined()) return {};
  Tensor flat = contiguous(t.detach());
  return {flat.data<double>(), flat.data<double>() + flat.numel()};
}

// The message of what f throws; "" if it does not.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

inline std::vector<Tensor> gradients(const Tensor& root, const std::vector<Tensor>& inputs,
                                     uint32_t flags = 0) {
  std::vector<aj_tensor*> in, out(inputs.size(), nullptr);
  for (const Tensor& t : inputs) in.push_back(t.get());
  aj_tensor* roots[] = {root.get()};
  aj_backward run{};
  run.struct_size = sizeof run;
  run.flags = flags;
  run.roots = roots;
  run.nroots = 1;
  run.inputs = in.data();
  run.ninputs = uint32_t(in.size());
  run.out = out.data();
  kit::check(kit::env.autograd->backward(&run));
  std::vector<Tensor> found;
  for (aj_tensor* t : out) found.push_back(Tensor::steal(t));
  return found;
}

}  // namespace adjoin::test

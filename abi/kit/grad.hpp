// adjoin/kit/grad.hpp: writing a derivative with dispatched ops, so that it can be differentiated
// again.
#ifndef ADJOIN_KIT_GRAD_HPP
#define ADJOIN_KIT_GRAD_HPP
#include <adjoin/kit/call.hpp>

namespace AJ_HIDDEN adjoin {
namespace kit {

// What a derivative sees: saved values by place, gradients of the results, and which gradients are
// wanted.
class Grad : public Values {
 public:
  explicit Grad(aj_grad_call* call) : Values(call->saved), call_(call) {}
  aj_grad_call* call() const { return call_; }
  const Tensor& grad(uint32_t i) const {
    return Tensor::view(call_->grad_out[i]);
  }  // undefined: zero
  Tensors grads() const {
    return Tensors(reinterpret_cast<const Tensor*>(call_->grad_out), call_->ngrad_out);
  }
  uint32_t inputs() const { return call_->ngrad_in; }
  bool need(uint32_t i) const { return call_->needs[i] != 0; }
  bool needs_any(uint32_t begin, uint32_t end) const {
    for (; begin < end; ++begin)
      if (need(begin)) return true;
    return false;
  }
  void set(uint32_t i, Tensor t) const {
    if (need(i)) call_->grad_in[i] = t.take();
  }

 private:
  aj_grad_call* call_;
};

template <class F>
aj_status* derive(aj_grad_call* call, F&& f) {
  return guard(std::string_view(), [&] {
    Grad grad(call);
    f(grad);
  });
}
template <void (*F)(Grad&)>
aj_status* derivative(void*, aj_grad_call* call) {
  return derive(call, F);
}

[[noreturn]] inline void no_derivative(std::string_view op, std::string_view input) {
  raise_as("NotImplementedError", AJ_UNIMPLEMENTED, op, ": there is no derivative for '", input,
           "'; detach it");
}

inline void save_device(struct aj_saver* saver, const aj_value& argument) {
  aj_value v{};
  if (argument.tag == AJ_TENSOR) v = value(argument.v.tensor->dl.device);
  check(env.autograd->save(saver, &v));
}

inline int64_t size_at(std::span<const int64_t> shape, int64_t dim) {
  return shape[size_t(dim < 0 ? dim + int64_t(shape.size()) : dim)];
}
inline int64_t count(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}
inline bool is_complex_dtype(DLDataType d) { return d.code == kDLComplex; }
inline bool is_floating_dtype(DLDataType d) { return d.code == kDLFloat || d.code == kDLBfloat; }

// A number where an op wants a tensor: 0-dim, of like's kind and place.
inline Tensor as_tensor(const Operand& x, const Tensor& like) {
  if (x.is_tensor() || x.is_none()) return x.tensor();
  static constinit Op op("full");
  const aj_value args[] = {value(Ints(nullptr, 0)), x.value(), value(like.dtype()),
                           value(like.device())};
  return run(op.get(), args, 4);
}

// conj in formulas: a real tensor is its own conjugate, without a call.
inline Tensor conj(const Tensor& t) {
  if (!t.is_complex()) return t;
  static constinit Op op("conj");
  const aj_value arg = value(t);
  return run(op.get(), &arg, 1);
}
inline Scalar conj(const Scalar& s) { return adjoin::conj(s); }
class HeldOperand : public Operand {  // keeps alive what it stands for
 public:
  HeldOperand(const Scalar& s) : Operand(s) {}
  HeldOperand(Tensor t) : Operand(t), keep_(std::move(t)) {}

 private:
  Tensor keep_;
};
inline HeldOperand conj(const Operand& x) {
  if (x.is_tensor()) return kit::conj(x.tensor());  // ops.hpp has another
  return adjoin::conj(x.number());
}

}  // namespace kit
}  // namespace adjoin
#endif

// plugins/reference/optimizer.cpp: steps of optimizers, one tensor and one element after the other,
// in the arithmetic of the dtype (halves in float).
#include <cmath>
#include <optional>

#include "element.hpp"

namespace adjoin::reference {
namespace {

using List = std::span<aj_tensor* const>;

// The i-th tensor of a list as numbers, written back at the end; zeros where the list is empty.
template <class T>
class Numbers {
 public:
  Numbers(List list, size_t i, int64_t n, bool write) : none_(size_t(n)) {
    if (list.empty()) return;
    dense_.emplace(MutView(list[i]), true);
    write_ = write;
  }
  ~Numbers() {
    if (write_) dense_->commit();
  }
  T& operator[](int64_t i) { return dense_ ? (*dense_)[i] : none_[size_t(i)]; }

 private:
  std::vector<T> none_;
  std::optional<Dense<T>> dense_;
  bool write_ = false;
};

template <class F>
void each_tensor(List params, F f) {
  for (size_t i = 0; i < params.size(); ++i)
    visit_math<stored_floating>(TensorView(params[i]).dtype(), [&]<class T>() {
      f.template operator()<T>(i, TensorView(params[i]).numel());
    });
}

void fused_sgd(Args args) {
  double lr = args.real(3), momentum = args.real(4), damp = args.real(5), decay = args.real(6);
  bool nesterov = args.flag(7), maximize = args.flag(8), first = args.flag(9);
  List kept = momentum != 0 ? args.tensors(2) : List();
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    Numbers<T> p(args.tensors(0), i, n, true), g(args.tensors(1), i, n, false), v(kept, i, n, true);
    for (int64_t k = 0; k < n; ++k) {
      T grad = maximize ? -g[k] : g[k];
      if (decay != 0) grad = grad + T(decay) * p[k];
      if (momentum != 0) {
        v[k] = first ? grad : v[k] * T(momentum) + grad * T(1 - damp);
        grad = nesterov ? grad + T(momentum) * v[k] : v[k];
      }
      p[k] = p[k] - T(lr) * grad;
    }
  });
}

void fused_adam(Args args) {
  double lr = args.real(6), beta1 = args.real(7), beta2 = args.real(8), eps = args.real(9),
         decay = args.real(10);
  bool decoupled = args.flag(11), maximize = args.flag(12), amsgrad = !args.tensors(4).empty();
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    Dense<double> steps(MutView(args.tensors(5)[i]), true);
    double count = steps[0] += 1;
    steps.commit();
    T step = T(lr / (1 - std::pow(beta1, count))),
      root = T(1 / std::sqrt(1 - std::pow(beta2, count)));
    Numbers<T> p(args.tensors(0), i, n, true), g(args.tensors(1), i, n, false),
        m(args.tensors(2), i, n, true), v(args.tensors(3), i, n, true),
        top(args.tensors(4), i, n, true);
    for (int64_t k = 0; k < n; ++k) {
      T grad = maximize ? -g[k] : g[k];
      if (decoupled) p[k] = p[k] * T(1 - lr * decay);
      if (!decoupled && decay != 0) grad = grad + T(decay) * p[k];
      m[k] = m[k] + (grad - m[k]) * T(1 - beta1);
      v[k] = v[k] * T(beta2) + grad * grad * T(1 - beta2);
      T used = v[k];
      if (amsgrad) used = top[k] = top[k] > used || std::isnan(top[k]) ? top[k] : used;
      p[k] = p[k] - step * m[k] / (std::sqrt(used) * root + T(eps));
    }
  });
}

void fused_scale(Args args) {
  double by = Dense<double>(args.tensor(1))[0];
  each_tensor(args.tensors(0), [&]<class T>(size_t i, int64_t n) {
    Numbers<T> x(args.tensors(0), i, n, true);
    for (int64_t k = 0; k < n; ++k) x[k] = x[k] * T(by);
  });
}

}  // namespace

AJ_KERNELS(optimizer_kernels) = {
    {"fused_sgd_", custom<fused_sgd, stored_floating>},
    {"fused_adam_", custom<fused_adam, stored_floating>},
    {"fused_scale_", custom<fused_scale, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::reference

// adjoin/nn/losses.hpp: losses as modules, for who keeps one in a network; each is the op of its
// name.
#ifndef ADJOIN_NN_LOSSES_HPP
#define ADJOIN_NN_LOSSES_HPP
#include <adjoin/nn/linear.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

// A loss of an input and a target that is reduced: "mean", "sum" or "none".
template <Tensor (*Op)(const Tensor&, const Tensor&, std::string_view, Here)>
struct Loss final : Plain<Loss<Op>> {
  std::string reduction;
  explicit Loss(std::string how = "mean") : reduction(std::move(how)) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return Op(x, y, reduction, here);
  }
};
using MSELoss = Loss<mse_loss>;
using L1Loss = Loss<l1_loss>;
using SoftMarginLoss = Loss<soft_margin_loss>;

// One that has a number besides: where the square becomes a line.
template <Tensor (*Op)(const Tensor&, const Tensor&, std::string_view, double, Here)>
struct NumberLoss final : Plain<NumberLoss<Op>> {
  std::string reduction;
  double number;
  explicit NumberLoss(std::string how = "mean", double x = 1)
      : reduction(std::move(how)), number(x) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return Op(x, y, reduction, number, here);
  }
};
using SmoothL1Loss = NumberLoss<smooth_l1_loss>;
using HuberLoss = NumberLoss<huber_loss>;

struct ClassLossOptions {
  Tensor weight = {};  // of each class
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;  // of cross entropy
};

// Logits (N, C, *) and classes (N, *), or probabilities like the logits.
struct CrossEntropyLoss final : Module<CrossEntropyLoss> {
  Buffer weight;
  ClassLossOptions options;
  explicit CrossEntropyLoss(ClassLossOptions o = {}) : weight(o.weight), options(o) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return cross_entropy(x, y, weight, options.ignore_index, options.reduction,
                         options.label_smoothing, here);
  }
  static constexpr auto fields() { return Fields<&CrossEntropyLoss::weight>(); }
};

// Log-probabilities (N, C, *) and classes (N, *).
struct NLLLoss final : Module<NLLLoss> {
  Buffer weight;
  ClassLossOptions options;
  explicit NLLLoss(ClassLossOptions o = {}) : weight(o.weight), options(o) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return nll_loss(x, y, weight, options.ignore_index, options.reduction, here);
  }
  static constexpr auto fields() { return Fields<&NLLLoss::weight>(); }
};

struct BinaryLossOptions {
  Tensor weight = {}, pos_weight = {};  // pos_weight: of BCEWithLogitsLoss
  std::string reduction = "mean";
};

// Probabilities and targets in [0, 1].
struct BCELoss final : Module<BCELoss> {
  Buffer weight;
  std::string reduction;
  explicit BCELoss(BinaryLossOptions o = {}) : weight(o.weight), reduction(o.reduction) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return binary_cross_entropy(x, y, weight, reduction, here);
  }
  static constexpr auto fields() { return Fields<&BCELoss::weight>(); }
};

// Logits and targets in [0, 1].
struct BCEWithLogitsLoss final : Module<BCEWithLogitsLoss> {
  Buffer weight, pos_weight;
  std::string reduction;
  explicit BCEWithLogitsLoss(BinaryLossOptions o = {})
      : weight(o.weight), pos_weight(o.pos_weight), reduction(o.reduction) {}
  Tensor operator()(const Tensor& x, const Tensor& y, Here here = Here::current()) const {
    return binary_cross_entropy_with_logits(x, y, weight, reduction, pos_weight, here);
  }
  static constexpr auto fields() {
    return Fields<&BCEWithLogitsLoss::weight, &BCEWithLogitsLoss::pos_weight>();
  }
};

}  // namespace nn
}  // namespace adjoin
#endif

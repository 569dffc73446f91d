// adjoin/nn/norm.hpp: normalization over the batch (Ioffe and Szegedy, 2015) and of each example by
// itself.
#ifndef ADJOIN_NN_NORM_HPP
#define ADJOIN_NN_NORM_HPP
#include <adjoin/nn/linear.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // nothing: the plain mean over all batches
  bool affine = true, track_running_stats = true;
};

// What batch and instance norms hold: affine parameters and running statistics per channel.
struct Statistics {
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;
  bool training = true;

  Statistics(int64_t channels, const BatchNormOptions& o) {
    if (o.affine) weight = ones({channels}), bias = zeros({channels});
    if (!o.track_running_stats) return;
    running_mean = zeros({channels}), running_var = ones({channels});
    num_batches_tracked = zeros(Ints({}), int64);
  }
};

// Per channel, dimension 1: training by the batch's own statistics, keeping running ones;
// evaluation by those.
template <int Dims>
struct BatchNorm final : Module<BatchNorm<Dims>>, Statistics {
  BatchNormOptions options;

  explicit BatchNorm(int64_t channels, BatchNormOptions o = {})
      : Statistics(channels, o), options(o) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) {
    if (x.ndim() != Dims + 2 && !(Dims == 1 && x.ndim() == 2))
      kit::check(kit::fail(AJ_INVALID_ARGUMENT, "BatchNorm", Dims, "d: the input has ", x.ndim(),
                           " dimensions; wanted: ", Dims + 2),
                 here);
    double factor = options.momentum.value_or(0);
    if (training && num_batches_tracked.defined()) {
      NoGradGuard off;
      add_(num_batches_tracked, 1);
      if (!options.momentum) factor = 1 / num_batches_tracked.item<double>();
    }
    bool own = training || !running_mean.defined();
    return batch_norm(x, running_mean, running_var, weight, bias, own, factor, options.eps, here);
  }
  static constexpr auto fields() {
    using B = BatchNorm;
    return Fields<&B::weight, &B::bias, &B::running_mean, &B::running_var,
                  &B::num_batches_tracked>();
  }
};
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

// Each channel of each example by itself (Ulyanov et al., 2016): (N, C, *) or (C, *).
template <int Dims>
struct InstanceNorm final : Module<InstanceNorm<Dims>>, Statistics {
  BatchNormOptions options;

  explicit InstanceNorm(int64_t channels,
                        BatchNormOptions o = {.affine = false, .track_running_stats = false})
      : Statistics(channels, o), options(o) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    bool single = x.ndim() == Dims + 1;
    Tensor out = instance_norm(single ? unsqueeze(x, 0, here) : x, running_mean, running_var,
                               weight, bias, training || !running_mean.defined(),
                               options.momentum.value_or(0), options.eps, here);
    return single ? squeeze(out, 0) : out;
  }
  static constexpr auto fields() {
    using I = InstanceNorm;
    return Fields<&I::weight, &I::bias, &I::running_mean, &I::running_var,
                  &I::num_batches_tracked>();
  }
};
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

struct NormOptions {
  double eps = 1e-5;
  bool affine = true, bias = true;
};

// Over the last dimensions, those of `shape` (Ba et al., 2016).
struct LayerNorm final : Module<LayerNorm> {
  Parameter weight, bias;
  std::vector<int64_t> shape;
  double eps;

  explicit LayerNorm(const Ints& normalized_shape, NormOptions o = {})
      : shape(normalized_shape.vec()), eps(o.eps) {
    if (o.affine) weight = ones(shape);
    if (o.affine && o.bias) bias = zeros(shape);
  }
  explicit LayerNorm(int64_t width, NormOptions o = {}) : LayerNorm(Ints({width}), o) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return layer_norm(x, shape, weight, bias, eps, here);
  }
  static constexpr auto fields() { return Fields<&LayerNorm::weight, &LayerNorm::bias>(); }
};

// Each of so many groups of channels over itself (Wu and He, 2018): (N, C, *).
struct GroupNorm final : Module<GroupNorm> {
  Parameter weight, bias;
  int64_t groups;
  double eps;

  GroupNorm(int64_t num_groups, int64_t channels, NormOptions o = {})
      : groups(num_groups), eps(o.eps) {
    if (groups <= 0 || channels % groups)
      kit::raise(AJ_INVALID_ARGUMENT, "GroupNorm: ", channels, " channels cannot be cut into ",
                 groups, " groups");
    if (o.affine) weight = ones({channels});
    if (o.affine && o.bias) bias = zeros({channels});
  }
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return group_norm(x, groups, weight, bias, eps, here);
  }
  static constexpr auto fields() { return Fields<&GroupNorm::weight, &GroupNorm::bias>(); }
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  // nothing: the machine epsilon of the input's dtype
  bool affine = true;
};

// x / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang and Sennrich, 2019).
struct RMSNorm final : Module<RMSNorm> {
  Parameter weight;
  std::vector<int64_t> shape;
  std::optional<double> eps;

  explicit RMSNorm(const Ints& normalized_shape, RMSNormOptions o = {})
      : shape(normalized_shape.vec()), eps(o.eps) {
    if (o.affine) weight = ones(shape);
  }
  explicit RMSNorm(int64_t width, RMSNormOptions o = {}) : RMSNorm(Ints({width}), o) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return rms_norm(x, shape, weight, eps, here);
  }
  static constexpr auto fields() { return Fields<&RMSNorm::weight>(); }
};

}  // namespace nn
}  // namespace adjoin
#endif

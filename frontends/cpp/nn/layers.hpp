// adjoin/nn/layers.hpp: layers without tensors of their own: activations, dropout, pooling (and
// PReLU, which has one).
#ifndef ADJOIN_NN_LAYERS_HPP
#define ADJOIN_NN_LAYERS_HPP
#include <adjoin/nn/conv.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

// An op of one tensor as a layer.
template <Tensor (*Op)(const Tensor&, Here)>
struct Function final : Plain<Function<Op>> {
  Tensor operator()(const Tensor& x, Here here = Here::current()) const { return Op(x, here); }
};
using ReLU = Function<relu>;
using ReLU6 = Function<relu6>;
using SELU = Function<selu>;
using SiLU = Function<silu>;
using Mish = Function<mish>;
using Hardswish = Function<hardswish>;
using Hardsigmoid = Function<hardsigmoid>;
using LogSigmoid = Function<logsigmoid>;
using Sigmoid = Function<sigmoid>;
using Tanh = Function<tanh>;
using Softsign = Function<softsign>;
using Tanhshrink = Function<tanhshrink>;

// An op of a tensor and a number.
template <Tensor (*Op)(const Tensor&, double, Here), int Thousandths>
struct NumberFunction final : Plain<NumberFunction<Op, Thousandths>> {
  double number;
  explicit NumberFunction(double x = Thousandths / 1000.0) : number(x) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return Op(x, number, here);
  }
};
using ELU = NumberFunction<elu, 1000>;
using CELU = NumberFunction<celu, 1000>;
using LeakyReLU = NumberFunction<leaky_relu, 10>;
using Hardshrink = NumberFunction<hardshrink, 500>;
using Softshrink = NumberFunction<softshrink, 500>;

struct GELU final : Plain<GELU> {
  std::string approximate;  // "none" or "tanh"
  explicit GELU(std::string how = "none") : approximate(std::move(how)) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return gelu(x, approximate, here);
  }
};

struct Softplus final : Plain<Softplus> {
  double beta, linear_above;
  explicit Softplus(double b = 1, double threshold = 20) : beta(b), linear_above(threshold) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return softplus(x, beta, linear_above, here);
  }
};

struct Hardtanh final : Plain<Hardtanh> {
  double low, high;
  explicit Hardtanh(double min_val = -1, double max_val = 1) : low(min_val), high(max_val) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return hardtanh(x, low, high, here);
  }
};

struct Threshold final : Plain<Threshold> {
  double above, otherwise;
  Threshold(double threshold, double value) : above(threshold), otherwise(value) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return threshold(x, above, otherwise, here);
  }
};

struct PReLU final : Module<PReLU> {
  Parameter weight;
  explicit PReLU(int64_t channels = 1, double start = 0.25) : weight(full({channels}, start)) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return prelu(x, weight, here);
  }
  static constexpr auto fields() { return Fields<&PReLU::weight>(); }
};

struct GLU final : Plain<GLU> {
  int64_t dim;
  explicit GLU(int64_t d = -1) : dim(d) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return glu(x, dim, here);
  }
};

// Softmax and its kin, along one dimension.
template <Tensor (*Op)(const Tensor&, int64_t, std::optional<DLDataType>, Here)>
struct AlongDim final : Plain<AlongDim<Op>> {
  int64_t dim;
  explicit AlongDim(int64_t d) : dim(d) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return Op(x, dim, std::nullopt, here);
  }
};
using Softmax = AlongDim<softmax>;
using LogSoftmax = AlongDim<log_softmax>;
using Softmin = AlongDim<softmin>;

// Zeroes at random while training and scales the rest (Srivastava et al., 2014): elements (Dims 0)
// or whole channels.
template <int Dims>
struct DropoutOf final : Plain<DropoutOf<Dims>> {
  double p;
  bool training = true;

  explicit DropoutOf(double probability = 0.5) : p(probability) {
    if (!(p >= 0 && p <= 1))
      kit::raise(AJ_INVALID_ARGUMENT, "Dropout: the probability is ", p, "; wanted: 0 to 1");
  }
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    if (!training) return x;
    if constexpr (Dims == 0) return dropout(x, p, true, false, here);
    if constexpr (Dims == 1) return dropout1d(x, p, true, here);
    if constexpr (Dims == 2) return dropout2d(x, p, true, here);
    if constexpr (Dims == 3) return dropout3d(x, p, true, here);
  }
};
using Dropout = DropoutOf<0>;
using Dropout1d = DropoutOf<1>;
using Dropout2d = DropoutOf<2>;
using Dropout3d = DropoutOf<3>;

// Pads every spatial side: one number for all, or two for each dimension, the last dimension's
// first.
template <int Dims>
struct Pad final : Plain<Pad<Dims>> {
  std::vector<int64_t> sides;
  std::string mode;
  double value;
  explicit Pad(Extent padding, std::string how = "constant", double with = 0)
      : sides(padding.of(2 * Dims, "Pad")), mode(std::move(how)), value(with) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return pad(x, sides, mode, mode == "constant" ? Scalar(value) : Scalar(), here);
  }
};
using Pad1d = Pad<1>;  // modes: constant, reflect, replicate, circular
using Pad2d = Pad<2>;
using Pad3d = Pad<3>;

struct PoolOptions {
  std::optional<Extent> stride = std::nullopt;  // nothing: the window
  Extent padding = 0, dilation = 1;             // dilation: of maxima only
  bool ceil_mode = false, count_include_pad = true;
};

// What windows have in common.
struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
  PoolOptions options;
  Window(Extent k, PoolOptions o, size_t dims, const char* who)
      : kernel(k.of(dims, who)),
        stride(o.stride.value_or(k).of(dims, who)),
        padding(o.padding.of(dims, who)),
        dilation(o.dilation.of(dims, who)),
        options(o) {}
};

// The largest value of each window.
template <int Dims>
struct MaxPool final : Plain<MaxPool<Dims>>, Window {
  explicit MaxPool(Extent k, PoolOptions o = {}) : Window(k, o, Dims, "MaxPool") {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    bool ceil = options.ceil_mode;
    if constexpr (Dims == 1)
      return max_pool1d(x, kernel, stride, padding, dilation, ceil, false, here);
    if constexpr (Dims == 2)
      return max_pool2d(x, kernel, stride, padding, dilation, ceil, false, here);
    if constexpr (Dims == 3)
      return call("nn::max_pool3d", x, kernel, stride, padding, dilation, ceil);
  }
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

// The mean of each window.
template <int Dims>
struct AvgPool final : Plain<AvgPool<Dims>>, Window {
  explicit AvgPool(Extent k, PoolOptions o = {}) : Window(k, o, Dims, "AvgPool") {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    bool ceil = options.ceil_mode, all = options.count_include_pad;
    if constexpr (Dims == 1) return avg_pool1d(x, kernel, stride, padding, ceil, all, here);
    if constexpr (Dims == 2)
      return avg_pool2d(x, kernel, stride, padding, ceil, all, std::nullopt, here);
    if constexpr (Dims == 3) return call("nn::avg_pool3d", x, kernel, stride, padding, ceil, all);
  }
};
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

// Windows chosen so that the result has a given size.
template <Tensor (*Op)(const Tensor&, const Ints&, Here), int Dims>
struct AdaptivePool final : Plain<AdaptivePool<Op, Dims>> {
  std::vector<int64_t> size;
  explicit AdaptivePool(Extent output_size) : size(output_size.of(Dims, "AdaptivePool")) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return Op(x, size, here);
  }
};
using AdaptiveAvgPool1d = AdaptivePool<adaptive_avg_pool1d, 1>;
using AdaptiveAvgPool2d = AdaptivePool<adaptive_avg_pool2d, 2>;
using AdaptiveMaxPool2d = AdaptivePool<adaptive_max_pool2d, 2>;

}  // namespace nn
}  // namespace adjoin
#endif

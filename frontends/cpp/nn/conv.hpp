// adjoin/nn/conv.hpp: convolutions (cross-correlations, in fact) and their transposes, of one to
// three dimensions.
#ifndef ADJOIN_NN_CONV_HPP
#define ADJOIN_NN_CONV_HPP
#include <adjoin/nn/linear.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

// A size for each spatial dimension; one number stands for all of them.
class Extent {
 public:
  Extent(int64_t all) : sizes_{all} {}
  Extent(std::initializer_list<int64_t> each) : sizes_(each) {}
  std::vector<int64_t> of(size_t dims, const char* who) const {
    if (sizes_.size() == 1) return std::vector<int64_t>(dims, sizes_[0]);
    if (sizes_.size() != dims)
      kit::raise(AJ_INVALID_ARGUMENT, who, ": ", uint64_t(sizes_.size()),
                 " sizes are given; wanted: 1 or ", uint64_t(dims));
    return sizes_;
  }

 private:
  std::vector<int64_t> sizes_;
};

struct ConvOptions {
  Extent stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  bool same = false;  // pads so that the size stays, whatever `padding` says; for stride 1
  std::string padding_mode = "zeros";  // or reflect, replicate, circular
};

namespace detail {

inline void check_channels(const char* who, int64_t in, int64_t out, int64_t groups) {
  if (groups <= 0 || in % groups || out % groups)
    kit::raise(AJ_INVALID_ARGUMENT, who, ": groups must divide the channels: in ", in, ", out ",
               out, ", groups ", groups);
}

}  // namespace detail

// Input (N, in, *) or (in, *), output (N, out, *); weight (out, in / groups, *kernel).
template <int Dims>
struct Conv final : Module<Conv<Dims>> {
  static constexpr const char* kName = Dims == 1 ? "Conv1d" : Dims == 2 ? "Conv2d" : "Conv3d";
  Parameter weight, bias;
  std::vector<int64_t> stride, padding, dilation, pads;  // pads: what pad() does first, or nothing
  int64_t groups;
  std::string mode;

  Conv(int64_t in, int64_t out, Extent kernel, ConvOptions o = {})
      : stride(o.stride.of(Dims, kName)),
        padding(o.padding.of(Dims, kName)),
        dilation(o.dilation.of(Dims, kName)),
        groups(o.groups),
        mode(o.padding_mode == "zeros" ? "constant" : o.padding_mode) {
    detail::check_channels(kName, in, out, groups);
    std::vector<int64_t> size = kernel.of(Dims, kName), after = padding;
    for (int d = 0; o.same && d < Dims; ++d) {
      if (stride[size_t(d)] != 1)
        kit::raise(AJ_INVALID_ARGUMENT, kName, ": the size can stay the same only with stride 1");
      int64_t total = dilation[size_t(d)] * (size[size_t(d)] - 1);
      padding[size_t(d)] = total / 2, after[size_t(d)] = total - total / 2;
    }
    if (mode != "constant" ||
        padding != after) {  // unequal sides, other values: beyond the convolution itself
      for (size_t d = Dims; d-- > 0;) pads.push_back(padding[d]), pads.push_back(after[d]);
      padding.assign(Dims, 0);
    }
    size.insert(size.begin(), {out, in / groups});
    weight = adjoin::empty(size);
    if (o.bias) bias = empty({out});
    init::customary_(weight, bias);
  }
  Tensor operator()(const Tensor& input, Here here = Here::current()) const {
    Tensor x = pads.empty() ? input : pad(input, pads, mode, {}, here);
    if constexpr (Dims == 1)
      return conv1d(x, weight, bias, stride, Ints(padding), dilation, groups, here);
    if constexpr (Dims == 2)
      return conv2d(x, weight, bias, stride, Ints(padding), dilation, groups, here);
    if constexpr (Dims == 3)
      return conv3d(x, weight, bias, stride, Ints(padding), dilation, groups, here);
  }
  static constexpr auto fields() { return Fields<&Conv::weight, &Conv::bias>(); }
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

struct ConvTransposeOptions {
  Extent stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

// The gradient of a convolution as a layer; weight (in, out / groups, *kernel).
template <int Dims>
struct ConvTranspose final : Module<ConvTranspose<Dims>> {
  static constexpr const char* kName = Dims == 1   ? "ConvTranspose1d"
                                       : Dims == 2 ? "ConvTranspose2d"
                                                   : "ConvTranspose3d";
  Parameter weight, bias;
  std::vector<int64_t> stride, padding, extra, dilation;
  int64_t groups;

  ConvTranspose(int64_t in, int64_t out, Extent kernel, ConvTransposeOptions o = {})
      : stride(o.stride.of(Dims, kName)),
        padding(o.padding.of(Dims, kName)),
        extra(o.output_padding.of(Dims, kName)),
        dilation(o.dilation.of(Dims, kName)),
        groups(o.groups) {
    detail::check_channels(kName, in, out, groups);
    std::vector<int64_t> size = kernel.of(Dims, kName);
    size.insert(size.begin(), {in, out / groups});
    weight = adjoin::empty(size);
    if (o.bias) bias = empty({out});
    init::customary_(weight, bias);
  }
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    if constexpr (Dims == 1)
      return conv_transpose1d(x, weight, bias, stride, padding, extra, groups, dilation, here);
    if constexpr (Dims == 2)
      return conv_transpose2d(x, weight, bias, stride, padding, extra, groups, dilation, here);
    if constexpr (Dims == 3)
      return conv_transpose3d(x, weight, bias, stride, padding, extra, groups, dilation, here);
  }
  static constexpr auto fields() { return Fields<&ConvTranspose::weight, &ConvTranspose::bias>(); }
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace nn
}  // namespace adjoin
#endif

// adjoin/nn/linear.hpp: affine layers, tables that are looked up, and layers that only look at
// memory in another way.
#ifndef ADJOIN_NN_LINEAR_HPP
#define ADJOIN_NN_LINEAR_HPP
#include <adjoin/nn/init.hpp>
#include <adjoin/nn/module.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {

struct LinearOptions {
  bool bias = true;
};

// y = x W^T + b: input (*, in), output (*, out), weight (out, in).
struct Linear final : Module<Linear> {
  Parameter weight, bias;

  Linear(int64_t in, int64_t out, LinearOptions o = {}) {
    weight = empty({out, in});
    if (o.bias) bias = empty({out});
    init::customary_(weight, bias);
  }
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return linear(x, weight, bias, here);
  }
  static constexpr auto fields() { return Fields<&Linear::weight, &Linear::bias>(); }
};

// y_k = x1 A_k x2 + b_k: inputs (*, in1) and (*, in2), output (*, out), weight (out, in1, in2).
struct Bilinear final : Module<Bilinear> {
  Parameter weight, bias;

  Bilinear(int64_t in1, int64_t in2, int64_t out, LinearOptions o = {}) {
    double bound = 1 / std::sqrt(double(in1));
    weight = init::uniform_(empty({out, in1, in2}), -bound, bound);
    if (o.bias) bias = init::uniform_(empty({out}), -bound, bound);
  }
  Tensor operator()(const Tensor& a, const Tensor& b, Here here = Here::current()) const {
    return bilinear(a, b, weight, bias, here);
  }
  static constexpr auto fields() { return Fields<&Bilinear::weight, &Bilinear::bias>(); }
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx =
      std::nullopt;  // this row starts at zero and gets no gradient
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
  bool scale_grad_by_freq = false;
};

// Rows of a table by integer index: input (*) of integers, output (*, dim).
struct Embedding final : Module<Embedding> {
  Parameter weight;
  EmbeddingOptions options;

  Embedding(int64_t rows, int64_t dim, EmbeddingOptions o = {}) : options(o) {
    weight = init::normal_(empty({rows, dim}));
    if (!o.padding_idx) return;
    if (*o.padding_idx < -rows || *o.padding_idx >= rows)
      kit::raise(AJ_OUT_OF_RANGE, "Embedding: padding_idx ", *o.padding_idx,
                 " is out of range for ", rows, " rows");
    if (*o.padding_idx < 0) *options.padding_idx += rows;
    init::zeros_(select(weight.detach(), 0, *options.padding_idx));
  }
  Tensor operator()(const Tensor& indices, Here here = Here::current()) const {
    return embedding(indices, weight, options.padding_idx, options.max_norm, options.norm_type,
                     options.scale_grad_by_freq, false, here);
  }
  static constexpr auto fields() { return Fields<&Embedding::weight>(); }
};

// A module that holds no tensors.
template <class Self>
struct Plain : Module<Self> {
  static constexpr auto fields() { return Fields<>(); }
};

struct Identity final : Plain<Identity> {
  Tensor operator()(const Tensor& x) const { return x; }
};

struct Flatten final : Plain<Flatten> {
  int64_t start, end;
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start(start_dim), end(end_dim) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return flatten(x, start, end, here);
  }
};

struct Unflatten final : Plain<Unflatten> {
  int64_t dim;
  std::vector<int64_t> sizes;
  Unflatten(int64_t d, std::vector<int64_t> s) : dim(d), sizes(std::move(s)) {}
  Tensor operator()(const Tensor& x, Here here = Here::current()) const {
    return unflatten(x, dim, sizes, here);
  }
};

}  // namespace nn
}  // namespace adjoin
#endif

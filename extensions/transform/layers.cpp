// extensions/transform/layers.cpp: rules of convolutions and normalizations.
#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "written.hpp"

namespace adjoin::transform {
namespace {

std::vector<int64_t> sizes_of(const Tensor& t) { return {t.shape().begin(), t.shape().end()}; }

// Dimensions d and d + 1 as one.
Tensor merged(const Tensor& t, int64_t d) {
  std::vector<int64_t> sizes = sizes_of(t);
  sizes[size_t(d)] *= sizes[size_t(d + 1)];
  sizes.erase(sizes.begin() + d + 1);
  return reshape(t, sizes);
}
// Dimension d as `first` by what is left.
Tensor divided(const Tensor& t, int64_t d, int64_t first) {
  std::vector<int64_t> sizes = sizes_of(t);
  const int64_t rest = first ? sizes[size_t(d)] / first : 0;
  sizes[size_t(d)] = first;
  sizes.insert(sizes.begin() + d + 1, rest);
  return reshape(t, sizes);
}
// The samples into the channels of images: [B, N, C, ...] to [N, B * C, ...].
Tensor into_channels(const Tensor& t) { return merged(transpose(t, 0, 1), 1); }
// And out of them.
Tensor out_of_channels(const Tensor& t, int64_t size) {
  return transpose(divided(t, 1, size), 0, 1);
}

using Sizes = std::span<const int64_t>;
Sizes sizes_at(const Batch& b, uint32_t i) { return {b.args[i].v.ints, b.args[i].aux}; }

// What the weight at each place is multiplied with: [B, C * K, N * L], K places of a kernel, L of a
// result. x is [B, N, C, ...].
Tensor patches_of(const Tensor& x, Sizes kernel, Sizes stride, Sizes padding, Sizes dilation) {
  const auto d = int64_t(kernel.size());
  Tensor seen = x;
  if (std::ranges::any_of(padding, [](int64_t p) { return p != 0; })) {
    std::vector<int64_t> edges;
    for (int64_t i = d; i-- > 0;) edges.insert(edges.end(), 2, padding[size_t(i)]);
    seen = constant_pad_nd(seen, edges);
  }
  for (int64_t i = 0; i < d; i++) {
    const auto k = size_t(i);
    seen = unfold(seen, 3 + i, (kernel[k] - 1) * dilation[k] + 1, stride[k]);
    if (dilation[k] > 1)
      seen = slice(seen, seen.ndim() - 1, std::nullopt, std::nullopt, dilation[k]);
  }
  std::vector<int64_t> order = {0, 2};  // of B, N, C, the result's dimensions, the kernel's
  for (int64_t i = 0; i < d; i++) order.push_back(3 + d + i);
  order.push_back(1);
  for (int64_t i = 0; i < d; i++) order.push_back(3 + i);
  const Tensor lying = permute(seen, order);
  int64_t rows = 1, columns = 1;
  for (int64_t i = 1; i < lying.ndim(); i++) (i < 2 + d ? rows : columns) *= lying.size(i);
  return reshape(lying, {x.size(0), rows, columns});
}

// The gradient of one weight for each sample, [B, O, C, ...]: a product of the sample's gradient
// [B, N, O, ...] with its patches, of so many samples at a time that these take at most 128 MB.
Tensor weight_gradients(Batch& b, const Tensor& grad, const Tensor& x) {
  const Tensor& weight = b.tensor(2);
  const Sizes kernel = Sizes(weight.shape()).subspan(2);
  const int64_t n = b.size(), out = grad.size(2), places = grad.numel() / (n * out);
  const int64_t of_one = weight.numel() / out * places;
  const int64_t step = std::clamp<int64_t>((int64_t(1) << 25) / std::max<int64_t>(of_one, 1), 1, n);
  const Tensor g = reshape(transpose(grad, 1, 2), {n, out, places});
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < n; first += step) {
    const int64_t end = std::min(n, first + step);
    const Tensor some =
        patches_of(slice(x, 0, first, end), kernel, sizes_at(b, 3), sizes_at(b, 4), sizes_at(b, 5));
    parts.push_back(bmm(slice(g, 0, first, end), transpose(some, 1, 2)));
  }
  std::vector<int64_t> sizes = sizes_of(weight);
  sizes.insert(sizes.begin(), n);
  return reshape(parts.size() == 1 ? parts[0] : cat(parts, 0), sizes);
}

// The call with the samples of its first arguments as more images; of the results the first has
// samples.
void run_on_images(Batch& b, uint32_t arguments) {
  for (uint32_t i = 0; i < arguments; i++) b.set(i, merged(b.spread(i), 0), true);
  b.run();
  b.give(0, divided(b.result(0), 0, b.size()));
  for (uint32_t i = 1; i < b.facts.nresults; i++) b.out_dims[i] = -1;
}

// Whether samples of few images share a weight whose gradient is wanted for each of them.
bool shares_weight(const Batch& b) {
  constexpr int64_t few = 4;
  const kit::Values at(b.args);
  const int64_t images = b.tensor(1).size(b.is_batched(1));
  return !b.is_batched(2) && b.args[9].v.bools[1] && !at.flag(6) && at.integer(8) == 1 &&
         images <= few && !b.tensor(1).is_complex() && b.tensor(0).numel() && b.tensor(1).numel();
}

}  // namespace

// input, weight, bias, ..., groups (8). One weight: the samples are more images. A weight for each:
// more groups.
void rule_convolution(Batch& b) {
  if (b.size() == 0) return rule_loop(b);
  const int64_t n = b.size();
  Tensor bias = b.is_tensor(2) ? b.tensor(2) : Tensor();
  const bool bias_batched = b.is_tensor(2) && b.is_batched(2);
  if (bias.defined()) b.args[2] = aj_value{};
  Tensor made;
  if (!b.is_batched(1)) {
    if (b.is_batched(0)) {
      b.set(0, merged(b.tensor(0), 0), true);
      if (bias.defined() && !bias_batched) b.args[2] = value(bias), bias = Tensor();
      b.run();
      made = divided(b.result(0), 0, n);
    } else {
      b.run();
      made = spread(b.result(0), false, n);
    }
  } else {
    b.set(0, into_channels(b.spread(0)), true);
    b.set(1, merged(b.tensor(1), 0), true);
    b.args[8].v.i *= n;
    b.run();
    made = out_of_channels(b.result(0), n);
  }
  if (bias.defined()) {  // per channel: [B, 1, C, 1, ...]
    std::vector<int64_t> sizes(size_t(made.ndim()), 1);
    sizes[2] = bias.shape()[size_t(bias_batched)];
    if (bias_batched) sizes[0] = n;
    made = made + reshape(bias, sizes);
  }
  b.give(0, made);
}

// grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs: as
// more groups; with one weight whose gradient nobody wants, as more images.
void rule_convolution_backward(Batch& b) {
  if (b.size() == 0) return rule_loop(b);
  const int64_t n = b.size();
  const uint8_t* needs = b.args[9].v.bools;
  if (!b.is_batched(2) && !needs[1] && !needs[2]) return run_on_images(b, 2);
  if (shares_weight(b)) {
    const Tensor grad = b.spread(0), x = b.spread(1);
    const Tensor of_weight = weight_gradients(b, grad, x);
    const bool of_bias = needs[2];
    if (needs[0]) {
      const uint8_t first_alone[] = {1, 0, 0};
      b.args[9].v.bools = first_alone;
      run_on_images(b, 2);
    } else {
      b.give(0, empty({0}, x.dtype(), x.device()), false);
    }
    b.give(1, of_weight);
    if (!of_bias) return b.give(2, empty({0}, x.dtype(), x.device()), false);
    std::vector<int64_t> dims = {1};
    for (int64_t i = 3; i < grad.ndim(); i++) dims.push_back(i);
    return b.give(2, sum(grad, dims));
  }
  b.set(0, into_channels(b.spread(0)), true);
  b.set(1, into_channels(b.spread(1)), true);
  b.set(2, merged(b.spread(2), 0), true);
  b.args[8].v.i *= n;
  b.run();
  if (needs[0])
    b.give(0, out_of_channels(b.result(0), n));
  else
    b.out_dims[0] = -1;
  for (uint32_t i = 1; i < 3; i++) {
    if (needs[i])
      b.give(i, divided(b.result(i), 0, n));
    else
      b.out_dims[i] = -1;
  }
}

// input, normalized_shape, weight, bias, eps: the samples are more rows; weights that differ come
// after.
void rule_layer_norm(Batch& b) {
  const bool weights = b.is_tensor(2) && b.is_batched(2),
             biases = b.is_tensor(3) && b.is_batched(3);
  b.set(0, b.spread(0), true);
  if (!weights && !biases) return b.run();
  Tensor weight = b.is_tensor(2) ? b.tensor(2) : Tensor(),
         bias = b.is_tensor(3) ? b.tensor(3) : Tensor();
  const bool bias_batched = biases;
  b.args[2] = b.args[3] = aj_value{};
  b.run();
  Tensor out = b.result(0);
  const int64_t rank = out.ndim() - 1;
  if (weight.defined()) out = out * aligned(weight, weights, rank);
  if (bias.defined()) out = out + aligned(bias, bias_batched, rank);
  b.give(0, out);
}

// input, weight, bias, running mean, running variance, training, ...: one set of parameters: the
// samples are more images; else each sample has channels of its own. Training writes the running
// numbers: they have a place for each sample, or samples come one by one.
void rule_batch_norm(Batch& b) {
  const bool training = b.args[5].v.i != 0;
  auto shared = [&](uint32_t i) { return b.is_tensor(i) && !b.is_batched(i); };
  if (b.size() == 0 || b.rank(0) < 2 || (training && (shared(3) || shared(4)))) return rule_loop(b);
  bool own = training;
  const Tensor kept[] = {b.is_tensor(3) ? b.tensor(3) : Tensor(),
                         b.is_tensor(4) ? b.tensor(4) : Tensor()};
  for (uint32_t i = 1; i < 5; i++) own |= b.is_batched(i);
  const int64_t n = b.size();
  if (!own) return run_on_images(b, 1);
  b.set(0, into_channels(b.spread(0)), true);
  for (uint32_t i = 1; i < 5; i++)
    if (b.is_tensor(i)) b.set(i, merged(b.spread(i), 0), true);
  b.run();
  for (uint32_t i = 0; training && i < 2; i++)  // what is no view of them was written instead
    if (kept[i].defined() && !kept[i].is_contiguous())
      copy_(kept[i], divided(b.tensor(3 + i), 0, n));
  const int64_t channels = b.result(0).size(1);
  b.give(0, out_of_channels(b.result(0), n));
  for (uint32_t i : {1u, 2u}) {
    if (b.result(i).numel() == channels && channels)
      b.give(i, divided(b.result(i), 0, n));
    else
      b.out_dims[i] = -1;
  }
}

// The samples into the images, and into the boxes, whose first number is their image's.
void rule_regions(Batch& b) {
  if (b.size() == 0) return rule_loop(b);
  const int64_t n = b.size();
  const int count = b.facts.find("batch_size"), boxes = b.facts.find("rois");
  const int64_t images = count >= 0 ? b.args[count].v.i : b.tensor(0).size(b.is_batched(0));
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    if (!b.is_tensor(i)) continue;
    Tensor t = b.spread(i);
    if (int(i) == boxes) {
      const Tensor first = arange(Scalar(n), t.dtype(), t.device()) * images;
      const Tensor own = slice(t, 2, 0, 1) + reshape(first, {n, 1, 1});
      t = cat({own, slice(t, 2, 1)}, 2);
    }
    b.set(i, merged(t, 0), true);
  }
  if (count >= 0) b.args[count].v.i *= n;
  b.run();
  for (uint32_t i = 0; i < b.facts.nresults; i++) b.give(i, divided(b.result(i), 0, n));
}

}  // namespace adjoin::transform

// extensions/transform/layers.cpp: rules of convolutions and normalizations.
#include <adjoin/kit/ops.hpp>
#include <numeric>

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
// more groups.
void rule_convolution_backward(Batch& b) {
  if (b.size() == 0) return rule_loop(b);
  const int64_t n = b.size();
  const uint8_t* needs = b.args[9].v.bools;
  if (!b.is_batched(2) && !needs[1] &&
      !needs[2]) {  // one weight, and no gradient for it: more images
    b.set(0, merged(b.spread(0), 0), true);
    b.set(1, merged(b.spread(1), 0), true);
    b.run();
    b.give(0, divided(b.result(0), 0, n));
    b.out_dims[1] = b.out_dims[2] = -1;
    return;
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
  if (!own) {
    b.set(0, merged(b.spread(0), 0), true);
    b.run();
    b.give(0, divided(b.result(0), 0, n));
    b.out_dims[1] = b.out_dims[2] = -1;
    return;
  }
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

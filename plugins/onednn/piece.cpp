// plugins/onednn/piece.cpp: making the primitives of convolutions, and reordering weights for them.
#include "piece.hpp"

#include "pack.hpp"

namespace adjoin::onednn {
namespace {

using kit::ConvGeometry;

dnnl_memory_desc_t image(const Piece& p, int64_t channels, const int64_t* size) {
  dnnl_memory_desc_t d;
  int64_t h = size[1], w = size[2];
  dnnl_dims_t sizes = {p.images, channels, h, w};
  dnnl_dims_t planes = {channels * h * w, h * w, w, 1},
              last = {channels * h * w, 1, w * channels, channels};
  must(dnnl().memory_desc_init_by_strides(&d, 4, sizes, p.type,
                                          p.order == Order::last ? last : planes),
       "an image");
  return d;
}

dnnl_data_type_t weight_type(const Piece& p) {
  return p.direction == Direction::to_weight ? dnnl_f32 : p.type;
}

dnnl_memory_desc_t any_weight(const Piece& p, dnnl_data_type_t type) {
  dnnl_memory_desc_t d;
  const int64_t* k = p.geometry->kernel;
  dnnl_dims_t one = {p.small_c, p.big_c, k[1], k[2]},
              groups = {p.groups, p.small_c, p.big_c, k[1], k[2]};
  must(dnnl().memory_desc_init_by_tag(&d, p.groups > 1 ? 5 : 4, p.groups > 1 ? groups : one, type,
                                      dnnl_format_tag_any),
       "a weight");
  return d;
}

dnnl_memory_desc_t users_weight(const Piece& p, const int64_t* s) {
  dnnl_memory_desc_t d;
  const int64_t* k = p.geometry->kernel;
  dnnl_dims_t one = {p.small_c, p.big_c, k[1], k[2]},
              groups = {p.groups, p.small_c, p.big_c, k[1], k[2]};
  dnnl_dims_t strides = {s[0], s[1], s[2], s[3]},
              group_strides = {s[0] * p.small_c, s[0], s[1], s[2], s[3]};
  must(dnnl().memory_desc_init_by_strides(&d, p.groups > 1 ? 5 : 4, p.groups > 1 ? groups : one,
                                          p.type, p.groups > 1 ? group_strides : strides),
       "a weight");
  return d;
}

struct Descriptions {
  dnnl_memory_desc_t small, big, weight, read, bias;  // read: the weight where it is no result
  dnnl_dims_t stride, dilation, pad;
  explicit Descriptions(const Piece& p)
      : small(image(p, p.small_channels(), p.geometry->small)),
        big(image(p, p.big_channels(), p.geometry->big)),
        weight(any_weight(p, weight_type(p))),
        read(any_weight(p, p.type)) {
    const ConvGeometry& g = *p.geometry;
    dnnl_dims_t channels = {p.small_channels()};
    must(dnnl().memory_desc_init_by_tag(&bias, 1, channels, dnnl_f32, dnnl_a), "a bias");
    for (int d = 0; d < 2; ++d) {
      stride[d] = g.stride[d + 1];
      dilation[d] = g.dilation[d + 1] - 1;
      pad[d] = g.pad[d + 1];
    }
  }
};

std::unique_ptr<Primitive> make(const Piece& p) {
  Descriptions d(p);
  Attributes attributes;
  dnnl_convolution_desc_t forward, op;
  must(dnnl().dilated_convolution_forward_desc_init(
           &forward, dnnl_forward_training, dnnl_convolution_direct, &d.big, &d.read,
           p.bias ? &d.bias : nullptr, &d.small, d.stride, d.dilation, d.pad, d.pad),
       "a convolution");
  using Args = std::initializer_list<int>;
  if (p.direction == Direction::to_small)
    return std::make_unique<Primitive>(
        &forward, attributes,
        p.bias ? Args{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}
               : Args{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
  Primitive hint(&forward, attributes, {});
  if (p.direction == Direction::to_big) {
    must(dnnl().dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &d.big,
                                                            &d.weight, &d.small, d.stride,
                                                            d.dilation, d.pad, d.pad),
         "a convolution's gradient");
    return std::make_unique<Primitive>(&op, attributes,
                                       Args{DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
                                       hint.description());
  }
  must(dnnl().dilated_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct, &d.big,
                                                             &d.weight, nullptr, &d.small, d.stride,
                                                             d.dilation, d.pad, d.pad),
       "a convolution's gradient");
  return std::make_unique<Primitive>(&op, attributes,
                                     Args{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
                                     hint.description());
}

int weight_argument(const Piece& p) {
  return p.direction == Direction::to_weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
}

std::unique_ptr<Primitive> make_reorder(const dnnl_memory_desc_t& from,
                                        const dnnl_memory_desc_t& to) {
  Attributes attributes;
  dnnl_primitive_desc_t desc = nullptr;
  must(dnnl().reorder_primitive_desc_create(&desc, &from, dnnl().engine, &to, dnnl().engine,
                                            attributes.get()),
       "a reorder of weights");
  return std::make_unique<Primitive>(desc, std::initializer_list<int>{DNNL_ARG_FROM, DNNL_ARG_TO});
}

}  // namespace

Key Piece::key() const {
  const ConvGeometry& g = *geometry;
  Key k = {2,
           int64_t(direction),
           int64_t(order),
           bias,
           images,
           groups,
           small_c,
           big_c,
           g.small[1],
           g.small[2],
           g.big[1],
           g.big[2],
           g.kernel[1],
           g.kernel[2],
           g.stride[1],
           g.stride[2],
           g.pad[1],
           g.pad[2],
           g.dilation[1],
           g.dilation[2],
           int64_t(type)};
  return k;
}

Primitive& primitive_of(const Piece& piece) {
  return remembered(piece.key(), [&] { return make(piece); });
}

const dnnl_memory_desc_t& weight_layout(const Piece& piece) {
  return primitive_of(piece).layout(weight_argument(piece));
}

size_t weight_bytes(const Piece& piece) {
  return dnnl().memory_desc_get_size(&weight_layout(piece));
}

Key weight_key(const Piece& piece) {
  const dnnl_memory_desc_t& d = weight_layout(piece);
  Key k = {4, int64_t(d.data_type), d.ndims, int64_t(d.format_kind), int64_t(d.extra.flags)};
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  for (int i = 0; i < d.ndims; ++i) k.add(d.padded_dims[i]), k.add(b.strides[i]);
  for (int i = 0; i < b.inner_nblks; ++i) k.add(b.inner_blks[i] << 8 | b.inner_idxs[i]);
  return k;
}

WeightStrides weight_strides(kit::TensorView w) {
  bool flat = w.ndim() == 3;
  return {{w.stride(0), w.stride(1), flat ? w.stride(-1) * w.size(-1) : w.stride(2), w.stride(-1)}};
}

bool is_plain(const Piece& piece, Weight weight) {
  dnnl_memory_desc_t plain = users_weight(piece, weight.stride);
  return dnnl().memory_desc_equal(&plain, &weight_layout(piece));
}

void reorder_weight(const Piece& piece, void* user, const int64_t* strides, void* packed) {
  Key key = piece.key();
  key.number[0] = 3;
  for (int i = 0; i < 4; ++i) key.add(strides[i]);
  bool back = piece.direction == Direction::to_weight;
  Primitive& reorder = remembered(key, [&] {
    dnnl_memory_desc_t plain = users_weight(piece, strides), own = weight_layout(piece);
    return back ? make_reorder(own, plain) : make_reorder(plain, own);
  });
  back ? reorder.run({packed, user}) : reorder.run({user, packed});
}

void reorder_layout(const Piece& from, void* source, const Piece& to, void* target) {
  dnnl_memory_desc_t has = weight_layout(from), wants = weight_layout(to);
  make_reorder(has, wants)->run({source, target});
}

void convert_weight(const Piece& piece, Weight weight, float* packed) {
  const dnnl_memory_desc_t& layout = weight_layout(piece);
  if (piece.direction == Direction::to_weight ? unpack(layout, packed, weight)
                                              : pack(layout, weight, packed))
    return;
  reorder_weight(piece, weight.data, weight.stride, packed);
}

}  // namespace adjoin::onednn

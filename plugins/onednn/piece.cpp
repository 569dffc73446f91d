// plugins/onednn/piece.cpp: making the primitives of convolutions, and reordering weights for them.
#include "piece.hpp"

#include "pack.hpp"

namespace adjoin::onednn {
namespace {

using kit::ConvGeometry;

// The library knows two or three spatial dimensions; what has no depth is described with two.
int dimensions(const ConvGeometry& g) {
  return g.big[0] == 1 && g.small[0] == 1 && g.kernel[0] == 1 && g.pad[0] == 0 ? 2 : 3;
}

dnnl_memory_desc_t image(const Piece& p, int64_t channels, const int64_t* size) {
  dnnl_memory_desc_t d;
  dnnl_dims_t sizes = {p.images, channels}, strides;
  int n = dimensions(*p.geometry);
  int64_t step = p.order == Order::last ? channels : 1;
  for (int i = n; i-- > 0; step *= sizes[2 + i]) {
    sizes[2 + i] = size[3 - n + i];
    strides[2 + i] = step;
  }
  strides[1] = p.order == Order::last ? 1 : step;
  strides[0] = p.order == Order::last ? step : step * channels;
  must(dnnl().memory_desc_init_by_strides(&d, 2 + n, sizes, p.type, strides), "an image");
  return d;
}

// Numbers of a weight's dimensions, the groups' first where there are several.
struct WeightDims {
  dnnl_dims_t at;
  int count = 0;
  void add(int64_t number) { at[count++] = number; }
  void add_taps(const Piece& p, const int64_t* three) {
    for (int i = 3 - dimensions(*p.geometry); i < 3; ++i) add(three[i]);
  }
};
WeightDims weight_sizes(const Piece& p) {
  WeightDims d;
  if (p.groups > 1) d.add(p.groups);
  d.add(p.small_c), d.add(p.big_c);
  d.add_taps(p, p.geometry->kernel);
  return d;
}

dnnl_data_type_t weight_type(const Piece& p) {
  return p.direction == Direction::to_weight ? dnnl_f32 : p.type;
}

dnnl_memory_desc_t any_weight(const Piece& p, dnnl_data_type_t type) {
  dnnl_memory_desc_t d;
  WeightDims sizes = weight_sizes(p);
  must(dnnl().memory_desc_init_by_tag(&d, sizes.count, sizes.at, type, dnnl_format_tag_any),
       "a weight");
  return d;
}

dnnl_memory_desc_t users_weight(const Piece& p, const int64_t* s) {
  dnnl_memory_desc_t d;
  WeightDims sizes = weight_sizes(p), strides;
  if (p.groups > 1) strides.add(s[0] * p.small_c);
  strides.add(s[0]), strides.add(s[1]);
  strides.add_taps(p, s + 2);
  must(dnnl().memory_desc_init_by_strides(&d, sizes.count, sizes.at, p.type, strides.at),
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
    int n = dimensions(g);
    for (int d = 0; d < n; ++d) {
      stride[d] = g.stride[3 - n + d];
      dilation[d] = g.dilation[3 - n + d] - 1;
      pad[d] = g.pad[3 - n + d];
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
  Key k = {2,     int64_t(direction), int64_t(order), bias, images, groups, small_c,
           big_c, int64_t(type)};
  for (const int64_t* three : {g.small, g.big, g.kernel, g.stride, g.pad, g.dilation})
    for (int d = 0; d < 3; ++d) k.add(three[d]);
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
  int64_t n = w.ndim(), last = w.stride(-1), rows = n > 3 ? w.stride(-2) : last * w.size(-1),
          depth = n > 4 ? w.stride(-3) : rows * (n > 3 ? w.size(-2) : 1);
  return {{w.stride(0), w.stride(1), depth, rows, last}};
}

bool is_plain(const Piece& piece, Weight weight) {
  dnnl_memory_desc_t plain = users_weight(piece, weight.stride);
  return dnnl().memory_desc_equal(&plain, &weight_layout(piece));
}

void reorder_weight(const Piece& piece, void* user, const int64_t* strides, void* packed) {
  Key key = piece.key();
  key.number[0] = 3;
  for (int i = 0; i < 5; ++i) key.add(strides[i]);
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

// plugins/onednn/piece.hpp: the part of a convolution that one primitive computes.
#ifndef ADJOIN_PLUGINS_ONEDNN_PIECE_HPP
#define ADJOIN_PLUGINS_ONEDNN_PIECE_HPP
#include <adjoin/kit/geometry.hpp>

#include "primitive.hpp"

namespace adjoin::onednn {

enum class Order { planes, last };                     // [n, c, d, h, w], [n, d, h, w, c]
enum class Direction { to_small, to_big, to_weight };  // which of the three is the result

// The weight as the user has it: [groups * small_c, big_c, kd, kh, kw], strides in elements.
struct Weight {
  float* data;
  int64_t stride[5];
  kit::TensorView tensor = {};  // whose contents they are, where forms of them may be kept
};

struct WeightStrides {
  int64_t at[5];
};
// Of [groups * small_c, big_c, kd, kh, kw]; spatial dimensions that it lacks have size 1.
WeightStrides weight_strides(kit::TensorView w);

struct Piece {
  Direction direction;
  Order order;  // of both images
  bool bias;
  int64_t images, groups, small_c, big_c;  // channels of one group
  const kit::ConvGeometry* geometry;
  dnnl_data_type_t type = dnnl_f32;  // of both images; a weight's gradient is float32

  Key key() const;
  int64_t small_channels() const { return groups * small_c; }
  int64_t big_channels() const { return groups * big_c; }
};

// The calling thread's primitive. Its arguments:
//   to_small: big, weight, [bias,] small    to_big: small, weight, big    to_weight: big, small,
//   weight
Primitive& primitive_of(const Piece& piece);
const dnnl_memory_desc_t& weight_layout(const Piece& piece);

size_t weight_bytes(const Piece& piece);
Key weight_key(const Piece& piece);  // equal for pieces that want the same form of a weight

// The library's reorders, for any type: as convert_weight, and from one piece's layout to
// another's.
void reorder_weight(const Piece& piece, void* user, const int64_t* strides, void* packed);
void reorder_layout(const Piece& from, void* source, const Piece& to, void* target);

// Copies the user's weight into the layout that the piece wants, or (to_weight) the result into the
// user's.
void convert_weight(const Piece& piece, Weight weight, float* packed);
// Does the piece take the user's weight as it is?
bool is_plain(const Piece& piece, Weight weight);

}  // namespace adjoin::onednn
#endif

// plugins/onednn/piece.hpp: the part of a convolution that one primitive computes.
#ifndef ADJOIN_PLUGINS_ONEDNN_PIECE_HPP
#define ADJOIN_PLUGINS_ONEDNN_PIECE_HPP
#include <adjoin/kit/geometry.hpp>

#include "primitive.hpp"

namespace adjoin::onednn {

enum class Order { planes, last };                     // [n, c, h, w], [n, h, w, c]
enum class Direction { to_small, to_big, to_weight };  // which of the three is the result

// The weight as the user has it: [groups * small_c, big_c, kh, kw], strides in elements.
struct Weight {
  float* data;
  int64_t stride[4];
};

struct Piece {
  Direction direction;
  Order order;  // of both images
  bool bias;
  int64_t images, groups, small_c, big_c;  // channels of one group
  const kit::ConvGeometry* geometry;

  Key key() const;
  int64_t small_channels() const { return groups * small_c; }
  int64_t big_channels() const { return groups * big_c; }
};

// The calling thread's primitive. Its arguments:
//   to_small: big, weight, [bias,] small    to_big: small, weight, big    to_weight: big, small,
//   weight
Primitive& primitive_of(const Piece& piece);
const dnnl_memory_desc_t& weight_layout(const Piece& piece);

// Copies the user's weight into the layout that the piece wants, or (to_weight) the result into the
// user's.
void convert_weight(const Piece& piece, Weight weight, float* packed);
// Does the piece take the user's weight as it is?
bool is_plain(const Piece& piece, Weight weight);

}  // namespace adjoin::onednn
#endif

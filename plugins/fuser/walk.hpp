// plugins/fuser/walk.hpp: the index space of a run: which dimensions are one row, how far operands
// move from row to row.
#ifndef ADJOIN_PLUGINS_FUSER_WALK_HPP
#define ADJOIN_PLUGINS_FUSER_WALK_HPP
#include <adjoin/kit/tensor.hpp>
#include <array>

#include "program.hpp"

namespace adjoin::fuser {

struct Walk {
  // Raises AJ_UNIMPLEMENTED where the layouts are not such.
  Walk(const Program& p, aj_tensor* const* in, aj_tensor* const* out, const int64_t* sizes);

  struct Tensor {
    char* data;
    int64_t size;             // bytes of an element
    int64_t inner;            // bytes from element to element of a row
    bool along;               // its elements are neighbours along the row
    bool moves;               // from row to row
    bool dense;               // along, and its rows follow each other
    int64_t step[kMostDims];  // bytes, by outer dimension
  };
  std::array<Tensor, kMostInputs + kMostOutputs> tensors;  // inputs, then outputs
  size_t inputs, count;
  int64_t row = 1, rows = 1;  // elements of a row; how many
  size_t outer = 0;           // dimensions that rows are counted in, the last one fastest
  int64_t size[kMostDims];
  // Operands that no step can read where they lie, or rows that are short beside a tile.
  bool staged = false;
};

}  // namespace adjoin::fuser
#endif

// plugins/fuser/walk.cpp: dimensions that follow each other in all operands become one.
#include "walk.hpp"

#include <algorithm>

namespace adjoin::fuser {

Walk::Walk(const Program& p, aj_tensor* const* in, aj_tensor* const* out, const int64_t* sizes)
    : inputs(p.inputs.size()), count(p.inputs.size() + p.outputs.size()) {
  const size_t n = p.space.size();
  int64_t whole[kMostDims], steps[kMostInputs + kMostOutputs][kMostDims];
  for (size_t d = 0; d < n; ++d) whole[d] = p.space[d] < 0 ? sizes[-1 - p.space[d]] : p.space[d];
  for (size_t k = 0; k < count; ++k) {
    const DLTensor& t = (k < inputs ? in[k] : out[k - inputs])->dl;
    Tensor& mine = tensors[k];
    mine.data = static_cast<char*>(t.data) + t.byte_offset;
    mine.size = (t.dtype.bits + 7) / 8;
    const auto missing = int64_t(n) - t.ndim;
    // A row's result may lack the last dimension.
    const bool shorter = k >= inputs && p.outputs[k - inputs].row != kNone && missing == 1;
    for (size_t d = 0; d < n; ++d) {
      const int64_t own = shorter ? int64_t(d) : int64_t(d) - missing;
      const bool there = own >= 0 && own < t.ndim;
      steps[k][d] = there && t.shape[own] != 1 ? t.strides[own] * mine.size : 0;
    }
  }
  // The last dimension is the row; those before it join where every operand goes on as it does.
  size_t last = n;  // the innermost dimension of the group that is being joined
  auto joins = [&](size_t d) {
    for (size_t k = 0; k < count; ++k)
      if (steps[k][d] != steps[k][last] * whole[last]) return false;
    return true;
  };
  size_t made = 0;
  int64_t joined[kMostDims];
  size_t from[kMostDims];
  for (size_t d = n; d-- > 0;) {
    if (whole[d] == 1 && !(p.reduces && d + 1 == n)) continue;
    if (last < n && !(p.reduces && made == 1) && joins(d)) {
      joined[made - 1] *= whole[d];
      whole[last] *= whole[d];
      continue;
    }
    last = d;
    from[made] = d;
    joined[made++] = whole[d];
  }
  const bool single = made == 0;
  row = single ? 1 : joined[0];
  outer = single ? 0 : made - 1;
  for (size_t o = 0; o < outer; ++o) size[o] = joined[made - 1 - o], rows *= size[o];
  for (size_t k = 0; k < count; ++k) {
    Tensor& t = tensors[k];
    t.inner = single ? 0 : steps[k][from[0]];
    const bool strided = row > 1 && t.inner != 0 && t.inner != t.size;
    if (strided && p.reduces) raise(AJ_UNIMPLEMENTED, "fuser: a layout");
    staged |= strided;
    t.along = row > 1 ? t.inner == t.size : k >= inputs && p.outputs[k - inputs].row == kNone;
    t.moves = false;
    t.dense = t.along;
    int64_t next = row * t.size;
    for (size_t o = outer; o-- > 0;) {
      t.step[o] = steps[k][from[made - 1 - o]];
      t.moves |= t.step[o] != 0;
      t.dense &= t.step[o] == next;
      next *= size[o];
    }
  }
  staged |= !p.reduces && rows > 1 && row < 2 * p.steps->tile();
}

}  // namespace adjoin::fuser

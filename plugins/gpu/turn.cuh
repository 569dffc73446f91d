// plugins/gpu/turn.cuh: copies that turn: neighbours lie along one dimension on one side and along
// another on the other side. Squares go through shared memory, so both sides move by whole lines.
#ifndef ADJOIN_PLUGINS_GPU_TURN_CUH
#define ADJOIN_PLUGINS_GPU_TURN_CUH
#include "element.cuh"
#include "pack.cuh"

namespace adjoin::gpu {

template <class B>
inline constexpr int kSquare = sizeof(B) <= 2 ? 64 : 32;
template <class B>
struct Turn {  // neighbours lie along `across` in the result, along `along` in what is read
  char* to;
  const char* from;
  int64_t across, along;       // sizes
  int64_t to_step, from_step;  // bytes: in the result along `along`, in the other along `across`
  Divisor across_squares, along_squares;
  int64_t squares;  // of all
  int32_t ndim;     // of the other dimensions
  Divisor sizes[kDims];
  int64_t strides[2][kDims];
};
AJ_DEVICE inline int left_of(int64_t n, int most) { return n < most ? int(n) : most; }

template <class B>
AJ_GLOBAL void turn_kernel(AJ_ARGUMENT Turn<B> p) {
  constexpr int kSide = kSquare<B>, kRows = int(kThreads) / kSide;
  AJ_SHARED B square[kSide][kSide + 1];
  int lane = int(thread_x()) % kSide, row = int(thread_x()) / kSide;
  for (int64_t task = block_x(); task < p.squares; task += blocks_x()) {
    int64_t rest = task, across = p.across_squares.split(&rest) * kSide,
            along = p.along_squares.split(&rest) * kSide;
    char* to = p.to;
    const char* from = p.from;
    for (int d = 0; d < p.ndim; ++d) {
      int64_t at = p.sizes[d].split(&rest);
      to += at * p.strides[0][d];
      from += at * p.strides[1][d];
    }
    // What is left of the square; a thread has one column of what is read and one of the result.
    int rows = left_of(p.across - across, kSide), columns = left_of(p.along - along, kSide);
    from += (across + row) * p.from_step + (along + lane) * int64_t(sizeof(B));
    to += (along + row) * p.to_step + (across + lane) * int64_t(sizeof(B));
    if (lane < columns) {
      AJ_UNROLL
      for (int k = 0; k < kSide; k += kRows, from += kRows * p.from_step)
        if (row + k < rows) square[row + k][lane] = *reinterpret_cast<const B*>(from);
    }
    sync_block();
    if (lane < rows) {
      AJ_UNROLL
      for (int k = 0; k < kSide; k += kRows, to += kRows * p.to_step)
        if (row + k < columns) *reinterpret_cast<B*>(to) = square[lane][row + k];
    }
    sync_block();
  }
}
constexpr int64_t kWorthTurning = 16;  // less of a square is not worth a square
inline bool turn(const aj_call* call, const aj_plan& p) {
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  if (!same(to.dtype, from.dtype) || p.ndim < 2 || p.ndim > kDims || !from.data ||
      (from.flags & AJ_OPERAND_NUMBER) || !to.strides || !from.strides)
    return false;
  int64_t bytes = bytes_of(to.dtype);
  auto neighbours = [&](const aj_operand& o) {  // the dimension along which they lie, or p.ndim
    uint32_t d = 0;
    while (d < p.ndim && (o.strides[d] != bytes || p.sizes[d] < kWorthTurning)) ++d;
    return d;
  };
  uint32_t across = neighbours(to), along = neighbours(from);
  if (across == along || across == p.ndim || along == p.ndim) return false;
  visit_size(to.dtype, [&]<class Bytes>() {
    using B = std::conditional_t<std::is_same_v<Bytes, Bytes16>, Complex128, Bytes>;
    constexpr int64_t kSide = kSquare<B>;
    Turn<B> t = {};
    t.to = reach(static_cast<char*>(to.data)), t.from = reach(static_cast<const char*>(from.data));
    t.across = p.sizes[across], t.along = p.sizes[along];
    t.to_step = to.strides[along], t.from_step = from.strides[across];
    t.across_squares = (t.across + kSide - 1) / kSide;
    t.along_squares = (t.along + kSide - 1) / kSide;
    t.squares = t.across_squares.size * t.along_squares.size;
    for (uint32_t d = 0; d < p.ndim; ++d) {
      if (d == across || d == along) continue;
      t.sizes[t.ndim] = p.sizes[d];
      t.strides[0][t.ndim] = to.strides[d], t.strides[1][t.ndim++] = from.strides[d];
      t.squares *= p.sizes[d];
    }
    launch_blocks<&turn_kernel<B>>(call, t.squares, kThreads, t);
  });
  return true;
}

}  // namespace adjoin::gpu
#endif

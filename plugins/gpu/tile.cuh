// plugins/gpu/tile.cuh: the inner part of products: a block makes a square of the result from
// strips of its operands in shared memory, each thread a part of it in registers. Halves are
// multiplied by the units for that.
#ifndef ADJOIN_PLUGINS_GPU_TILE_CUH
#define ADJOIN_PLUGINS_GPU_TILE_CUH
#include "matrix.cuh"
#include "pack.cuh"

namespace adjoin::gpu {

constexpr int kTile = 32;              // a block's square of the result
constexpr int kStrip = 16;             // depth that is in shared memory at once
constexpr int kOwn = 4;                // a thread's square
constexpr int kAcross = kTile / kOwn;  // threads side by side
constexpr int kTileThreads = kAcross * kAcross;

template <class T>
using Accumulator = std::conditional_t<is_half<T>, float, T>;

// Where the thread's sum [i][j] stands in the tile. Of plain sums neighbours write neighbouring
// columns.
template <class T>
AJ_DEVICE int own_row(int i, int j) {
  return is_half<T> ? matrix_row(i, j) : int(thread_x()) / kAcross + i * kAcross;
}
template <class T>
AJ_DEVICE int own_column(int i, int j) {
  return is_half<T> ? matrix_column(i, j) : int(thread_x()) % kAcross + j * kAcross;
}

// sum += A[row, k] B[k, column] over k < depth. left(row, k) and right(k, column) are asked for the
// tile's own coordinates, and answer 0 outside.
template <class T, class Left, class Right>
AJ_DEVICE void multiply_tile(int64_t depth, const Left& left, const Right& right,
                             Accumulator<T> (&sum)[kOwn][kOwn]) {
  using A = Accumulator<T>;
  int me = int(thread_x());
  if constexpr (is_half<T>) {
    AJ_SHARED Strip<T> a, b;
    for (int64_t at = 0; at < depth; at += kDepth) {
      // Loads of a strip go out together.
      AJ_UNROLL
      for (int part = 0; part < kTile * kDepth / kTileThreads; ++part) {
        int i = me + part * kTileThreads;
        int row = i / kDepth, k = i % kDepth, column = i % kTile, line = i / kTile;
        a[row][k] = at + k < depth ? left(row, at + k) : T(0);
        b[column][line] = at + line < depth ? right(at + line, column) : T(0);
      }
      sync_block();
      add_product<T>(a, b, sum);
      sync_block();
    }
  } else {
    AJ_SHARED T a[kStrip][kTile + 1], b[kStrip][kTile + 1];
    int ty = me / kAcross, tx = me % kAcross;
    for (int64_t at = 0; at < depth; at += kStrip) {
      for (int i = me; i < kTile * kStrip; i += kTileThreads) {
        int row = i / kStrip, k = i % kStrip;
        a[k][row] = at + k < depth ? left(row, at + k) : T(0);
        int column = i % kTile, line = i / kTile;
        b[line][column] = at + line < depth ? right(at + line, column) : T(0);
      }
      sync_block();
      for (int k = 0; k < kStrip; ++k) {
        A x[kOwn], y[kOwn];
        for (int i = 0; i < kOwn; ++i) {
          x[i] = A(a[k][ty + i * kAcross]);
          y[i] = A(b[k][tx + i * kAcross]);
        }
        for (int i = 0; i < kOwn; ++i)
          for (int j = 0; j < kOwn; ++j)
            sum[i][j] = scalar::Add()(sum[i][j], scalar::Mul()(x[i], y[j]));
      }
      sync_block();
    }
  }
}

// Calls put(row, column, sum) for the thread's elements, in the tile's coordinates.
template <class T, class A, class Put>
AJ_DEVICE void for_own(const A (&sum)[kOwn][kOwn], const Put& put) {
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) put(own_row<T>(i, j), own_column<T>(i, j), sum[i][j]);
}
template <class A>
AJ_DEVICE void clear(A (&sum)[kOwn][kOwn]) {
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) sum[i][j] = A(0);
}

}  // namespace adjoin::gpu
#endif

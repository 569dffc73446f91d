// plugins/gpu/merge.cuh: the stable order of lines. A block puts a tile of a line in order, and
// tiles are merged in steps; where a few elements are wanted, only the first of each tile go on.
#ifndef ADJOIN_PLUGINS_GPU_MERGE_CUH
#define ADJOIN_PLUGINS_GPU_MERGE_CUH
#include <adjoin/kit/scalar.hpp>

#include "block.cuh"
#include "element.cuh"

namespace adjoin::gpu {

// NaN is larger than every number.
template <class T>
AJ_HD bool less(T a, T b) {
  return a < b || (scalar::is_nan(b) && !scalar::is_nan(a));
}

// One step: runs of `run` places, a power of two, that are in order are merged to runs of twice
// that. A thread finds where its element k goes: its rank in its own run plus its rank in the
// neighbour. before(j, first): whether the neighbour's j stands before it; first: it is of the
// first run, whose equals stand first.
template <class I, class Before>
AJ_DEVICE I merged_place(I k, I size, I run, Before before) {
  I begin = k & ~(2 * run - 1), middle = begin + run < size ? begin + run : size;
  I end = begin + 2 * run < size ? begin + 2 * run : size;
  bool first = k < middle;
  I start = first ? middle : begin, lo = start, hi = first ? end : middle;
  while (lo < hi) {
    I j = lo + ((hi - lo) >> 1);
    if (before(j, first))
      lo = j + 1;
    else
      hi = j;
  }
  return begin + (k - (first ? begin : middle)) + (lo - start);
}
template <class M>
AJ_HD bool stands_before(M other, M mine, bool first, bool descending) {
  if (first) return descending ? less(mine, other) : less(other, mine);
  return !(descending ? less(other, mine) : less(mine, other));
}

// Lines of x, by place in the line.
template <class T>
struct Keys {
  const T* x;
  int64_t size;
  Divisor inner;
  bool descending;
  AJ_HD Math<T> at(int64_t line, int64_t k) const {
    return Math<T>(x[in_line(line, k, size, inner)]);
  }
};

constexpr int kSortTile = 1024;
template <class T>
struct SortTiles {
  Keys<T> keys;
  const int64_t* from;  // places of each line so far; NULL: 0, 1, ...
  int64_t* to;
  int64_t lines, tiles;
  Divisor length, pieces;  // of a line in `from`: its places, its tiles
  int64_t together;        // short lines in one tile
  int64_t keep, kept;      // of a tile, of a line
};
template <class T>
AJ_GLOBAL void sort_tiles_kernel(AJ_ARGUMENT SortTiles<T> p) {
  using M = Math<T>;
  AJ_SHARED double room[kSortTile];
  AJ_SHARED uint16_t orders[2][kSortTile];
  M* values = reinterpret_cast<M*>(room);
  for (int64_t tile = block_x(); tile < p.tiles; tile += blocks_x()) {
    Quotient at = p.pieces.divided(tile);
    int64_t first = at.whole * p.together, begin = at.rest * kSortTile,
            left = p.length.size - begin;
    int own = int(left < kSortTile ? left : kSortTile);  // of each line
    int64_t rest = p.lines - first;
    int count = int(rest < p.together ? rest : p.together) * own;
    auto place = [&](int64_t line, int64_t k) {
      return p.from ? p.from[line * p.length.size + k] : k;
    };
    for (int e = int(thread_x()); e < count; e += kBlock) {
      Quotient q = p.length.divided(e);
      values[e] = p.keys.at(first + q.whole, place(first + q.whole, begin + q.rest));
      orders[0][e] = uint16_t(q.rest);
    }
    sync_block();
    int now = 0;
    for (int run = 1; run < own; run *= 2) {
      for (int e = int(thread_x()); e < count; e += kBlock) {
        int k = int(p.length.divided(e).rest);
        const uint16_t* order = orders[now] + (e - k);
        const M* line = values + (e - k);
        M mine = line[order[k]];
        int found = merged_place(k, own, run, [&](int j, bool is_first) {
          return stands_before(line[order[j]], mine, is_first, p.keys.descending);
        });
        orders[1 - now][e - k + found] = order[k];
      }
      sync_block();
      now = 1 - now;
    }
    for (int e = int(thread_x()); e < count; e += kBlock) {
      Quotient q = p.length.divided(e);
      if (q.rest >= p.keep) continue;
      p.to[(first + q.whole) * p.kept + at.rest * p.keep + q.rest] =
          place(first + q.whole, begin + orders[now][e]);
    }
    sync_block();
  }
}
// The first `keep` of each tile; returns how many that makes of a line.
template <class T>
int64_t sort_tiles(const aj_call* call, const Keys<T>& keys, int64_t lines, int64_t length,
                   int64_t keep, const int64_t* from, int64_t* to) {
  int64_t pieces = (length + kSortTile - 1) / kSortTile;
  SortTiles<T> p = {keys, from, to, lines};
  p.length = length, p.pieces = pieces, p.keep = keep;
  p.together = std::max<int64_t>(1, kSortTile / length);
  p.tiles = (lines + p.together - 1) / p.together * pieces;
  p.kept = (pieces - 1) * keep + std::min(keep, length - (pieces - 1) * kSortTile);
  launch_blocks<&sort_tiles_kernel<T>>(call, p.tiles, kBlock, p);
  return p.kept;
}

template <class T>
struct Merge {
  Keys<T> keys;
  const int64_t* from;
  int64_t* to;
  Divisor size;
  int64_t run;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t line = i, k = size.split(&line);
    const int64_t* order = from + line * size.size;
    Math<T> mine = keys.at(line, order[k]);
    int64_t found = merged_place(k, size.size, run, [&](int64_t j, bool first) {
      return stands_before(keys.at(line, order[j]), mine, first, keys.descending);
    });
    to[line * size.size + found] = order[k];
  }
};

// The order of each line, or at least the first `keep` of it, in one of the two rooms, which hold
// whole lines. Without places lines are of one element at most.
struct Order {
  const int64_t* places;
  int64_t step;  // from line to line
};
template <class T>
Order order_lines(const aj_call* call, const Keys<T>& keys, int64_t lines, int64_t keep,
                  int64_t* one, int64_t* other) {
  int64_t size = keys.size;
  if (size < 2 || !lines) return {nullptr, 1};
  if (keep * 4 <= kSortTile) {
    const int64_t* from = nullptr;
    for (int64_t length = size;;) {
      bool last = length <= kSortTile;
      length = sort_tiles(call, keys, lines, length, keep, from, one);
      if (last) return {one, length};
      from = one;
      std::swap(one, other);
    }
  }
  sort_tiles(call, keys, lines, size, kSortTile, nullptr, one);
  for (int64_t run = kSortTile; run < size; run *= 2) {
    each(call, lines * size, Merge<T>{keys, one, other, size, run});
    std::swap(one, other);
  }
  return {one, size};
}

}  // namespace adjoin::gpu
#endif

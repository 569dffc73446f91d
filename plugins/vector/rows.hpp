// plugins/vector/rows.hpp: pointwise kernels as vector loops over rows; the walk over a plan, which
// gathers strided operands in tiles and converts those of other dtypes, is compiled once.
#ifndef ADJOIN_PLUGINS_VECTOR_ROWS_HPP
#define ADJOIN_PLUGINS_VECTOR_ROWS_HPP
#include <adjoin/kit/loops.hpp>

#include "stored.hpp"
#include "stream.hpp"

namespace adjoin::cpu {

// out[i] = f(in[i]...), i < n, n > 0; an input whose bit is in the mask that the loop was compiled
// for is one value of the computing type. stream: past the caches.
using Loop = void (*)(const void* functor, void* out, const void* const* in, int64_t n,
                      bool stream);

// A loop as data: how many elements a vector of it has, bytes of an element of the result and of
// each input (0: one value), and whether lanes that are not wanted get the first element, zero
// else.
struct RowShape {
  Loop loop;
  int64_t lanes;
  uint32_t inputs, out;
  uint32_t in[3];
  bool repeat;
};
// Fewer elements than a vector has pass through buffers, so that every element meets the same
// formula.
void short_row(const RowShape& s, const void* functor, void* out, const void* const* in, int64_t n);

// Loops over elements of one dtype. Places that have a dtype of their own (a comparison's result, a
// condition) are the same in all sets.
struct LoopSet {
  DLDataType storage;
  Loop by_mask[8];
};
struct Loops {
  const Typed* compute;
  uint32_t inputs;
  bool bool_out, bool_first;  // the result is bool; the first input is
  uint32_t nsets;
  LoopSet sets[3];  // the computing type's first
};

void run_rows(const aj_plan& p, const Loops& loops, const void* functor);
// The kit's walk for loops that a compiler made; large results go past the caches here too.
struct RowTypes {
  uint32_t inputs;
  const Typed* out;
  const Typed* in[3];
};
struct PlainLoops {
  RowFn by_mask[8];
};
void run_plain(const aj_plan& p, const RowTypes& types, const PlainLoops& loops,
               const void* functor);

// n0 elements along rows, n1 rows: to[j * to_step + i * size] = from[i * from_step + j * size].
void transpose(int64_t size, char* to, int64_t to_step, const char* from, int64_t from_step,
               int64_t n0, int64_t n1, bool stream = false);

}  // namespace adjoin::cpu
#endif

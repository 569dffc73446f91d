// plugins/fuser/steps.hpp: what a chain is compiled to: steps that hand a tile of one value to each
// other in vector registers. A step is a function of the eager kernels' formulas, its other
// operands are read from memory: from tensors, from the tiles kept in the first-level cache, or
// from one vector that stands for all.
#ifndef ADJOIN_PLUGINS_FUSER_STEPS_HPP
#define ADJOIN_PLUGINS_FUSER_STEPS_HPP
#include <cstddef>
#include <cstdint>

namespace adjoin::fuser {

// Vectors of a tile: as many as every x86-64 passes in registers.
constexpr int64_t kVectors = 8;
constexpr int64_t kMostTile = 8 * 64;  // bytes

// Where a step finds an operand: element i of a row lies at + i * advance, the next vector of the
// tile `step` elements behind. A tile in the cache does not advance, one value has no step either.
struct Operand {
  char* at = nullptr;
  int64_t advance = 0, step = 0;
};

struct Frame {
  const Operand* operands;
  size_t vectors;  // of the tile that count; costly functions compute no others
};

using Code = void (*)();  // of a step; its true type has vectors
struct Insn {
  Code run;
  uint32_t operand[2];
  alignas(8) char numbers[24];  // the fields of a function
};

struct Function {
  const char* name;
  uint8_t inputs;
  bool condition, mask;  // the first input is a mask; so is the result
  Code at[3];            // by the input that comes in registers
};

// Everything that steps are made of, for one dtype on the chosen instruction set.
struct Steps {
  int64_t size, lanes;  // bytes of an element, elements of a vector
  Code load, load_mask, store, store_one, stream, store_mask, end;  // one: of eight equal vectors
  const Function* functions;                                        // the last has no name
  // Runs steps over [lo, hi), whole tiles.
  void (*sweep)(const Insn* first, const Frame* frame, int64_t lo, int64_t hi);

  int64_t tile() const { return kVectors * lanes; }
  const Function* find(const char* name) const;
};
const Steps& single_steps();
const Steps& double_steps();

}  // namespace adjoin::fuser
#endif

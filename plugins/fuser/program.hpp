// plugins/fuser/program.hpp: a part of a program as stages of steps, ready to run.
#ifndef ADJOIN_PLUGINS_FUSER_PROGRAM_HPP
#define ADJOIN_PLUGINS_FUSER_PROGRAM_HPP
#include <adjoin/abi/compiler.h>

#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/tensor.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "steps.hpp"

namespace adjoin::fuser {

using namespace kit;  // NOLINT: a plugin is made of it

extern const aj_graphs* graphs;

constexpr uint32_t kNone = ~0u;
constexpr size_t kMostNodes = 160, kMostInputs = 28, kMostOutputs = 28, kMostDims = 8;
constexpr int64_t kMostRow = 4096;  // of a reduction: a leaf of the kit's tree

// What an operand of the steps is. Rows: one value for each row, kept as a vector of it.
struct Place {
  enum class Kind { input, output, tile, number, row, buffer };
  Kind kind;
  uint32_t index = 0;  // of inputs, outputs; of tiles, numbers, rows, buffers
  bool mask = false;   // a tensor of bool
};

// A reduction of a row; or a function of one, whose result is a row again.
enum class Fold { sum, mean, largest, least, softmax, log_softmax, layer_norm };
inline bool gives_row(Fold f) { return f >= Fold::softmax; }
struct Reduce {
  Fold fold{};
  uint32_t from = kNone, to = kNone;      // operands: a row of neighbours; a row's value, or a row
  uint32_t weight = kNone, bias = kNone;  // of a layer norm: rows, or both absent
  uint32_t mean = kNone, rstd = kNone;    // the row's values, or absent
  double eps = 0;
};

// Values of rows are computed, then a sweep over the row, then its reductions.
struct Stage {
  std::vector<Insn> row, sweep, streamed;  // streamed: the sweep, results past the caches
  std::vector<uint32_t> reads, writes;     // tensors and buffers that the sweep walks along
  std::vector<Reduce> reduces;
};

// A tensor of the part. sizes: as in the graph; a number < 0 is -1 - symbol.
struct Port {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  uint32_t row = kNone;  // outputs of one value a row: the operand that has it
};

struct Program {
  const Steps* steps = nullptr;
  std::vector<int64_t> space;  // sizes, as Port's
  std::vector<Port> inputs, outputs;
  std::vector<Place> places;
  std::vector<char> numbers;  // a vector of each, on a line of the cache
  uint32_t tiles = 0, rows = 0, buffers = 0;
  bool reduces = false;
  bool streams = true;  // no sweep reads what one has written
  std::vector<Stage> stages;

  size_t numbers_at = 0;
  const char* number(uint32_t i) const { return numbers.data() + numbers_at + size_t(i) * 64; }
};

aj_status* claim(void*, const aj_graph* g, uint32_t* cluster);
std::unique_ptr<Program> compile(const aj_graph* part);
void run(const Program& p, aj_tensor* const* in, aj_tensor* const* out, const int64_t* sizes);

}  // namespace adjoin::fuser
#endif

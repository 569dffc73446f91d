// extensions/graph/parts.hpp: parts of a program that a compiler (abi/compiler.h) runs.
#pragma once
#include <adjoin/abi/compiler.h>

#include "run.hpp"

namespace adjoin::graph {

extern const aj_services* service_table;
extern const aj_graphs graphs_table;

// What a compiler sees: calls of a block, which it reads by graphs_table.
struct Seen;

// The order of a block's statements in which each part stands together, and the parts that a
// compiler has made programs of. first and count are of that order. in_order: it is the block's
// own.
struct Arranged {
  std::vector<uint32_t> order;
  std::vector<Part> parts;
};
Arranged arrange(const Program& p, const Block& b, int32_t device_type, bool in_order);

// How a part is run this time, and what it took.
class Turn {
 public:
  Turn(const Part& part, const std::vector<int64_t>& sizes, bool measure);
  bool together() const { return together_; }
  void end(bool ran_together) const;
  // Is it settled that its calls are the faster way?
  static bool lost(const Part& part, const std::vector<int64_t>& sizes);

 private:
  Part::Log& log_;
  bool together_, measured_;
  uint64_t begin_ = 0;
};
// Is there nobody between the part's calls, and are its inputs as its program wants them?
// calm: nothing that the program got has a history, or may get one.
bool takes_part(const Part& part, const std::vector<Tensor>& regs,
                const std::vector<int64_t>& sizes, bool calm);
// The part's results are in the registers; false: its calls have to be made.
bool run_part(const Part& part, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes);

}  // namespace adjoin::graph

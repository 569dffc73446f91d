// extensions/graph/passes/passes.hpp: programs made better, each pass by itself.
#pragma once
#include <adjoin/abi/passes.h>

#include "../ir.hpp"

namespace adjoin::graph {

std::unique_ptr<Program> copy_of(const Program& p);
std::unique_ptr<Program> apply_passes(const Program& p, uint32_t passes);

void each_call(const Program& p, aj_each_call each, void* self);
// Calls of a program as one of their own; see abi/passes.h.
std::unique_ptr<Program> cut(const Program& p, const std::vector<uint32_t>& calls,
                             std::vector<uint32_t> inputs, std::vector<uint32_t> results);

void merge_common(Program& p);
void freeze(Program& p);
void fold_constants(Program& p);
void fold_norms(Program& p);
void drop_dropout(Program& p);
// What writes a value of the program gives a new one, where that is the same. memory: by value, the
// first of those that share its memory. ordered: it lies in C order, or in an order of its own.
void make_functional(Program& p, const std::vector<uint32_t>& memory,
                     const std::vector<bool>& ordered);
// Slices of element-wise results are made of slices of what these are made of. descends: by value,
// it lies in C order, or is such a view. By node, which one it was before (kNone: none); empty:
// nothing is other than it was.
std::vector<uint32_t> slice_first(Program& p, const std::vector<bool>& descends);

// Values that share memory with one that is written, or that is handed out: nothing may stand in
// their place, and they in nobody's.
class Shared {
 public:
  explicit Shared(const Program& p);
  bool is_written(uint32_t v) { return written_[find(v)]; }
  bool is_result(uint32_t v) { return handed_out_[find(v)]; }

 private:
  uint32_t find(uint32_t v);
  void join(uint32_t a, uint32_t b);
  void block(const Block& b);
  void node(const Node& n);
  std::vector<uint32_t> same_;
  std::vector<bool> written_, handed_out_;
};

// Of this kind of op an element of the result is made of elements at its place.
bool is_element_wise(std::string_view kind);
// Does the call give the same for the same arguments, and do nothing else?
bool is_function(const Node& n);
// Every use of `from` becomes one of `to`.
void replace(Program& p, const std::vector<uint32_t>& to);
Weight& add_constant(Program& p, uint32_t value, Tensor t);

}  // namespace adjoin::graph

// core/tape/builder.hpp: measures and fills a node in two passes over the arguments.
#pragma once
#include "core/op/call.hpp"
#include "core/tape/node.hpp"

// What save_more of a derivative fills.
struct aj_saver {
  std::vector<aj_value> values;                 // tensors and objects retained
  std::vector<std::unique_ptr<char[]>> memory;  // of lists and strings
  ~aj_saver();
};

namespace adjoin {

class NodeBuilder {
 public:
  NodeBuilder(const aj_op* op, const Vjp* vjp, const aj_value* args, uint32_t nargs)
      : op_(op), vjp_(vjp), args_(args), nargs_(nargs) {}

  // *out stays NULL when no argument requires grad. rets NULL: a write; its result is saved
  // afterwards by save_written.
  aj_status* build(const aj_value* rets, uint32_t nrets, Node** out);
  void overwrites_first() { overwrites_first_ = true; }  // argument 0 is saved as a copy

 private:
  aj_status* measure(const aj_value* rets, uint32_t nrets);
  aj_status* measure_edges();
  uint64_t measure_saves(const aj_value* rets) const;
  uint64_t measure_forms(const aj_value* rets, uint32_t nrets);
  aj_status* fill_edges(Node* n);
  aj_status* fill_edge(Node* n, Edge* e, aj_tensor* t);
  void fill_forms(Node* n, const aj_value* rets, uint32_t nrets);
  aj_status* fill_saves(Node* n, const aj_value* rets);
  aj_status* fill_value(Node* n, aj_value* to, const aj_value& from, bool is_result, uint32_t nr);
  aj_status* fill_tensor(Node* n, aj_value* to, aj_tensor* t, bool is_result, uint32_t nr);
  aj_status* copy_of_first(aj_tensor** out);
  const aj_value* source(const aj_save& s, const aj_value* rets) const;
  bool wanted(const aj_save& s) const;

  const aj_op* op_;
  const Vjp* vjp_;
  const aj_value* args_;
  uint32_t nargs_, nedges_ = 0, nresults_ = 1;
  uint64_t needs_ = 0;  // bit i: argument i holds a tensor that requires grad
  uint64_t bytes_ = 0;
  bool forms_ = false, overwrites_first_ = false;
  char* at_ = nullptr;  // where the next words go
  int64_t* last_shape_ = nullptr;
  std::unique_ptr<aj_saver> more_;
};

aj_status* save_written(Node* n, aj_tensor* written);

// A list or string into memory that the holder owns; sizes of what such a value points at.
uint64_t bytes_behind(const aj_value& v);
void copy_behind(aj_value* to, const aj_value& from, char* memory);

}  // namespace adjoin

// frontends/python/src/function.hpp: functions with a derivative written in Python.
#pragma once

#include "node.hpp"

namespace adjoin::py {

struct FunctionState;

// ctx: what forward and backward share, and at the same time the node of the graph. The node owns
// it, not the other way round.
struct ContextObject {
  NodeObject base;
  PyObject* dict;
  PyObject* weakrefs;
  FunctionState* state;
};
extern PyTypeObject context_type;

// Borrowed; NULL if the node is not one of these.
PyObject* context_of(aj_node* n);

struct OutputForm {  // to make zeros of where no gradient arrives
  bool tensor;
  DLDataType dtype;
  DLDevice device;
  std::vector<int64_t> shape;
};

struct FunctionState {
  PyObject* cls = nullptr;  // borrowed from `kept`
  Ref kept, needs_input_grad, to_save, for_forward, dirty, non_differentiable;
  std::vector<int> places;  // of each forward argument among the node's inputs, or -1
  std::vector<bool> saved;  // of each entry of save_for_backward: a tensor, or None
  std::vector<OutputForm> outputs;
  bool materialize = true;
  const aj_grad_call* running = nullptr;  // while backward runs
};

bool level_is_open();  // transform.cpp: does this thread have a level of a transform open?

extern thread_local bool
    jvp_comes;  // of the function that is applied: what it keeps for it is kept

aj_status* run_python_backward(void* self, aj_grad_call* g);
void drop_context(void* payload);

}  // namespace adjoin::py

// adjoin/kit/tape.hpp: what those who look into a graph ask of it: interface "x.tape", which may
// change or go.
#ifndef ADJOIN_KIT_TAPE_HPP
#define ADJOIN_KIT_TAPE_HPP
#include <adjoin/abi/autograd.h>

struct aj_x_tape {
  uint32_t struct_size, minor;
  // For collectors of cycles. What would end if the caller released one reference to each of these
  // tensors and nodes: visit(arg, drop, self) once for each hook, payload of a custom node, packed
  // value and word of a language, with the function that would be called. Nothing changes. visit
  // calls nothing of the core. A large graph is not looked at to its end.
  void (*would_drop)(void* const* objects, uint32_t n,
                     void (*visit)(void* arg, void (*drop)(void*), void* self), void* arg);
  // The argument or result that saved value i of a node is; *result tells which of the two, and if
  // it has no name of its own the text is empty. 0: there is none, or it is something else.
  int32_t (*saved_name)(aj_node* n, uint32_t i, aj_str* name, int32_t* result);
  // A new tensor becomes result i of any node, in the place of the one that was: asked for the
  // gradient of it, the engine gives what arrives there.
  aj_status* (*stand_in)(aj_tensor* t, aj_node* n, uint32_t i);
};
#endif

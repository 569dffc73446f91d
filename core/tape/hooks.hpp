// core/tape/hooks.hpp: functions of the user that run with gradients.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

void forget_retain(Meta* m);
void move_retain(Meta* m, Node* to, uint32_t nr);

// The live hooks of one kind, copied so that hooks may add and remove hooks.
HookList hooks_of(HookList* all, int32_t kind);
aj_status* run_tensor_hooks(const HookList& list, uint32_t nr, aj_tensor** io);
aj_status* run_node_hooks(const HookList& list, aj_tensor** io, uint32_t n, aj_tensor* const* other,
                          uint32_t nother);
void give_retained(Node* n, aj_tensor* const* grads);  // .grad of non-leaves that keep it

aj_status* hook_tensor(aj_tensor* t, int32_t kind, aj_tensor_hook fn, void* self,
                       void (*drop)(void*), uint64_t* id);
aj_status* hook_node(aj_node* n, int32_t kind, aj_node_hook fn, void* self, void (*drop)(void*),
                     uint64_t* id);
aj_status* hook_remove(uint64_t id);
aj_status* retain_grad(aj_tensor* t);
int32_t retains_grad(const aj_tensor* t);

// Those that are in no pass under way: with the list they would end.
std::vector<const Hook*> sole_hooks(HookList* all);

}  // namespace adjoin

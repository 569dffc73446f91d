// core/tape/write.hpp: history of tensors that are written in place; through a view, of its
// base.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

// t was written; n, whose edge `self` led to what t was, becomes its history: t is result nr.
// Steals n.
aj_status* attach_written(aj_tensor* t, Node* n, uint32_t self, uint32_t nr);
aj_status* check_in_place(std::string_view who, aj_tensor* t);

aj_status* slice_apply(Node* n, aj_tensor* const* grad_out, aj_tensor** grad_in,
                       const uint8_t* needs, bool create, bool keep);
void slice_step_free(SliceStep* s);
Node* slice_inner(Node* n);
void slice_free_saved(SliceStep* s);
aj_status* slice_result(Node* outer, aj_tensor* alias,
                        aj_tensor** out);  // a saved result of a write through a view

}  // namespace adjoin

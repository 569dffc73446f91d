// core/tape/custom.hpp: nodes of functions that users write.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

aj_status* node_new(const aj_vjp_def* def, void* payload, aj_tensor* const* inputs, uint32_t n,
                    aj_node** out);
aj_status* node_save(aj_node* n, const aj_value* v, int32_t is_result);
aj_status* node_attach(aj_node* n, uint32_t i, aj_tensor* t, int32_t dirty);
void* node_payload(aj_node* n, const aj_vjp_def** def);
aj_status* node_results(aj_node* n, uint32_t n_results);

}  // namespace adjoin

// core/tape/graph.hpp: nodes for those who look at a graph.
#pragma once
#include "core/tape/node.hpp"

namespace adjoin {

aj_status* tensor_node(aj_tensor* t, aj_node** out, uint32_t* result);
aj_status* accumulator(aj_tensor* leaf, aj_node** out);
aj_str node_name(aj_node* n);
uint64_t node_sequence(aj_node* n);
uint32_t node_edges(aj_node* n);
aj_status* node_edge(aj_node* n, uint32_t i, aj_node** out, uint32_t* result);
aj_status* node_saved(aj_node* n, uint32_t i, aj_value* out);
uint32_t node_line(aj_node* n);
aj_tensor* node_variable(aj_node* n);

}  // namespace adjoin

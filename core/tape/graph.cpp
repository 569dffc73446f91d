// core/tape/graph.cpp: looking at nodes: names, edges, saved values; accumulators are made when
// somebody asks.
#include "core/tape/graph.hpp"

#include "core/tape/saved.hpp"
#include "core/tape/view.hpp"

namespace adjoin {
namespace {

aj_status* accumulator_node(aj_tensor* leaf, aj_node** out) {
  Node* n = node_alloc(1, 0, 0);
  if (!n) return no_node_memory();
  n->flags |= kNodeAccumulator;
  retain(leaf);
  n->edges()[0] = {leaf, 0, priv(leaf).dtype, kEdgeLeaf, 0};
  *out = n->abi();
  return nullptr;
}

}  // namespace

aj_status* tensor_node(aj_tensor* t, aj_node** out, uint32_t* result) {
  *out = nullptr;
  if (view_is_stale(t)) AJ_TRY(view_refresh(t));
  if (result) *result = priv(t).out_nr;
  if (!priv(t).node) return nullptr;
  node_retain(priv(t).node);
  *out = priv(t).node->abi();
  return nullptr;
}

aj_status* accumulator(aj_tensor* leaf, aj_node** out) {
  if (!requires_grad(leaf) || priv(leaf).node)
    return fail(AJ_PRECONDITION,
                "accumulator: only a leaf that requires grad accumulates a gradient");
  return accumulator_node(leaf, out);
}

aj_str node_name(aj_node* n) { return str(node_name_of(node_of(n))); }
uint64_t node_sequence(aj_node* n) { return node_of(n)->seq; }
uint32_t node_edges(aj_node* n) {
  return node_of(n)->flags & kNodeAccumulator ? 0 : node_of(n)->nedges;
}

aj_status* node_edge(aj_node* abi, uint32_t i, aj_node** out, uint32_t* result) {
  *out = nullptr;
  if (i >= node_edges(abi))
    return fail(AJ_OUT_OF_RANGE, "node_edge: ", node_name(abi), " has ", node_edges(abi),
                " edges, asked for number ", i);
  const Edge& e = node_of(abi)->edges()[i];
  if (result) *result = e.nr;
  if (!e.target) return nullptr;
  if (e.flags & kEdgeLeaf) return accumulator_node(static_cast<aj_tensor*>(e.target), out);
  node_retain(static_cast<Node*>(e.target));
  *out = static_cast<Node*>(e.target)->abi();
  return nullptr;
}

aj_status* node_saved(aj_node* n, uint32_t i, aj_value* out) {
  return unpack_one(node_of(n), i, out);
}
uint32_t node_line(aj_node* n) { return node_of(n)->line; }

aj_tensor* node_variable(aj_node* n) {
  return node_of(n)->flags & kNodeAccumulator
             ? static_cast<aj_tensor*>(node_of(n)->edges()[0].target)
             : nullptr;
}

}  // namespace adjoin

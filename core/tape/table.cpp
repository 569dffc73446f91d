// core/tape/table.cpp: the interface "aj.autograd".
#include "core/tape/table.hpp"

#include "core/base/guarded.hpp"
#include "core/op/registry.hpp"
#include "core/tape/builder.hpp"
#include "core/tape/custom.hpp"
#include "core/tape/engine.hpp"
#include "core/tape/graph.hpp"
#include "core/tape/hooks.hpp"
#include "core/tape/modes.hpp"
#include "core/tape/saved.hpp"

namespace adjoin {
namespace {

aj_status* save_value(aj_saver* s, const aj_value* v) {
  aj_value to = *v;
  if (v->tag == AJ_TENSORS) {
    s->memory.emplace_back(new char[sizeof(void*) * (v->aux + 1)]);
    auto* copy = reinterpret_cast<aj_tensor**>(s->memory.back().get());
    for (uint32_t i = 0; i < v->aux; i++) retain(copy[i] = v->v.tensors[i]);
    to.v.tensors = copy;
  } else if (uint64_t bytes = bytes_behind(*v)) {
    s->memory.emplace_back(new char[bytes]);
    copy_behind(&to, *v, s->memory.back().get());
  } else if (v->tag >= AJ_TENSOR) {
    retain(v->v.object);
  }
  s->values.push_back(to);
  return nullptr;
}

}  // namespace

const aj_autograd autograd_table = {
    .struct_size = sizeof(aj_autograd),
    .minor = AJ_ABI_MINOR,
    .def_vjp = guarded<def_vjp>,
    .save = guarded<save_value>,
    .grad_mode = grad_mode,
    .set_grad_mode = set_grad_mode,
    .inference_mode = inference_mode,
    .set_inference_mode = set_inference_mode,
    .set_anomaly_mode = set_anomaly_mode,
    .set_requires_grad = guarded<set_requires_grad>,
    .grad = get_grad,
    .set_grad = guarded<set_grad>,
    .retain_grad = guarded<retain_grad>,
    .retains_grad = retains_grad,
    .detach = guarded<detach>,
    .detach_in_place = guarded<detach_in_place>,
    .data = guarded<data_of>,
    .set_data = guarded<set_data>,
    .base = base_of,
    .backward = guarded<backward>,
    .hook_tensor = guarded<hook_tensor>,
    .hook_node = guarded<hook_node>,
    .hook_remove = guarded<hook_remove>,
    .push_saved_hooks = guarded<push_saved_hooks>,
    .pop_saved_hooks = guarded<pop_saved_hooks>,
    .tensor_node = guarded<tensor_node>,
    .accumulator = guarded<accumulator>,
    .node_name = node_name,
    .node_sequence = node_sequence,
    .node_edges = node_edges,
    .node_edge = guarded<node_edge>,
    .node_saved = guarded<node_saved>,
    .node_line = node_line,
    .node_variable = node_variable,
    .node_new = guarded<node_new>,
    .node_save = guarded<node_save>,
    .node_attach = guarded<node_attach>,
    .node_payload = node_payload,
    .node_results = guarded<node_results>,
};

}  // namespace adjoin

// core/autograd/table.cpp: the interface "aj.autograd".
#include "core/autograd/table.hpp"

#include "core/autograd/builder.hpp"
#include "core/autograd/custom.hpp"
#include "core/autograd/engine.hpp"
#include "core/autograd/graph.hpp"
#include "core/autograd/hooks.hpp"
#include "core/autograd/modes.hpp"
#include "core/autograd/saved.hpp"
#include "core/dispatch/registry.hpp"

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
  } else if (v->tag >= AJ_TENSOR && v->tag != AJ_STREAM) {
    retain(v->v.object);
  }
  s->values.push_back(to);
  return nullptr;
}

}  // namespace

// Callbacks of users and allocations inside may throw; nothing passes the table.
template <auto F>
struct Guarded;
template <class... A, aj_status* (*F)(A...)>
struct Guarded<F> {
  static aj_status* call(A... a) {
    try {
      return F(a...);
    } catch (const std::exception& e) {
      return fail(AJ_INTERNAL, "autograd: ", e.what());
    }
  }
};

const aj_autograd autograd_table = {
    .struct_size = sizeof(aj_autograd),
    .minor = AJ_ABI_MINOR,
    .def_vjp = Guarded<def_vjp>::call,
    .save = Guarded<save_value>::call,
    .grad_mode = grad_mode,
    .set_grad_mode = set_grad_mode,
    .inference_mode = inference_mode,
    .set_inference_mode = set_inference_mode,
    .set_anomaly_mode = set_anomaly_mode,
    .set_requires_grad = Guarded<set_requires_grad>::call,
    .grad = get_grad,
    .set_grad = Guarded<set_grad>::call,
    .retain_grad = Guarded<retain_grad>::call,
    .retains_grad = retains_grad,
    .detach = Guarded<detach>::call,
    .detach_in_place = Guarded<detach_in_place>::call,
    .data = Guarded<data_of>::call,
    .set_data = Guarded<set_data>::call,
    .base = base_of,
    .backward = Guarded<backward>::call,
    .hook_tensor = Guarded<hook_tensor>::call,
    .hook_node = Guarded<hook_node>::call,
    .hook_remove = Guarded<hook_remove>::call,
    .push_saved_hooks = Guarded<push_saved_hooks>::call,
    .pop_saved_hooks = Guarded<pop_saved_hooks>::call,
    .tensor_node = Guarded<tensor_node>::call,
    .accumulator = Guarded<accumulator>::call,
    .node_name = node_name,
    .node_sequence = node_sequence,
    .node_edges = node_edges,
    .node_edge = Guarded<node_edge>::call,
    .node_saved = Guarded<node_saved>::call,
    .node_line = node_line,
    .node_variable = node_variable,
    .node_new = Guarded<node_new>::call,
    .node_save = Guarded<node_save>::call,
    .node_attach = Guarded<node_attach>::call,
    .node_payload = node_payload,
    .node_results = Guarded<node_results>::call,
};

}  // namespace adjoin

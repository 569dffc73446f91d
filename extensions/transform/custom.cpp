// extensions/transform/custom.cpp: custom functions are applied: the tape of a level records one
// node, then the function is applied to what its arguments stand for below.
#include "custom.hpp"

#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "batch.hpp"
#include "dual.hpp"
#include "jvp.hpp"

namespace adjoin::transform {
namespace {

std::vector<Tensor> apply(const SharedFunction& f, std::span<const aj_value> args, uint32_t nrets);

bool differentiable(DLDataType d) {
  return d.code == kDLFloat || d.code == kDLBfloat || d.code == kDLComplex;
}

// A view follows its base, which may have been written.
bool needs_gradient(aj_tensor* t) {
  if (t->obj.flags & AJ_TENSOR_REQUIRES_GRAD || !(t->obj.flags & AJ_TENSOR_VIEW))
    return t->obj.flags & AJ_TENSOR_REQUIRES_GRAD;
  aj_tensor* base = nullptr;
  check(autograd().base(t, &base));
  const Tensor held = Tensor::steal(base);
  return held.defined() && held.requires_grad();
}

// The tape.

struct Recorded {
  SharedFunction f;
  uint32_t nargs;
};

aj_status* gradient_of_node(void*, aj_grad_call* g) {
  const auto* node = static_cast<const Recorded*>(g->payload);
  return guard(node->f->name(), [&] {
    if (!node->f->def().vjp)
      raise_as("NotImplementedError", AJ_UNIMPLEMENTED,
               "it has no derivative; detach its arguments, or give it a vjp");
    const std::span saved(g->saved, g->nsaved);
    const Applied call{saved.first(node->nargs), saved.subspan(node->nargs)};
    std::vector<Tensor> grads = node->f->gradient(call, {g->grad_out, g->ngrad_out}, g->needs);
    for (uint32_t i = 0; i < g->ngrad_in; i++)
      if (g->needs[i]) g->grad_in[i] = grads[i].take();
  });
}

void drop_node(void* payload) { delete static_cast<Recorded*>(payload); }

// Of its shape, dtype and device, without its values.
Tensor stand_in(const Tensor& t) {
  if (!t.has_memory() && !is_wrapped(t.get())) return t;
  return expand(new_empty(t, Ints(nullptr, 0)), t.shape());
}

// Whether the derivative looks at the values of argument or result i.
bool is_read(const Function& f, int32_t what, size_t i, std::span<const uint8_t> needs) {
  const aj_vjp_def* d = f.def().vjp;
  for (uint32_t n = 0; d && n < d->nsave; n++) {
    const aj_save& s = d->save[n];
    if (s.what != what || size_t(s.index) != i) continue;
    bool wanted = !s.only_for;
    for (size_t k = 0; k < needs.size() && k < 64; k++) wanted |= (s.only_for >> k & 1) && needs[k];
    if (wanted) return true;
  }
  return false;
}

// The results become those of a node.
void record(const SharedFunction& f, std::span<const aj_value> args, std::vector<Tensor>& results) {
  std::vector<aj_tensor*> inputs;
  std::vector<uint8_t> needs;
  for (const aj_value& v : args) {
    inputs.push_back(v.tag == AJ_TENSOR ? v.v.tensor : nullptr);
    needs.push_back(inputs.back() && needs_gradient(inputs.back()));
  }
  aj_vjp_def d{};
  d.struct_size = sizeof d;
  d.op = f->def().name;
  d.flags = f->def().vjp ? f->def().vjp->flags & AJ_VJP_ONCE : 0;
  d.vjp = gradient_of_node;
  d.drop = drop_node;
  auto payload = std::make_unique<Recorded>(Recorded{f, uint32_t(args.size())});
  aj_node* made = nullptr;
  check(autograd().node_new(&d, payload.get(), inputs.data(), uint32_t(inputs.size()), &made));
  payload.release();
  const std::unique_ptr<aj_node, void (*)(aj_node*)> node(made,
                                                          [](aj_node* n) { core().release(n); });
  check(autograd().node_results(made, uint32_t(results.size())));
  for (size_t i = 0; i < results.size(); i++) {
    if (std::ranges::find(inputs, results[i].get()) != inputs.end() || results[i].requires_grad())
      results[i] = results[i].detach();  // an argument keeps its own history
    if (differentiable(results[i].dtype()))
      check(autograd().node_attach(made, uint32_t(i), results[i].get(), 0));
  }
  NoGradGuard unrecorded;
  auto keep = [&](const aj_value& v, bool read, bool is_result) {
    Tensor other;
    aj_value kept = v;
    if (v.tag == AJ_TENSOR && !read) kept = value(other = stand_in(Tensor::view(v.v.tensor)));
    is_result = is_result && kept.v.tensor == v.v.tensor && differentiable(v.v.tensor->dl.dtype);
    check(autograd().node_save(made, &kept, is_result));
  };
  for (size_t i = 0; i < args.size(); i++) keep(args[i], is_read(*f, AJ_SAVE_ARG, i, needs), false);
  for (size_t i = 0; i < results.size(); i++)
    keep(value(results[i]), is_read(*f, AJ_SAVE_RESULT, i, needs), true);
}

bool is_recorded(const Function& f, std::span<const aj_value> args, const Level* l) {
  if (!autograd().grad_mode() || (f.def().vjp && f.def().vjp->flags & AJ_VJP_NO_GRAD_RESULTS))
    return false;
  return std::ranges::any_of(args, [&](const aj_value& v) {
    return v.tag == AJ_TENSOR && (!l || at_level(v.v.tensor, *l)) && needs_gradient(v.v.tensor);
  });
}

// A batch.

// `apply` for each sample.
std::vector<Tensor> one_by_one(const SharedFunction& f, std::span<const aj_value> args,
                               std::span<const int32_t> dims, int64_t size, uint32_t nrets) {
  if (!size)
    raise(AJ_UNIMPLEMENTED, "vmap: an empty batch of a function without batch; give it one");
  const Looping looping(f->name(), "it is a function without batch", size);
  std::vector<std::vector<Tensor>> columns(nrets);
  for (int64_t s = 0; s < size; s++) {
    std::vector<aj_value> one(args.begin(), args.end());
    std::vector<Tensor> held;
    held.reserve(one.size());
    for (size_t i = 0; i < one.size(); i++)
      if (dims[i] == 0)
        one[i] = value(held.emplace_back(select(Tensor::view(one[i].v.tensor), 0, s)));
    std::vector<Tensor> made = apply(f, one, nrets);
    for (uint32_t i = 0; i < nrets; i++) columns[i].push_back(made[i]);
  }
  std::vector<Tensor> results;
  for (auto& column : columns) results.push_back(stack(column, 0));
  looping.done();
  return results;
}

std::vector<Tensor> by_rule(const Function& f, std::span<const aj_value> args,
                            std::span<const int32_t> dims, const Level& l, uint32_t nrets,
                            std::vector<int32_t>& out_dims) {
  std::vector<aj_value> rets(nrets);
  aj_batch_call c{};
  c.struct_size = sizeof c;
  c.core = &core();
  c.op = &dispatch();
  c.args = args.data();
  c.dims = dims.data();
  c.rets = rets.data();
  c.out_dims = out_dims.data();
  c.size = l.size;
  c.nargs = c.ndims = uint32_t(args.size());
  c.nrets = nrets;
  c.randomness = l.randomness;
  aj_status* failed = f.def().batch->batch(f.def().batch->self, &c);
  std::vector<Tensor> made(nrets);
  for (uint32_t i = 0; i < nrets; i++) {
    if (rets[i].tag == AJ_TENSOR) made[i] = take<Tensor>(rets[i]);
    drop(rets[i]);
  }
  check(failed);
  for (uint32_t i = 0; i < nrets; i++) {
    if (!made[i].defined()) raise(AJ_INTERNAL, "result ", i, " of its batch is no tensor");
    if (out_dims[i] != 0 && out_dims[i] != -1)
      raise(AJ_INTERNAL, "its batch says that result ", i, " has samples in dimension ",
            out_dims[i], "; 0 or -1 is wanted");
    if (out_dims[i] == 0 && (made[i].ndim() == 0 || made[i].shape()[0] != l.size))
      raise(AJ_INTERNAL, "its batch gave result ", i, " the shape ",
            Shape{made[i].dl().shape, made[i].ndim()}, "; ", l.size,
            " samples in front are wanted");
  }
  return made;
}

std::vector<Tensor> of_samples(const SharedFunction& f, std::span<const aj_value> args,
                               uint32_t nrets, Level& l) {
  std::vector<aj_value> given(args.begin(), args.end());
  std::vector<int32_t> dims(args.size(), -1), out_dims(nrets, 0);
  std::vector<Tensor> held;
  held.reserve(args.size());
  bool differs = l.randomness == AJ_RANDOM_DIFFERENT;
  for (size_t i = 0; i < given.size(); i++) {
    if (given[i].tag != AJ_TENSOR || !at_level(given[i].v.tensor, l)) continue;
    bool batched = false;
    given[i] = value(held.emplace_back(current_value(given[i].v.tensor, &batched)));
    dims[i] = batched ? 0 : -1;
    differs |= batched;
  }
  std::vector<Tensor> results;
  {
    Below below(l);
    if (!differs) {
      results = apply(f, given, nrets);
      std::ranges::fill(out_dims, -1);
    } else if (f->def().batch) {
      results = by_rule(*f, given, dims, l, nrets, out_dims);
    } else if (f->def().flags & AJ_CUSTOM_MAP_PARTS) {
      results = apply(mapped_function(f, dims, l), given, nrets);
    } else {
      results = one_by_one(f, given, dims, l.size, nrets);
    }
  }
  for (uint32_t i = 0; i < nrets; i++)
    results[i] = make_wrapper(l, results[i], {}, out_dims[i] == 0);
  return results;
}

// Tangents.

std::vector<Tensor> moved(const SharedFunction& f, const Applied& call,
                          std::span<const Tensor> tangents) {
  const aj_jvp_def* rule = f->def().jvp;
  const aj_vjp_def* vjp = f->def().vjp;
  std::vector<Tensor> out(call.rets.size());
  if (rule && rule->jvp) return f->push(call, tangents);
  if ((rule && rule->flags & AJ_JVP_ZERO) || (vjp && vjp->flags & AJ_VJP_NO_GRAD_RESULTS))
    return out;
  bool linear = rule != nullptr;
  for (size_t i = 0; rule && i < tangents.size(); i++)
    linear &= !tangents[i].defined() || (i < 64 && rule->linear >> i & 1);
  if (linear) {
    for (size_t i = 0; i < tangents.size(); i++) {
      if (!tangents[i].defined()) continue;
      std::vector<aj_value> args(call.args.begin(), call.args.end());
      args[i] = value(tangents[i]);
      const std::vector<Tensor> part = apply(f, args, uint32_t(out.size()));
      for (size_t k = 0; k < out.size(); k++) out[k] = jvp::plus(out[k], part[k]);
    }
    return out;
  }
  if (!vjp || vjp->flags & AJ_VJP_ONCE)
    raise_as("NotImplementedError", AJ_UNIMPLEMENTED,
             vjp ? "its vjp cannot be differentiated, so it has no derivative along a tangent; "
                   "give it a jvp"
                 : "there is no derivative along a tangent; detach its arguments, or give it a jvp "
                   "or a vjp");
  std::vector<aj_tensor*> inputs, results;
  for (size_t i = 0; i < call.args.size(); i++) inputs.push_back(call.input(i));
  for (const aj_value& v : call.rets) results.push_back(v.v.tensor);
  jvp::along_twice(
      inputs, tangents, results, out,
      [&](aj_tensor* const* grad_out, const uint8_t* needs, aj_tensor** grads) {
        std::vector<Tensor> made = f->gradient(call, {grad_out, results.size()}, needs);
        for (size_t i = 0; i < made.size(); i++) grads[i] = made[i].take();
      });
  return out;
}

std::vector<Tensor> of_duals(const SharedFunction& f, std::span<const aj_value> args,
                             uint32_t nrets, Level& l) {
  std::vector<aj_value> given(args.begin(), args.end());
  std::vector<Tensor> tangents(args.size()), results, along(nrets);
  {
    Below below(l);
    bool moves = false;
    for (size_t i = 0; i < given.size(); i++) {
      Payload* p = given[i].tag == AJ_TENSOR ? at_level(given[i].v.tensor, l) : nullptr;
      if (!p) continue;
      tangents[i] = tangent_of(*p);
      moves |= tangents[i].defined();
      given[i].v.tensor = p->value;
    }
    results = apply(f, given, nrets);
    if (moves) {
      std::vector<aj_value> rets;
      for (const Tensor& t : results) rets.push_back(value(t));
      along = moved(f, {given, rets}, tangents);
    }
  }
  for (uint32_t i = 0; i < nrets; i++)
    if (differentiable(results[i].dtype()))
      results[i] = make_wrapper(l, results[i], along[i], false);
  return results;
}

// The innermost level among the arguments; NULL: none is of one.
Level* level_among(std::span<aj_value> args) {
  Level* found = nullptr;
  for (aj_value& v : args) {
    if (v.tag != AJ_TENSOR) continue;
    while (is_wrapped(v.v.tensor) && !payload_of(v.v.tensor)->level->open) {
      if (!payload_of(v.v.tensor)->level->kept) ended(*payload_of(v.v.tensor)->level);
      v.v.tensor = payload_of(v.v.tensor)->value;
    }
    if (!is_wrapped(v.v.tensor)) continue;
    Level* l = payload_of(v.v.tensor)->level;
    if (!found || l->id > found->id) found = l;
  }
  return found;
}

std::vector<Tensor> apply(const SharedFunction& f, std::span<const aj_value> given,
                          uint32_t nrets) {
  std::vector<aj_value> args(given.begin(), given.end());
  Level* l = level_among(args);
  const bool recorded = is_recorded(*f, args, l);
  std::vector<Tensor> results = !l                          ? f->forward(args, nrets)
                                : l->kind == AJ_LEVEL_BATCH ? of_samples(f, args, nrets, *l)
                                                            : of_duals(f, args, nrets, *l);
  if (recorded) record(f, args, results);
  return results;
}

void check_def(const aj_custom_def* f) {
  if (!f || f->struct_size < AJ_END_OF(aj_custom_def, batch))
    raise(AJ_INVALID_ARGUMENT, "aj_custom_def: struct_size is ", f ? f->struct_size : 0,
          ", at least ", uint64_t(AJ_END_OF(aj_custom_def, batch)), " is needed");
  if (f->flags & ~uint32_t(AJ_CUSTOM_MAP_PARTS))
    raise(AJ_INVALID_ARGUMENT, "aj_custom_def: flags ", f->flags,
          " are not known to this libaj_transform");
  if (!f->forward) raise(AJ_INVALID_ARGUMENT, "it has no forward");
  if (f->batch && (f->flags & AJ_CUSTOM_MAP_PARTS || !f->batch->batch))
    raise(AJ_INVALID_ARGUMENT,
          f->batch->batch ? "it has both batch and AJ_CUSTOM_MAP_PARTS; one of them is wanted"
                          : "its aj_batch_def has no batch");
  if (!f->vjp) return;
  if (f->vjp->struct_size < AJ_END_OF(aj_vjp_def, drop))
    raise(AJ_INVALID_ARGUMENT, "aj_vjp_def: struct_size is ", f->vjp->struct_size, ", at least ",
          uint64_t(AJ_END_OF(aj_vjp_def, drop)), " is needed");
  if (!f->vjp->vjp && !(f->vjp->flags & AJ_VJP_NO_GRAD_RESULTS))
    raise(AJ_INVALID_ARGUMENT, "its aj_vjp_def has no vjp");
  if (f->vjp->save_more || f->vjp->drop)
    raise(AJ_INVALID_ARGUMENT,
          "its aj_vjp_def has save_more or drop; what a derivative needs besides "
          "arguments is one more result");
}

}  // namespace

aj_status* custom_apply(const aj_custom_def* f, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets) {
  const std::string_view name =
      f && f->struct_size >= AJ_END_OF(aj_custom_def, name) ? view_of(f->name) : "custom_apply";
  return guard(name, [&] {
    check_def(f);
    for (uint32_t i = 0; i < nargs; i++)
      if (args[i].tag == AJ_TENSORS || args[i].tag == AJ_LIST_OBJ)
        raise(AJ_WRONG_TYPE, "argument ", i, " is a list; give its tensors one by one");
    if (!nrets) raise(AJ_INVALID_ARGUMENT, "a function without results is applied");
    std::vector<Tensor> results = apply(given_function(*f), {args, nargs}, nrets);
    for (uint32_t i = 0; i < nrets; i++) {
      rets[i] = value(results[i]);
      results[i].take();
    }
  });
}

}  // namespace adjoin::transform

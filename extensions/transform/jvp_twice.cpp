// extensions/transform/jvp_twice.cpp: forward mode from a gradient alone. It is linear in the
// gradient g of the result: its own gradient by g, along the tangents, is the derivative.
#include "jvp.hpp"

namespace adjoin::transform::jvp {
namespace {

class Recording {  // on for a scope
 public:
  Recording() : before_(kit::env.autograd->set_grad_mode(1)) {}
  Recording(const Recording&) = delete;
  ~Recording() { kit::env.autograd->set_grad_mode(before_); }
  bool before() const { return before_; }

 private:
  int32_t before_;
};

bool has_derivative(const aj_tensor* t) {
  const DLDataType d = t->dl.dtype;
  return d.code == kDLFloat || d.code == kDLBfloat || d.code == kDLComplex;
}

// What is recorded here, and how deep.
struct Surroundings {
  int32_t level = 0;
  bool requires_grad = false;
  void look(const aj_tensor* t) {
    if (!t) return;
    level = std::max(level, wrap_table->tensor_level(t));
    requires_grad |= (t->obj.flags & AJ_TENSOR_REQUIRES_GRAD) != 0;
  }
};

// Ones, not zeros: ops of a formula (xlogy, a product with a mask) may have edges at zero.
Tensor dummy(aj_tensor* result, int32_t level) {
  NoGradGuard off;
  Tensor ones = ones_like(Tensor::view(result));
  if (level) ones = lift(ones, *find_level(level, "jvp"));
  return ones.detach().requires_grad_();
}

[[noreturn]] void refuse(const Forward& f) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  kit::check(kit::env.op->op_info(f.op, &info));
  kit::raise_as("NotImplementedError", AJ_UNIMPLEMENTED, kit::view_of(info.name),
                ": there is no derivative along a tangent; detach its inputs, or give it one by "
                "aj_def_jvp or def_vjp");
}

}  // namespace

void derivative_twice(const Rule& rule, const Forward& f) {
  std::vector<aj_tensor*> inputs, results;
  each_input(rule, f.args, f.nargs,
             [&](aj_tensor* t, uint32_t, uint32_t, uint32_t) { inputs.push_back(t); });
  each_result(f.rets, f.nrets, [&](aj_tensor* t, uint32_t) { results.push_back(t); });
  along_twice(inputs, f.tangents, results, f.out,
              [&](aj_tensor* const* grad_out, const uint8_t* needs, aj_tensor** grads) {
                gradient(f, f.args, grad_out, needs, grads);
              });
}

void along_twice(std::span<aj_tensor* const> inputs, std::span<const Tensor> tangents,
                 std::span<aj_tensor* const> results, std::span<Tensor> out, const Pull& pull) {
  Surroundings around;
  std::vector<uint8_t> needs(inputs.size());
  for (size_t n = 0; n < inputs.size(); n++) {
    around.look(inputs[n]);
    around.look(tangents[n].get());
    needs[n] = tangents[n].defined();
  }
  std::vector<Tensor> ones(results.size());
  std::vector<aj_tensor*> given(results.size()), leaves;
  std::vector<size_t> place;
  for (size_t n = 0; n < results.size(); n++) {
    aj_tensor* t = results[n];
    if (!t || !has_derivative(t) || !kit::env.core->tensor_numel(t)) continue;
    ones[n] = dummy(t, around.level);
    leaves.push_back(given[n] = ones[n].get());
    place.push_back(n);
  }
  if (leaves.empty()) return;

  std::vector<aj_tensor*> grads(inputs.size()), roots, along, found(leaves.size());
  Recording on;
  pull(given.data(), needs.data(), grads.data());
  std::vector<Tensor> owned;
  for (size_t n = 0; n < grads.size(); n++) {
    owned.push_back(Tensor::steal(grads[n]));
    if (!grads[n] || !owned.back().requires_grad() || !tangents[n].defined()) continue;
    roots.push_back(grads[n]);
    along.push_back(tangents[n].get());
  }
  if (roots.empty()) return;
  aj_backward run{};
  run.struct_size = sizeof run;
  run.flags = AJ_BACKWARD_ALLOW_UNUSED;
  const bool kept = on.before() && (around.level || around.requires_grad);
  if (kept) run.flags |= AJ_BACKWARD_CREATE_GRAPH;
  run.roots = roots.data();
  run.grads = along.data();
  run.inputs = leaves.data();
  run.out = found.data();
  run.nroots = uint32_t(roots.size());
  run.ninputs = uint32_t(leaves.size());
  kit::check(kit::env.autograd->backward(&run));
  for (size_t i = 0; i < found.size(); i++) out[place[i]] = Tensor::steal(found[i]);
}

void gradient(const Forward& f, const aj_value* args, aj_tensor* const* grad_out,
              const uint8_t* needs, aj_tensor** grads) {
  aj_status* s =
      lower_table->apply_vjp(f.op, args, f.nargs, f.rets, f.nrets, grad_out, needs, grads);
  if (s && kit::env.core->status_code(s) == AJ_NOT_FOUND) {
    kit::env.core->status_free(s);
    refuse(f);
  }
  kit::check(s);
}

}  // namespace adjoin::transform::jvp

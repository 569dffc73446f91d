// extensions/transform/jvp_given.cpp: rules of plugins: services "aj.jvp", by the op's name.
#include "jvp.hpp"

namespace adjoin::transform::jvp {

const aj_jvp_def* given_rule(std::string_view name) {
  return static_cast<const aj_jvp_def*>(given_rule_of(AJ_STR_LIT("aj.jvp"), name));
}

void apply_given(const Rule& rule, const Forward& f) {
  std::vector<aj_tensor*> tangents, out(f.out.size());
  for (const Tensor& t : f.tangents) tangents.push_back(t.get());
  aj_jvp_call c{};
  c.struct_size = sizeof c;
  c.core = &core();
  c.op = &dispatch();
  c.autograd = &autograd();
  c.target = f.op;
  c.args = f.args;
  c.rets = f.rets;
  c.tangents = tangents.data();
  c.out = out.data();
  c.nargs = f.nargs;
  c.nrets = f.nrets;
  c.ntangents = uint32_t(tangents.size());
  c.nout = uint32_t(out.size());
  aj_status* s = rule.given->jvp(rule.given->self, &c);
  for (size_t i = 0; i < out.size(); i++) f.out[i] = Tensor::steal(out[i]);
  check(s);
  each_result(f.rets, f.nrets, [&](aj_tensor* t, uint32_t n) {
    const Tensor& made = f.out[n];
    if (!made.defined()) return;
    if (!t || !std::ranges::equal(made.shape(), Tensor::view(t).shape()) ||
        !(made.dtype() == Tensor::view(t).dtype()))
      raise(AJ_INTERNAL, "its jvp gave result ", uint64_t(n), " a tangent ", made.dtype(),
            " of shape ", Shape{made.dl().shape, made.ndim()},
            ", the result has another dtype or shape");
  });
}

}  // namespace adjoin::transform::jvp

// extensions/transform/jvp.cpp: rules that follow from an op's kind, its tags and its gradient.
#include "jvp.hpp"

#include <adjoin/kit/words.hpp>

#include "by_op.hpp"

namespace adjoin::transform::jvp {
namespace {

bool is_elementwise(std::string_view kind) {
  return kind.starts_with("unary") || kind.starts_with("binary") || kind == "pointwise";
}

How how_of(const aj_op_info& info) {
  const std::string_view kind = kit::view_of(info.kind), tags = kit::view_of(info.tags);
  const bool own = info.flags & AJ_INFO_OWN_VJP;
  if (kind == "view") return info.flags & AJ_INFO_DIFFERENTIABLE ? How::view : How::zero;
  if (kind == "compare" || kind.ends_with("bool") || (kind == "reduce_index" && !own))
    return How::zero;
  if (!own && (info.flags & AJ_INFO_COMPOSITE) && (info.flags & AJ_INFO_DIFFERENTIABLE))
    return How::body;
  if (has_word(tags, "linear")) return How::joint;
  if (kind == "linear") return How::each;
  if (kind.starts_with("reduce") && info.nresults == 1) return How::reduced;
  const bool elementwise = is_elementwise(kind) || has_word(tags, "elementwise");
  return elementwise && info.nresults == 1 ? How::elementwise : How::twice;
}

Rule take_given(Rule r) {
  const aj_jvp_def& d = *r.given;
  r.holomorphic = d.flags & AJ_JVP_HOLOMORPHIC;
  r.only = d.linear;
  r.how = d.jvp                          ? How::given
          : d.flags & AJ_JVP_ZERO        ? How::zero
          : d.linear                     ? How::each
          : d.flags & AJ_JVP_ELEMENTWISE ? How::elementwise
                                         : How::twice;
  return r;
}

bool writes_first(const aj_op* op) {
  aj_param p{}, r{};
  p.struct_size = r.struct_size = sizeof p;
  if (aj_status* none = env.op->op_result(op, 0, &r)) return core().status_free(none), false;
  if (aj_status* none = env.op->op_param(op, 0, &p)) return core().status_free(none), false;
  return (p.flags & AJ_PARAM_WRITTEN) && (r.flags & AJ_PARAM_ALIASED);
}

Rule make_rule(const aj_op* op) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  kit::check(kit::env.op->op_info(op, &info));
  Rule r;
  r.how = how_of(info);
  const std::string_view name = kit::view_of(info.name);
  r.needs_order = name.starts_with("view") || name == "as_strided";
  r.writes_first = writes_first(op);
  r.holomorphic = has_word(kit::view_of(info.tags), "holomorphic");
  r.nparams = info.nparams;
  for (uint32_t i = 0; i < info.nparams; i++) {
    aj_param p{};
    p.struct_size = sizeof p;
    kit::check(kit::env.op->op_param(op, i, &p));
    const bool tensor = p.base == AJ_PARAM_TENSOR || p.base == AJ_PARAM_OPERAND;
    if (p.base == AJ_PARAM_DIM) r.dim = int32_t(i);
    if (kit::view_of(p.name) == "keepdim") r.keepdim = int32_t(i);
    r.kind.push_back(!tensor ? kNoTensor : p.list ? kSeveral : kOne);
  }
  if ((r.given = given_rule(kit::view_of(info.name)))) return take_given(r);
  if (const Written* w = written_rule(kit::view_of(info.name))) {
    r.how = w->how;
    r.fn = w->rule;
    r.holomorphic |= w->how == How::elementwise && is_elementwise(kit::view_of(info.kind));
  }
  return r;
}

// The call's arguments with other tensors in some places.
class Arguments {
 public:
  explicit Arguments(const Forward& f) : args_(f.args, f.args + f.nargs) {}
  void put(uint32_t param, uint32_t item, const Tensor& t) {
    keep_.push_back(t);
    aj_value& v = args_[param];
    if (v.tag != AJ_TENSORS) {
      v = value(t);
      return;
    }
    auto& list = lists_[param];
    if (list.empty()) {
      list.assign(v.v.tensors, v.v.tensors + v.aux);
      v.v.tensors = list.data();
    }
    list[item] = t.get();
  }
  std::span<const aj_value> all() const { return args_; }

 private:
  std::vector<aj_value> args_;
  std::vector<Tensor> keep_;
  std::unordered_map<uint32_t, std::vector<aj_tensor*>> lists_;
};

bool differs(const Tensor& a, const Tensor& b) {
  return a.dtype().code == kDLFloat || a.dtype().code == kDLBfloat || a.is_complex()
             ? !(a.dtype() == b.dtype()) || !std::ranges::equal(a.shape(), b.shape())
             : false;
}

// As large as the result, and of its dtype: then the gradient's formula sums and casts nothing.
Tensor like_result(const Tensor& t, const Tensor& result) {
  Tensor r = t.dtype() == result.dtype() ? t : cast(t, result.dtype());
  if (std::ranges::equal(r.shape(), result.shape())) return r;
  return expand(r, result.shape());
}

bool any_complex(const Rule& rule, const Forward& f) {
  bool found = false;
  each_input(rule, f.args, f.nargs, [&](aj_tensor* t, uint32_t, uint32_t, uint32_t) {
    found |= t && t->dl.dtype.code == kDLComplex;
  });
  each_result(f.rets, f.nrets,
              [&](aj_tensor* t, uint32_t) { found |= t && t->dl.dtype.code == kDLComplex; });
  return found;
}

// n zeros: few of them on the stack.
template <class T>
class Zeros {
 public:
  explicit Zeros(size_t n) : many_(n > kFew ? n : 0), at_(n > kFew ? many_.data() : few_) {}
  Zeros(const Zeros&) = delete;
  T* data() { return at_; }
  T& operator[](size_t i) { return at_[i]; }

 private:
  static constexpr size_t kFew = 8;
  T few_[kFew] = {};
  std::vector<T> many_;
  T* at_;
};

void elementwise(const Rule& rule, const Forward& f) {
  if (any_complex(rule, f) && !rule.holomorphic) return derivative_twice(rule, f);
  if (rule.fn) return rule.fn(f);
  const Tensor& result = Tensor::view(f.rets[0].v.tensor);
  Zeros<uint8_t> needs(f.tangents.size());
  Zeros<aj_tensor*> grads(f.tangents.size());
  each_input(rule, f.args, f.nargs, [&](aj_tensor* t, uint32_t n, uint32_t param, uint32_t item) {
    if (!f.moves(n)) return;
    const Tensor& input = Tensor::view(t);
    const Tensor along = kit::conj(like_result(f.tangents[n], result));
    aj_tensor* const grad_out = along.get();
    needs[n] = 1;
    if (differs(input, result)) {
      Arguments args(f);
      args.put(param, item, like_result(input, result));
      gradient(f, args.all().data(), &grad_out, needs.data(), grads.data());
    } else {
      gradient(f, f.args, &grad_out, needs.data(), grads.data());
    }
    needs[n] = 0;
    if (const Tensor g = Tensor::steal(grads[n]); g.defined())  // else zero
      f.out[0] = plus(f.out[0], kit::conj(g));
  });
}

// The op itself with tangents in the places of one tensor (or one list), summed over those that
// move.
void products(const Rule& rule, const Forward& f) {
  for (uint32_t param = 0; param < rule.nparams; param++) {
    bool any = false;
    each_input(rule, f.args, f.nargs, [&](aj_tensor*, uint32_t n, uint32_t p, uint32_t) {
      any |= p == param && f.moves(n);
    });
    if (!any) continue;
    if (!(rule.only >> param & 1)) return derivative_twice(rule, f);
    Arguments args(f);
    each_input(rule, f.args, f.nargs, [&](aj_tensor* t, uint32_t n, uint32_t p, uint32_t item) {
      if (p == param && t)
        args.put(p, item, f.moves(n) ? f.tangents[n] : zeros_like(Tensor::view(t)));
    });
    f.out[0] = plus(f.out[0], call_with(f.op, args.all(), f.nrets));
  }
}

// The op itself on all tangents.
void jointly(const Rule& rule, const Forward& f) {
  Arguments args(f);
  each_input(rule, f.args, f.nargs, [&](aj_tensor* t, uint32_t n, uint32_t p, uint32_t item) {
    if (!t) return;
    const Tensor& x = Tensor::view(t);
    if (f.moves(n))
      args.put(p, item, f.tangents[n]);
    else if (x.is_floating_point() || x.is_complex())
      args.put(p, item, zeros_like(x));
  });
  f.out[0] = call_with(f.op, args.all(), f.nrets);
}

void reduced(const Rule& rule, const Forward& f) {
  if (any_complex(rule, f) || rule.keepdim < 0) return derivative_twice(rule, f);
  if (!f.moves(0)) return;
  const Tensor& result = Tensor::view(f.rets[0].v.tensor);
  const Tensor weight = pulled(f, f.args, 0, ones_like(result));
  if (!weight.defined()) return;
  const kit::Values at(f.args);
  const Tensor moved = weight * f.tangents[0];
  Ints dims = at.ints(uint32_t(rule.dim));
  f.out[0] = cast(sum(moved, dims.empty() ? Ints() : dims, at.flag(uint32_t(rule.keepdim))),
                  result.dtype());
}

void viewed(const Forward& f) {
  if (!f.moves(0)) return;
  Arguments args(f);
  args.put(0, 0, f.tangents[0]);
  std::vector<aj_value> rets(f.nrets);
  kit::check(kit::env.op->call(f.op, args.all().data(), f.nargs, rets.data(), f.nrets));
  each_result(rets.data(), f.nrets,
              [&](aj_tensor* t, uint32_t n) { f.out[n] = Tensor::borrow(t); });
  for (aj_value& v : rets) kit::drop(v);
}

}  // namespace

const Rule& rule_of(const aj_op* op) {
  return known_of<Rule, [](const aj_op* op, Rule& r) { r = make_rule(op); }>(op);
}

uint32_t count_inputs(const Rule& rule, const aj_value* args, uint32_t nargs) {
  uint32_t n = 0;
  each_input(rule, args, nargs, [&](aj_tensor*, uint32_t, uint32_t, uint32_t) { n++; });
  return n;
}

uint32_t count_results(const aj_value* rets, uint32_t nrets) {
  uint32_t n = 0;
  each_result(rets, nrets, [&](aj_tensor*, uint32_t) { n++; });
  return n;
}

void differentiate(const Rule& rule, const Forward& f) {
  switch (rule.how) {
    case How::zero:
    case How::body:
      return;
    case How::elementwise:
      return elementwise(rule, f);
    case How::each:
      return products(rule, f);
    case How::joint:
      return jointly(rule, f);
    case How::view:
      return viewed(f);
    case How::reduced:
      return reduced(rule, f);
    case How::given:
      return apply_given(rule, f);
    case How::twice:
      return derivative_twice(rule, f);
    case How::written:
      return rule.fn(f);
  }
}

Tensor call_with(const aj_op* op, std::span<const aj_value> args, uint32_t nrets, uint32_t result) {
  std::vector<aj_value> rets(nrets);
  kit::check(kit::env.op->call(op, args.data(), uint32_t(args.size()), rets.data(), nrets));
  Tensor t = kit::take<Tensor>(rets[result]);
  for (aj_value& v : rets) kit::drop(v);
  return t;
}

Tensor pulled(const Forward& f, const aj_value* args, uint32_t input, const Tensor& g) {
  std::vector<aj_tensor*> given(f.out.size()), grads(f.tangents.size());
  std::vector<uint8_t> needs(f.tangents.size());
  given[0] = g.get();
  needs[input] = 1;
  gradient(f, args, given.data(), needs.data(), grads.data());
  return Tensor::steal(grads[input]);
}

Tensor cast(const Tensor& t, DLDataType dtype) { return t.dtype() == dtype ? t : to(t, dtype); }

}  // namespace adjoin::transform::jvp

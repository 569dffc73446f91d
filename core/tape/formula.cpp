// core/tape/formula.cpp: a derivative whose saved values are the arguments and results themselves.
#include "core/tape/formula.hpp"

#include <algorithm>
#include <utility>

#include "core/guest/caught.hpp"
#include "core/guest/object.hpp"
#include "core/op/registry.hpp"
#include "core/op/tables.hpp"
#include "core/tape/builder.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/table.hpp"

namespace adjoin {
namespace {

// f(input or NULL, place of its argument) for each flattened input, until one fails.
template <class F>
aj_status* each_input(const aj_op* op, const aj_value* args, uint32_t nargs, F&& f) {
  for (uint64_t m = op->tensor_params; m; m &= m - 1) {
    const auto i = uint32_t(__builtin_ctzll(m));
    const aj_value v = i < nargs ? args[i] : none();
    if (v.tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < v.aux; j++) AJ_TRY(f(v.v.tensors[j], i));
    } else if (!op->schema.params[i].list) {
      AJ_TRY(f(v.tag == AJ_TENSOR ? v.v.tensor : nullptr, i));
    }
  }
  return nullptr;
}

template <class F>
aj_status* each_result(const aj_value* rets, uint32_t nrets, F&& f) {
  for (uint32_t i = 0; i < nrets; i++) {
    uint32_t n = 1;
    const aj_value* items = rets[i].tag == AJ_LIST_OBJ ? list_get(rets[i].v.object, &n) : &rets[i];
    for (uint32_t j = 0; j < n; j++)
      AJ_TRY(f(items[j].tag == AJ_TENSOR ? items[j].v.tensor : nullptr));
  }
  return nullptr;
}

aj_value shape_of(const aj_value& v) {
  if (v.tag == AJ_TENSOR) return value(shape(v.v.tensor));
  return v.tag == AJ_NONE ? none() : value(std::span<const int64_t>{});
}

class Formula {
 public:
  Formula(const aj_op* op, const Vjp* vjp, const aj_value* args, uint32_t nargs,
          const aj_value* rets, uint32_t nrets)
      : op_(op), vjp_(vjp), args_(args), rets_(rets), nargs_(nargs), nrets_(nrets) {}
  Formula(const Formula&) = delete;
  ~Formula() {
    for (aj_tensor* t : made_) release(t);
  }

  aj_status* run(aj_tensor* const* grad_out, const uint8_t* needs, aj_tensor** grad_in) {
    AJ_TRY(count(needs));
    std::fill_n(grad_in, ninputs_, nullptr);
    const aj_vjp_def& d = vjp_->def;
    if (d.flags & AJ_VJP_NO_GRAD_RESULTS) return nullptr;
    AJ_TRY(take_saved());
    if (d.flags & AJ_VJP_MATERIALIZE) AJ_TRY(materialize(&grad_out));
    aj_grad_call call{};
    call.struct_size = sizeof call;
    call.core = &core_table;
    call.op = &dispatch_table;
    call.autograd = &autograd_table;
    call.saved = saved_.data();
    call.grad_out = grad_out;
    call.grad_in = grad_in;
    call.needs = needs;
    call.nsaved = uint32_t(saved_.size());
    call.ngrad_out = nresults_;
    call.ngrad_in = ninputs_;
    aj_status* s = caught(d.vjp, "derivative", [&] { return d.vjp(d.self, &call); });
    uint32_t at = 0;
    if (!s)
      s = each_input(op_, args_, nargs_, [&](const aj_tensor* t, uint32_t) {
        aj_tensor** g = &grad_in[at++];
        return *g && t ? fit(t, g) : nullptr;
      });
    for (uint32_t i = 0; s && i < ninputs_; i++) release(std::exchange(grad_in[i], nullptr));
    return s;
  }

 private:
  aj_status* count(const uint8_t* needs) {
    AJ_TRY(each_input(op_, args_, nargs_, [&](const aj_tensor*, uint32_t i) -> aj_status* {
      if (needs[ninputs_++]) wanted_ |= 1ull << i;
      return nullptr;
    }));
    return each_result(rets_, nrets_,
                       [&](const aj_tensor*) -> aj_status* { return nresults_++, nullptr; });
  }

  aj_status* take_saved() {
    const aj_vjp_def& d = vjp_->def;
    for (const aj_save& s : vjp_->save) saved_.push_back(kept(s));
    if (!d.save_more) return nullptr;
    aj_call done{};
    done.struct_size = sizeof done;
    done.core = &core_table;
    done.op = op_;
    done.args = args_;
    done.rets = const_cast<aj_value*>(rets_);
    done.nargs = nargs_;
    done.nrets = nrets_;
    AJ_TRY(caught(d.save_more, "save_more", [&] { return d.save_more(d.self, &done, &more_); }));
    saved_.insert(saved_.end(), more_.values.begin(), more_.values.end());
    return nullptr;
  }

  aj_value kept(const aj_save& s) const {
    const bool of_result = s.what == AJ_SAVE_RESULT || s.what == AJ_SAVE_RESULT_SHAPE;
    const auto i = uint32_t(s.index);
    const aj_value v = i < (of_result ? nrets_ : nargs_) ? (of_result ? rets_ : args_)[i] : none();
    switch (s.what) {
      case AJ_SAVE_SHAPE:
      case AJ_SAVE_RESULT_SHAPE:
        return shape_of(v);
      case AJ_SAVE_DTYPE:
        return v.tag == AJ_TENSOR ? value(dt(priv(v.v.tensor).dtype)) : none();
      default:
        return !s.only_for || (s.only_for & wanted_) ? v : none();
    }
  }

  aj_status* materialize(aj_tensor* const** io) {
    all_.assign(*io, *io + nresults_);
    *io = all_.data();
    uint32_t at = 0;
    return each_result(rets_, nrets_, [&](const aj_tensor* t) -> aj_status* {
      aj_tensor*& g = all_[at++];
      if (g || !t) return nullptr;
      AJ_TRY(tape::filled(device(t), priv(t).dtype, shape(t), 0, &g));
      made_.push_back(g);
      return nullptr;
    });
  }

  // As fit_gradient does it for a recorded input.
  aj_status* fit(const aj_tensor* input, aj_tensor** io) const {
    if (!std::ranges::equal(shape(*io), shape(input))) {
      if (!tape::expands_to(shape(input), shape(*io)))
        return fail(AJ_INVALID_ARGUMENT, op_->schema.name,
                    ": its derivative returned a gradient of shape ", shape(*io),
                    " for an input of shape ", shape(input),
                    of_plugin(reinterpret_cast<const void*>(vjp_->def.vjp)));
      aj_tensor* summed;
      AJ_TRY(tape::sum_to(*io, shape(input), &summed));
      release(std::exchange(*io, summed));
    }
    const int want = priv(input).dtype;
    if (dt(priv(*io).dtype).cls == AJ_CLASS_COMPLEX && dt(want).cls != AJ_CLASS_COMPLEX) {
      aj_tensor* real;
      AJ_TRY(tape::real(*io, &real));
      release(std::exchange(*io, real));
    }
    if (priv(*io).dtype == want) return nullptr;
    aj_tensor* cast;
    AJ_TRY(tape::cast(*io, want, &cast));
    release(std::exchange(*io, cast));
    return nullptr;
  }

  const aj_op* op_;
  const Vjp* vjp_;
  const aj_value *args_, *rets_;
  uint32_t nargs_, nrets_, ninputs_ = 0, nresults_ = 0;
  uint64_t wanted_ = 0;  // bit i: a gradient of argument i is needed
  std::vector<aj_value> saved_;
  aj_saver more_;
  std::vector<aj_tensor*> all_, made_;
};

}  // namespace

aj_status* apply_vjp(const aj_op* op, const aj_value* args, uint32_t nargs, const aj_value* rets,
                     uint32_t nrets, aj_tensor* const* grad_out, const uint8_t* needs,
                     aj_tensor** grad_in) {
  const Vjp* vjp = vjp_for(op, args, nargs);
  if (!vjp || (!vjp->def.vjp && !(vjp->def.flags & AJ_VJP_NO_GRAD_RESULTS)))
    return fail(AJ_NOT_FOUND, op->schema.name, " has no derivative of its own");
  return Formula(op, vjp, args, nargs, rets, nrets).run(grad_out, needs, grad_in);
}

}  // namespace adjoin

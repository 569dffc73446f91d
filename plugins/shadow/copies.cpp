// plugins/shadow/copies.cpp: a call's arguments on another device.
#include "copies.hpp"

#include <adjoin/kit/call.hpp>

namespace adjoin::shadow {

using namespace kit;

std::string describe(const Tensor& t) {
  return text(t.dtype(), " ", Shape{t.shape().data(), t.ndim()});
}

Tensor copied_to(const Tensor& t, DLDevice device, DLDataType dtype) {
  Unrecorded off;
  DLTensor like = t.get()->dl;
  like.device = device;
  like.dtype = dtype;
  like.strides = nullptr;
  aj_tensor* made = nullptr;
  check(core().tensor_empty(&like, 0, &made));
  Tensor out = Tensor::steal(made);
  static const aj_op* copy = dispatch().find_op(AJ_STR_LIT("copy_"));
  aj_value args[2] = {value(out), value(t)}, ret = {AJ_NONE, 0, {0}};
  check(dispatch().call(copy, args, 2, &ret, 1));
  core().release(ret.v.tensor);
  return out;
}

Tensor packed(const Tensor& t) {
  if (t.get()->obj.flags & AJ_TENSOR_DENSE) return t;
  return copied_to(t, t.device(), t.dtype());
}

aj_tensor* Copies::moved(aj_tensor* t, DLDevice to) {
  Tensor from = Tensor::borrow(t);
  held_.push_back(copied_to(from, to, from.dtype()));
  description_ += (description_.empty() ? "" : ", ") + shadow::describe(from);
  return held_.back().get();
}

Copies::Copies(const aj_call* call, DLDevice to) {
  for (uint32_t i = 0; i < call->nargs; ++i) {
    aj_value v = call->args[i];
    if (v.tag == AJ_TENSOR) v.v.tensor = moved(v.v.tensor, to);
    if (v.tag == AJ_TENSORS) {
      auto& list = lists_.emplace_back();
      for (uint32_t j = 0; j < v.aux; ++j) {
        aj_tensor* t = v.v.tensors[j];
        list.push_back(t ? moved(t, to) : nullptr);
      }
      v.v.tensors = list.data();
    }
    aj_param p = {};
    p.struct_size = sizeof p;
    check(dispatch().op_param(call->op, i, &p));
    if (p.base == AJ_PARAM_DEVICE) {
      v = {AJ_DEVICE, 0, {0}};
      v.v.device = to;
    }
    args_.push_back(v);
  }
}

Dice::State Dice::state_of(aj_object* generator) const {
  State s = {generator, 0, 0};
  check(core().generator_get(generator, &s.seed, &s.offset));
  return s;
}

// Default generators live as long as the process, those of arguments as long as the call.
Dice::Dice(const aj_call* call, DLDevice ours, DLDevice theirs) {
  aj_object* own = nullptr;
  check(core().generator_default(ours, &own));
  before_.push_back(state_of(own));
  core().release(own);
  check(core().generator_default(theirs, &theirs_));
  core().release(theirs_);
  theirs_before_ = state_of(theirs_);
  for (uint32_t i = 0; i < call->nargs; ++i)
    if (call->args[i].tag == AJ_GENERATOR) before_.push_back(state_of(call->args[i].v.object));
}

void Dice::play_again() {
  for (const State& s : before_) {
    after_.push_back(state_of(s.generator));
    check(core().generator_set(s.generator, s.seed, s.offset));
  }
  check(core().generator_set(theirs_, before_[0].seed, before_[0].offset));
}

void Dice::put_back() {
  for (const State& s : after_)
    core().status_free(core().generator_set(s.generator, s.seed, s.offset));
  after_.clear();
  core().status_free(core().generator_set(theirs_, theirs_before_.seed, theirs_before_.offset));
}

}  // namespace adjoin::shadow

// extensions/transform/custom_parts.cpp: forward, vjp and jvp of a custom function, and the same
// over samples.
#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "custom.hpp"

namespace adjoin::transform {
namespace {

bool same_shape(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.shape(), b.shape());
}

// As the core fits the gradient of an op to its input.
Tensor fitted(Tensor g, const Tensor& input) {
  if (!same_shape(g, input)) g = sum_to_size(g, input.shape());
  if (g.is_complex() && !input.is_complex()) g = real(g);
  return g.dtype() == input.dtype() ? g : to(g, input.dtype());
}

class Given final : public Function {
 public:
  using Function::Function;
  bool maps() const override { return false; }

  std::vector<Tensor> forward(std::span<const aj_value> args, uint32_t nrets) const override {
    NoGradGuard unrecorded;
    std::vector<aj_value> rets(nrets);
    aj_call c{};
    c.struct_size = sizeof c;
    c.core = &core();
    c.args = args.data();
    c.rets = rets.data();
    c.nargs = uint32_t(args.size());
    c.nrets = nrets;
    aj_status* failed = def().forward(def().self, &c);
    std::vector<Tensor> made(nrets);
    std::string wrong;
    for (uint32_t i = 0; i < nrets; i++) {
      if (rets[i].tag == AJ_TENSOR)
        made[i] = take<Tensor>(rets[i]);
      else if (!failed)
        wrong = text("result ", i, " of its forward is no tensor");
      drop(rets[i]);
    }
    check(failed);
    if (!wrong.empty()) raise(AJ_INTERNAL, wrong);
    return made;
  }

  std::vector<Tensor> gradient(const Applied& call, std::span<aj_tensor* const> grad_out,
                               const uint8_t* needs) const override {
    const aj_vjp_def& d = *def().vjp;
    std::vector<Tensor> grads(call.args.size()), zeros;
    std::vector<aj_tensor*> given(grad_out.begin(), grad_out.end()), made(call.args.size());
    for (size_t i = 0; (d.flags & AJ_VJP_MATERIALIZE) && i < given.size(); i++)
      if (!given[i])
        given[i] = zeros.emplace_back(zeros_like(Tensor::view(call.rets[i].v.tensor))).get();
    std::vector<aj_value> saved;
    for (uint32_t i = 0; i < d.nsave; i++) saved.push_back(kept(d.save[i], call, needs));
    aj_grad_call g{};
    g.struct_size = sizeof g;
    g.core = &core();
    g.op = &dispatch();
    g.autograd = &autograd();
    g.saved = saved.data();
    g.grad_out = given.data();
    g.grad_in = made.data();
    g.needs = needs;
    g.nsaved = uint32_t(saved.size());
    g.ngrad_out = uint32_t(given.size());
    g.ngrad_in = uint32_t(made.size());
    aj_status* failed = d.vjp(d.self, &g);
    for (size_t i = 0; i < made.size(); i++) grads[i] = Tensor::steal(made[i]);
    check(failed);
    for (size_t i = 0; i < made.size(); i++) {
      if (!grads[i].defined()) continue;
      aj_tensor* input = call.input(i);
      if (!input)
        raise(AJ_INTERNAL, "its vjp gave a gradient of argument ", uint64_t(i),
              ", which is no tensor");
      grads[i] = fitted(grads[i], Tensor::view(input));
    }
    return grads;
  }

  std::vector<Tensor> push(const Applied& call, std::span<const Tensor> tangents) const override {
    const aj_jvp_def& d = *def().jvp;
    std::vector<aj_tensor*> given, made(call.rets.size());
    for (const Tensor& t : tangents) given.push_back(t.get());
    aj_jvp_call c{};
    c.struct_size = sizeof c;
    c.core = &core();
    c.op = &dispatch();
    c.autograd = &autograd();
    c.args = call.args.data();
    c.rets = call.rets.data();
    c.tangents = given.data();
    c.out = made.data();
    c.nargs = c.ntangents = uint32_t(call.args.size());
    c.nrets = c.nout = uint32_t(call.rets.size());
    aj_status* failed = d.jvp(d.self, &c);
    std::vector<Tensor> moved;
    for (aj_tensor* t : made) moved.push_back(Tensor::steal(t));
    check(failed);
    for (size_t i = 0; i < moved.size(); i++) {
      const Tensor& result = Tensor::view(call.rets[i].v.tensor);
      if (moved[i].defined() &&
          (!same_shape(moved[i], result) || !(moved[i].dtype() == result.dtype())))
        raise(AJ_INTERNAL, "its jvp gave result ", uint64_t(i), " a tangent ", moved[i].dtype(),
              " of shape ", Shape{moved[i].dl().shape, moved[i].ndim()}, ", the result is ",
              result.dtype(), " of shape ", Shape{result.dl().shape, result.ndim()});
    }
    return moved;
  }

 private:
  static aj_value kept(const aj_save& s, const Applied& call, const uint8_t* needs) {
    const bool of_result = s.what == AJ_SAVE_RESULT || s.what == AJ_SAVE_RESULT_SHAPE;
    const auto& values = of_result ? call.rets : call.args;
    const auto i = size_t(s.index);
    const aj_value v = i < values.size() ? values[i] : aj_value{};
    const bool tensor = v.tag == AJ_TENSOR;
    if (s.what == AJ_SAVE_SHAPE || s.what == AJ_SAVE_RESULT_SHAPE)
      return tensor ? value(Ints(Tensor::view(v.v.tensor).shape())) : aj_value{};
    if (s.what == AJ_SAVE_DTYPE) return tensor ? value(v.v.tensor->dl.dtype) : aj_value{};
    bool wanted = !s.only_for;
    for (size_t n = 0; n < call.args.size() && n < 64; n++)
      wanted |= (s.only_for >> n & 1) && needs[n];
    return wanted ? v : aj_value{};
  }
};

class Mapped final : public Function {
 public:
  Mapped(SharedFunction f, std::vector<int32_t> dims, const Level& l)
      : Function(f->def()),
        of_(std::move(f)),
        dims_(std::move(dims)),
        size_(l.size),
        stride_(l.stride),
        randomness_(l.randomness) {}
  bool maps() const override { return true; }

  std::vector<Tensor> forward(std::span<const aj_value> args, uint32_t nrets) const override {
    Inside in(*this);
    return in.all_outside(of_->forward(in.args(args), nrets));
  }

  std::vector<Tensor> gradient(const Applied& call, std::span<aj_tensor* const> grad_out,
                               const uint8_t* needs) const override {
    Inside in(*this);
    std::vector<aj_tensor*> given;
    for (aj_tensor* g : grad_out) given.push_back(g ? in.batched(g) : nullptr);
    const Applied inner{in.args(call.args), in.results(call.rets)};
    std::vector<Tensor> grads = of_->gradient(inner, given, needs);
    for (size_t i = 0; i < grads.size(); i++) {
      if (!grads[i].defined()) continue;
      grads[i] = in.outside(grads[i]);
      if (dims_[i] < 0) grads[i] = sum(grads[i], 0);
    }
    return grads;
  }

  std::vector<Tensor> push(const Applied& call, std::span<const Tensor> tangents) const override {
    Inside in(*this);
    const Applied inner{in.args(call.args), in.results(call.rets)};
    std::vector<Tensor> given(tangents.size());
    for (size_t i = 0; i < tangents.size(); i++)
      if (tangents[i].defined()) given[i] = in.input(tangents[i].get(), dims_[i]);
    return in.all_outside(of_->push(inner, given));
  }

 private:
  // The level of the samples, open; what is made in it lives as long as it does.
  class Inside {
   public:
    explicit Inside(const Mapped& f) : f_(f) {
      check(enter(AJ_LEVEL_BATCH, f.size_, f.randomness_, &id_));
      level_ = innermost();
      level_->stride = f.stride_;
    }
    Inside(const Inside&) = delete;
    ~Inside() {
      if (aj_status* s = leave(id_)) core().status_free(s);
    }
    const Tensor& input(aj_tensor* t, int32_t dim) {
      return *kept_.insert(kept_.end(), make_wrapper(*level_, Tensor::view(t), {}, dim == 0));
    }
    aj_tensor* batched(aj_tensor* t) { return input(t, 0).get(); }
    std::span<const aj_value> args(std::span<const aj_value> outer) {
      auto& made = values_.emplace_back(outer.begin(), outer.end());
      for (size_t i = 0; i < made.size(); i++)
        if (made[i].tag == AJ_TENSOR) made[i].v.tensor = input(made[i].v.tensor, f_.dims_[i]).get();
      return made;
    }
    std::span<const aj_value> results(std::span<const aj_value> outer) {
      auto& made = values_.emplace_back(outer.begin(), outer.end());
      for (aj_value& v : made) v.v.tensor = batched(v.v.tensor);
      return made;
    }
    Tensor outside(const Tensor& t) const {
      aj_tensor* out = nullptr;
      check(unbatched(t.get(), 0, id_, &out));
      return Tensor::steal(out);
    }
    std::vector<Tensor> all_outside(std::vector<Tensor> made) const {
      for (Tensor& t : made)
        if (t.defined()) t = outside(t);
      return made;
    }

   private:
    const Mapped& f_;
    int32_t id_ = 0;
    Level* level_;
    std::deque<Tensor> kept_;
    std::deque<std::vector<aj_value>> values_;
  };

  SharedFunction of_;
  std::vector<int32_t> dims_;
  int64_t size_, stride_;
  int32_t randomness_;
};

}  // namespace

SharedFunction given_function(const aj_custom_def& d) { return std::make_shared<Given>(d); }

SharedFunction mapped_function(SharedFunction f, std::vector<int32_t> dims, const Level& l) {
  return std::make_shared<Mapped>(std::move(f), std::move(dims), l);
}

}  // namespace adjoin::transform

// adjoin/optim.hpp: SGD, Adam and AdamW, each one fused pass over all parameters, and schedules of
// the learning rate.
//
//   optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
//   optim::Schedule schedule(optimizer, optim::cosine(1000));
#ifndef ADJOIN_OPTIM_HPP
#define ADJOIN_OPTIM_HPP
#include <adjoin/joined.hpp>
#include <adjoin/optim/optimizer.hpp>
#include <cmath>
#include <functional>
#include <numbers>

namespace AJ_HIDDEN adjoin {
namespace optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
struct SGDState {
  Tensor momentum_buffer;
  bool is_new() const { return !momentum_buffer.defined(); }
  StateTensors tensors() { return {{"momentum_buffer", &momentum_buffer}}; }
};

// p -= lr v with v = momentum v + (1 - dampening) (grad + weight_decay p); the first step is not
// dampened.
class SGD : public Optimizer<SGD, SGDOptions, SGDState> {
 public:
  explicit SGD(std::vector<Tensor> params, SGDOptions o = {}) { add_group(std::move(params), o); }

 private:
  friend class Optimizer<SGD, SGDOptions, SGDState>;
  void update(Items& items, const SGDOptions& o) {
    bool first = items[0].state->is_new();
    std::vector<Tensor> buffers;
    for (Item& i : items) {
      if (o.momentum == 0) break;
      if (first) i.state->momentum_buffer = zeros_like(i.param);
      buffers.push_back(i.state->momentum_buffer);
    }
    fused_sgd_(params_of(items), grads_of(items), buffers, o.lr, o.momentum, o.dampening,
               o.weight_decay, o.nesterov, o.maximize, first);
  }
};

template <bool Decoupled>
struct AdamOptionsOf {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = Decoupled ? 0.01 : 0;
  bool amsgrad = false, maximize = false;
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;
struct AdamState {
  Tensor step, exp_avg, exp_avg_sq, max_exp_avg_sq;
  bool is_new() const { return !step.defined(); }
  StateTensors tensors() {
    return {{"step", &step},
            {"exp_avg", &exp_avg},
            {"exp_avg_sq", &exp_avg_sq},
            {"max_exp_avg_sq", &max_exp_avg_sq}};
  }
};

// p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) (Kingma and Ba, 2014; amsgrad: Reddi et
// al., 2018).
template <bool Decoupled>
class AdamOf : public Optimizer<AdamOf<Decoupled>, AdamOptionsOf<Decoupled>, AdamState> {
  using Options = AdamOptionsOf<Decoupled>;
  using Base = Optimizer<AdamOf, Options, AdamState>;

 public:
  explicit AdamOf(std::vector<Tensor> params, Options o = {}) {
    this->add_group(std::move(params), o);
  }

 private:
  friend Base;
  void update(typename Base::Items& items, const Options& o) {
    using Item = typename Base::Item;
    for (Item& i : items) {
      if (i.state->is_new()) {
        i.state->step = zeros(Ints({}), float32);
        i.state->exp_avg = zeros_like(i.param), i.state->exp_avg_sq = zeros_like(i.param);
      }
      if (o.amsgrad && !i.state->max_exp_avg_sq.defined())
        i.state->max_exp_avg_sq = zeros_like(i.param);
    }
    std::vector<Tensor> largest;
    if (o.amsgrad)
      largest = Base::list_of(items, [](const Item& i) { return i.state->max_exp_avg_sq; });
    fused_adam_(Base::params_of(items), Base::grads_of(items),
                Base::list_of(items, [](const Item& i) { return i.state->exp_avg; }),
                Base::list_of(items, [](const Item& i) { return i.state->exp_avg_sq; }), largest,
                Base::list_of(items, [](const Item& i) { return i.state->step; }), o.lr, o.beta1,
                o.beta2, o.eps, o.weight_decay, Decoupled, o.maximize);
  }
};
using Adam = AdamOf<false>;
using AdamW =
    AdamOf<true>;  // decoupled decay: p *= 1 - lr weight_decay (Loshchilov and Hutter, 2017)

// The rate at a step, from the one the optimizer began with.
using Rate = std::function<double(double base, int64_t step)>;

inline Rate every(int64_t steps, double factor) {
  return [=](double base, int64_t step) { return base * std::pow(factor, double(step / steps)); };
}
inline Rate exponential(double factor) {
  return [=](double base, int64_t step) { return base * std::pow(factor, double(step)); };
}
inline Rate cosine(int64_t total, double least = 0) {
  return [=](double base, int64_t step) {
    return least +
           (base - least) *
               ((1 + std::cos(std::numbers::pi * double(std::min(step, total)) / double(total))) /
                2);
  };
}
// A linear rise over so many steps, then `after`, counted from its end.
inline Rate warmup(int64_t rise, Rate after) {
  return [=](double base, int64_t step) {
    return step < rise ? base * (double(step + 1) / double(rise + 1)) : after(base, step - rise);
  };
}

// Sets the rates of all groups: before the first step, and whenever step() is called.
template <class O>
class Schedule {
 public:
  Schedule(O& optimizer, Rate rate) : optimizer_(&optimizer), rate_(std::move(rate)) {
    for (auto& group : optimizer.groups) bases_.push_back(group.options.lr);
    set();
  }
  void step() {
    ++step_;
    set();
  }
  int64_t steps() const { return step_; }
  void set_steps(int64_t n) {
    step_ = n;
    set();
  }

 private:
  void set() {
    for (size_t i = 0; i < bases_.size(); ++i)
      optimizer_->groups[i].options.lr = rate_(bases_[i], step_);
  }
  O* optimizer_;
  Rate rate_;
  std::vector<double> bases_;
  int64_t step_ = 0;
};

}  // namespace optim
}  // namespace adjoin
#endif

// adjoin/optim/optimizer.hpp: what optimizers share: groups of parameters with their settings, a
// state per parameter, saving and loading, clipping.
#ifndef ADJOIN_OPTIM_OPTIMIZER_HPP
#define ADJOIN_OPTIM_OPTIMIZER_HPP
#include <adjoin/nn/module.hpp>
#include <unordered_map>

namespace AJ_HIDDEN adjoin {
namespace optim {

// Self says what it keeps per parameter (State: a struct with tensors()), and steps parameters that
// are alike at once (update). Options has at least `lr`.
template <class Self, class Options, class State>
class Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    Options options;
  };
  std::vector<Group> groups;

  void add_group(std::vector<Tensor> params, const Options& options) {
    if (params.empty()) kit::raise(AJ_INVALID_ARGUMENT, "optimizer: a group without parameters");
    for (const Tensor& p : params) {
      if (!p.is_leaf())
        kit::raise(AJ_INVALID_ARGUMENT, "optimizer: a parameter is no leaf: an op made it");
      if (!state_.try_emplace(p.get()).second)
        kit::raise(AJ_INVALID_ARGUMENT, "optimizer: a parameter is given twice, its shape is ",
                   kit::Shape{p.shape().data(), p.ndim()});
    }
    groups.push_back({std::move(params), options});
  }

  void zero_grad() {
    for (Group& group : groups)
      for (const Tensor& p : group.params) p.set_grad({});
  }

  // Updates every parameter that has a gradient.
  void step() {
    NoGradGuard off;
    for (Group& group : groups)
      for (auto& [kind, alike] : sorted(group.params))
        static_cast<Self*>(this)->update(alike, group.options);
  }

  // The first group's rate; setting it sets all.
  double lr() const { return groups.at(0).options.lr; }
  void set_lr(double rate) {
    for (Group& group : groups) group.options.lr = rate;
  }

  // The tensors of the state as "3.exp_avg": parameters are counted over all groups.
  TensorMap state_dict() {
    TensorMap all;
    each_state([&](const std::string& name, Tensor& t) {
      if (t.defined()) all[name] = t;
    });
    return all;
  }
  // The same parameters in the same order.
  void load_state_dict(const TensorMap& saved) {
    size_t used = 0;
    each_state([&](const std::string& name, Tensor& t) {
      auto it = saved.find(name);
      t = it == saved.end() ? Tensor() : adjoin::clone(it->second.detach());
      used += it != saved.end();
    });
    if (used != saved.size())
      kit::raise(AJ_INVALID_ARGUMENT, "optimizer: ", uint64_t(saved.size() - used), " of ",
                 uint64_t(saved.size()), " saved tensors belong to no parameter here");
  }

 protected:
  struct Item {
    Tensor param, grad;
    State* state;
  };
  using Items = std::vector<Item>;

  template <class F>
  static std::vector<Tensor> list_of(const Items& items, F f) {
    std::vector<Tensor> list;
    for (const Item& i : items) list.push_back(f(i));
    return list;
  }
  static std::vector<Tensor> params_of(const Items& items) {
    return list_of(items, [](const Item& i) { return i.param; });
  }
  static std::vector<Tensor> grads_of(const Items& items) {
    return list_of(items, [](const Item& i) { return i.grad; });
  }

 private:
  // One call takes parameters of one dtype, on one device, all new or all known.
  using Kind = std::tuple<int, int, int, int, bool>;
  std::map<Kind, Items> sorted(const std::vector<Tensor>& params) {
    std::map<Kind, Items> kinds;
    for (const Tensor& p : params) {
      Tensor grad = p.grad();
      if (!grad.defined()) continue;
      DLDataType d = p.dtype();
      DLDevice at = p.device();
      State& state = state_[p.get()];
      Kind kind(d.code, d.bits, at.device_type, at.device_id, state.is_new());
      kinds[kind].push_back({p, std::move(grad), &state});
    }
    return kinds;
  }
  template <class F>
  void each_state(F f) {
    size_t number = 0;
    for (Group& group : groups)
      for (const Tensor& p : group.params) {
        for (auto [name, tensor] : state_[p.get()].tensors())
          f(std::to_string(number) + "." + name, *tensor);
        ++number;
      }
  }
  std::unordered_map<aj_tensor*, State> state_;  // the groups keep the keys alive
};

using StateTensors = std::vector<std::pair<const char*, Tensor*>>;

// Scales all gradients, in place, so that their norm together (order 1, 2 or infinity) is at most
// `most`; returns the norm before, 0-dim.
inline Tensor clip_grad_norm(const std::vector<Tensor>& params, double most, double order = 2) {
  NoGradGuard off;
  std::vector<Tensor> grads;
  for (const Tensor& p : params)
    if (Tensor g = p.grad(); g.defined()) grads.push_back(g);
  if (grads.empty()) return zeros(Ints({}));
  bool alike = std::ranges::all_of(grads, [&](const Tensor& g) {
    return g.dtype() == grads[0].dtype() && g.device() == grads[0].device();
  });
  if (alike) {
    Tensor total = total_norm(grads, order);
    fused_scale_(grads, clamp(most / (total + 1e-6), {}, 1.0));
    return total;
  }
  std::vector<Tensor> norms;
  for (const Tensor& g : grads)
    norms.push_back(to(vector_norm(g, order), float32, grads[0].device()));
  Tensor total = vector_norm(stack(norms), order);
  Tensor scale = clamp(most / (total + 1e-6), {}, 1.0);
  for (const Tensor& g : grads) mul_(g, to(scale, std::nullopt, g.device()));
  return total;
}

// Clamps every element of every gradient to [-most, most].
inline void clip_grad_value(const std::vector<Tensor>& params, double most) {
  NoGradGuard off;
  for (const Tensor& p : params)
    if (Tensor g = p.grad(); g.defined()) clamp_(g, -most, most);
}

}  // namespace optim
}  // namespace adjoin
#endif

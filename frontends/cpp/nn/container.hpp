// adjoin/nn/container.hpp: modules one after the other, of any types.
#ifndef ADJOIN_NN_CONTAINER_HPP
#define ADJOIN_NN_CONTAINER_HPP
#include <adjoin/nn/module.hpp>
#include <memory>

namespace AJ_HIDDEN adjoin {
namespace nn {

// Any module, or function, that makes one tensor of one tensor. A copy is the same module.
class AnyModule final : public Module<AnyModule> {
 public:
  template <class M>
  requires(!std::same_as<std::remove_cvref_t<M>, AnyModule> &&
           std::invocable<std::decay_t<M>&, const Tensor&>) AnyModule(M&& module)
      : held_(std::make_shared<Holder<std::decay_t<M>>>(std::forward<M>(module))) {}

  Tensor operator()(const Tensor& x, Here here = Here::current()) { return held_->run(x, here); }
  void collect(const std::string& prefix, Parts& found) { held_->collect(prefix, found); }

  // The module as what it is; NULL if it is another.
  template <class M>
  M* as() {
    auto* holder = dynamic_cast<Holder<M>*>(held_.get());
    return holder ? &holder->module : nullptr;
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual Tensor run(const Tensor& x, Here here) = 0;
    virtual void collect(const std::string& prefix, Parts& found) = 0;
  };
  template <class M>
  struct Holder : Held {
    explicit Holder(M m) : module(std::move(m)) {}
    Tensor run(const Tensor& x, Here here) override {
      if constexpr (std::invocable<M&, const Tensor&, Here>)
        return module(x, here);
      else
        return module(x);
    }
    void collect(const std::string& prefix, Parts& found) override {
      if constexpr (IsModule<M>)
        detail::collect(module, prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1),
                        found);
    }
    M module;
  };
  std::shared_ptr<Held> held_;
};

// nn::Sequential net{nn::Linear(64, 32), nn::ReLU(), nn::Linear(32, 10)}; members are named "0",
// "1", ... Braces make them in that order, so that a seed always gives the same values.
class Sequential final : public Module<Sequential> {
 public:
  Sequential() = default;
  template <class... M>
  requires(sizeof...(M) > 1 || (!std::same_as<std::remove_cvref_t<M>, Sequential> &&
                                ...)) explicit Sequential(M&&... module) {
    (push_back(std::forward<M>(module)), ...);
  }

  void push_back(AnyModule module) { list_.push_back(std::move(module)); }
  size_t size() const { return list_.size(); }
  AnyModule& operator[](size_t i) { return list_.at(i); }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }

  Tensor operator()(Tensor x, Here here = Here::current()) {
    for (AnyModule& module : list_) x = module(x, here);
    return x;
  }
  void collect(const std::string& prefix, Parts& found) {
    size_t i = 0;
    for (AnyModule& module : list_) module.collect(prefix + std::to_string(i++) + ".", found);
  }

 private:
  std::vector<AnyModule> list_;
};

}  // namespace nn
}  // namespace adjoin
#endif

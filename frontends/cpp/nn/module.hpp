// adjoin/nn/module.hpp: what makes a struct a module: its parameters and buffers by name, modes,
// moving, state.
//
//   struct Net : nn::Module<Net> {
//     nn::Linear hidden{64, 32}, out{32, 10};
//     Tensor operator()(const Tensor& x) { return out(relu(hidden(x))); }
//   };
//
// Nothing is registered: members are found (nn/fields.hpp), through modules and through vectors,
// arrays, maps, optionals and pointers of modules, under the names that the same network has in
// Python. A copy of a module shares its tensors, as a copy of a Tensor does; clone() does not.
#ifndef ADJOIN_NN_MODULE_HPP
#define ADJOIN_NN_MODULE_HPP
#include <adjoin/joined.hpp>
#include <adjoin/kit/ops.hpp>
#include <adjoin/nn/fields.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace AJ_HIDDEN adjoin {

using kit::Here;
using TensorMap = std::map<std::string, Tensor>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

namespace nn {

// A tensor that is trained. An undefined one is absent (a layer without bias).
struct Parameter : Tensor {
  Parameter() = default;
  Parameter(const Tensor& t, bool trained = true) : Tensor(t.detach()) { requires_grad_(trained); }
};

// A tensor that belongs to the state, and is not trained.
struct Buffer : Tensor {
  Buffer() = default;
  Buffer(Tensor t) : Tensor(std::move(t)) {}
};

// All that a walk over a module finds, flat: what is done with it needs no templates.
struct Part {
  std::string name;
  Tensor* tensor;
  bool trained;
};
struct Parts {
  std::vector<Part> tensors;  // own parameters, own buffers, then the members', as in Python
  std::vector<bool*> modes;   // every `training`
};

template <class T>
concept IsModule = requires {
  typename T::module_type;
};

namespace detail {

template <class T>
concept Pointer = requires(T& p) {
  p.get();
  *p;
};
template <class T>
concept Dictionary = requires(T& m) {
  typename T::mapped_type;
  m.begin();
};
template <class T>
concept Sequence = requires(T& s) {
  typename T::value_type;
  s.begin();
  s.size();
};

template <class T>
void collect(T& x, const std::string& name, Parts& found);

template <class T>
void collect_members(T& module, const std::string& prefix, Parts& found) {
  each_field(module, [&](std::string_view name, auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::same_as<M, Parameter>)
      if (member.defined()) found.tensors.push_back({prefix + std::string(name), &member, true});
  });
  each_field(module, [&](std::string_view name, auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::same_as<M, Buffer>)
      if (member.defined()) found.tensors.push_back({prefix + std::string(name), &member, false});
  });
  each_field(module, [&](std::string_view name, auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (!std::same_as<M, Parameter> && !std::same_as<M, Buffer>)
      collect(member, prefix + std::string(name), found);
  });
}

template <class T>
void collect(T& x, const std::string& name, Parts& found) {
  std::string prefix = name.empty() ? name : name + ".";
  if constexpr (std::same_as<T, Parameter> || std::same_as<T, Buffer>) {
    if (x.defined()) found.tensors.push_back({name, &x, std::same_as<T, Parameter>});
  } else if constexpr (requires { x.collect(prefix, found); }) {
    x.collect(prefix, found);
  } else if constexpr (IsModule<T>) {
    static_assert(std::same_as<typename T::module_type, T>,
                  "a struct derived from another module would lose its own members: "
                  "make the other a member (struct Net : nn::Module<Net> { Other other; };)");
    if constexpr (requires {
                    { x.training } -> std::same_as<bool&>;
                  })
      found.modes.push_back(&x.training);
    collect_members(x, prefix, found);
  } else if constexpr (detail::is_optional<T> || Pointer<T>) {
    if (x) collect(*x, name, found);
  } else if constexpr (Dictionary<T>) {
    if constexpr (std::convertible_to<typename T::key_type, std::string>)
      for (auto& [key, value] : x) collect(value, prefix + std::string(key), found);
  } else if constexpr (Sequence<T>) {
    if constexpr (std::is_class_v<typename T::value_type>) {
      size_t i = 0;
      for (auto& value : x) collect(value, prefix + std::to_string(i++), found);
    }
  }
}

inline void load_part(const Part& part, const TensorMap& state, std::string& wrong) {
  auto it = state.find(part.name);
  if (it == state.end()) {
    wrong += kit::text("; '", part.name, "' is missing");
  } else if (!std::ranges::equal(it->second.shape(), part.tensor->shape())) {
    kit::Shape given{it->second.shape().data(), it->second.ndim()},
        own{part.tensor->shape().data(), part.tensor->ndim()};
    wrong += kit::text("; '", part.name, "' is ", own, " here and ", given, " there");
  } else {
    copy_(*part.tensor, it->second);
  }
}

// A tensor elsewhere or of another dtype. A parameter stays the same tensor, so that whoever holds
// it (an optimizer) still does.
inline void move_part(const Part& part, std::optional<DLDataType> dtype,
                      std::optional<DLDevice> device) {
  Tensor& t = *part.tensor;
  std::optional<DLDataType> cast = t.is_floating_point() || t.is_complex() ? dtype : std::nullopt;
  Tensor moved = adjoin::to(t.detach(), cast, device);
  if (!part.trained) {
    t = moved;
    return;
  }
  Tensor grad = t.grad();
  if (grad.defined()) t.set_grad({});
  kit::check(kit::env.autograd->set_data(t.get(), moved.get()));
  if (grad.defined()) t.set_grad(adjoin::to(grad, cast, device));
}

inline NamedTensors named(const Parts& parts, bool trained) {
  NamedTensors list;
  for (const Part& p : parts.tensors) {
    auto same = [&](const auto& other) { return other.second.get() == p.tensor->get(); };
    if (p.trained == trained && std::ranges::none_of(list, same))
      list.emplace_back(p.name, *p.tensor);
  }
  return list;
}

}  // namespace detail

// The base of every module: struct Net : nn::Module<Net> { ... }.
template <class Self>
struct Module {
  using module_type = Self;

  NamedTensors named_parameters() const { return detail::named(parts(), true); }
  NamedTensors named_buffers() const { return detail::named(parts(), false); }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> list;
    for (auto& [name, tensor] : named_parameters()) list.push_back(std::move(tensor));
    return list;
  }

  // Everything by name; the tensors are the module's own, without history.
  TensorMap state_dict() const {
    TensorMap state;
    for (const Part& p : parts().tensors) state[p.name] = p.tensor->detach();
    return state;
  }
  // Copies values in. strict: names on both sides must be the same.
  void load_state_dict(const TensorMap& state, bool strict = true) {
    NoGradGuard off;
    std::string wrong;
    Parts own = parts();
    for (const Part& p : own.tensors)
      if (strict || state.count(p.name)) detail::load_part(p, state, wrong);
    for (const auto& [name, tensor] : state) {
      auto known = [&name = name](const Part& p) { return p.name == name; };
      if (strict && std::ranges::none_of(own.tensors, known))
        wrong += kit::text("; '", name, "' is not expected");
    }
    if (!wrong.empty())
      kit::raise_as("KeyError", AJ_NOT_FOUND, "load_state_dict: ", wrong.substr(2));
  }

  Self& train(bool on = true) {
    for (bool* mode : parts().modes) *mode = on;
    return self();
  }
  Self& eval() { return train(false); }

  Self& to(std::optional<DLDataType> dtype, std::optional<DLDevice> device = std::nullopt) {
    for (const Part& p : parts().tensors) detail::move_part(p, dtype, device);
    return self();
  }
  Self& to(DLDevice device) { return to(std::nullopt, device); }
  Self& to(std::string_view device) { return to(std::nullopt, adjoin::device(device)); }

  void zero_grad() {
    for (const Part& p : parts().tensors)
      if (p.trained) p.tensor->set_grad({});
  }
  Self& requires_grad_(bool on = true) {
    for (const Part& p : parts().tensors)
      if (p.trained) p.tensor->requires_grad_(on);
    return self();
  }

  // The same module on tensors of its own.
  Self clone() const {
    Self copy = const_cast<Module*>(this)->self();
    NoGradGuard off;
    Parts found;
    detail::collect(copy, "", found);
    for (const Part& p : found.tensors) {
      Tensor fresh = adjoin::clone(p.tensor->detach());
      if (p.trained) fresh.requires_grad_(p.tensor->requires_grad());
      *p.tensor = fresh;
    }
    return copy;
  }

  Parts parts() const {
    Parts found;
    detail::collect(const_cast<Module*>(this)->self(), "", found);
    return found;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

// Python's names for what C++ has: vectors and maps of modules are walked.
template <class M>
using ModuleList = std::vector<M>;
template <class M>
using ModuleDict = std::map<std::string, M>;

}  // namespace nn
}  // namespace adjoin
#endif

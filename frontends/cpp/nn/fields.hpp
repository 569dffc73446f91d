// adjoin/nn/fields.hpp: the data members of a struct with their names, so that a module's
// parameters need no registration: what is declared is found.
//
// An aggregate (a struct without constructors) is taken apart by structured bindings, and a
// member's name read from how the compiler prints its address. A type with constructors says which
// members count:
//   static constexpr auto fields() { return nn::Fields<&Linear::weight, &Linear::bias>(); }
#ifndef ADJOIN_NN_FIELDS_HPP
#define ADJOIN_NN_FIELDS_HPP
#include <adjoin/joined.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace AJ_HIDDEN adjoin {
namespace nn {

template <auto... Member>
struct Fields {};

namespace detail {

template <class T>
struct Place {
  T at;
};
template <class T>
Place(T) -> Place<T>;

// The identifier that ends before the closing bracket of what the compiler prints.
consteval std::string_view last_word(std::string_view text) {
  size_t end = text.rfind(")}");                 // gcc: {(& object.Type::name)}
  if (end == text.npos) end = text.rfind("};");  // gcc, pointer to member: {&Type::name};
  if (end == text.npos) end = text.rfind("}]");  // clang: {&object.name}]
  size_t begin = end;
  auto part = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  while (begin > 0 && part(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

template <auto P>
consteval std::string_view name_of() {
  return last_word(__PRETTY_FUNCTION__);
}

// Room for a T that is never made: its members have addresses at compile time.
template <class T>
union Room {
  char none;
  T object;
  constexpr Room() : none{} {}
  constexpr ~Room() {}
};
template <class T>
inline Room<T> room{};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

struct Anything {
  template <class T>
  requires(!is_optional<T>) operator T() const;  // an optional makes itself from anything
};

template <class T, size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}

inline constexpr size_t kMost = 24;

// How many initializers T takes, its base among them.
template <class T, size_t N = kMost + 1>
consteval size_t initializers() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (takes<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return initializers<T, N - 1>();
  }
}

template <size_t N, class T>
constexpr auto tie_fields(T& object) {
  if constexpr (N == 0)
    return std::tie();
  else if constexpr (N == 1) {
    auto& [f0] = object;
    return std::tie(f0);
  } else if constexpr (N == 2) {
    auto& [f0, f1] = object;
    return std::tie(f0, f1);
  } else if constexpr (N == 3) {
    auto& [f0, f1, f2] = object;
    return std::tie(f0, f1, f2);
  } else if constexpr (N == 4) {
    auto& [f0, f1, f2, f3] = object;
    return std::tie(f0, f1, f2, f3);
  } else if constexpr (N == 5) {
    auto& [f0, f1, f2, f3, f4] = object;
    return std::tie(f0, f1, f2, f3, f4);
  } else if constexpr (N == 6) {
    auto& [f0, f1, f2, f3, f4, f5] = object;
    return std::tie(f0, f1, f2, f3, f4, f5);
  } else if constexpr (N == 7) {
    auto& [f0, f1, f2, f3, f4, f5, f6] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6);
  } else if constexpr (N == 8) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7);
  } else if constexpr (N == 9) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8);
  } else if constexpr (N == 10) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9);
  } else if constexpr (N == 11) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10);
  } else if constexpr (N == 12) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11);
  } else if constexpr (N == 13) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12);
  } else if constexpr (N == 14) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13);
  } else if constexpr (N == 15) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14);
  } else if constexpr (N == 16) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15);
  } else if constexpr (N == 17) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16);
  } else if constexpr (N == 18) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17);
  } else if constexpr (N == 19) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18] =
        object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18);
  } else if constexpr (N == 20) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
           f19] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18, f19);
  } else if constexpr (N == 21) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18, f19, f20);
  } else if constexpr (N == 22) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18, f19, f20, f21);
  } else if constexpr (N == 23) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18, f19, f20, f21, f22);
  } else if constexpr (N == 24) {
    auto& [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23] = object;
    return std::tie(f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18, f19, f20, f21, f22, f23);
  }
}

template <class T, class F, auto... Member>
void each_listed(T& object, F& f, Fields<Member...>) {
  (f(name_of<Place{Member}>(), object.*Member), ...);
}

template <class T, class F, size_t... I>
void each_bound(T& object, F& f, std::index_sequence<I...>) {
  static constexpr auto places = tie_fields<sizeof...(I)>(room<T>.object);
  auto members = tie_fields<sizeof...(I)>(object);
  (f(name_of<Place{&std::get<I>(places)}>(), std::get<I>(members)), ...);
}

}  // namespace detail

// Calls f(name, member) for every member of a module, in the order of declaration.
template <class T, class F>
void each_field(T& object, F&& f) {
  if constexpr (requires { T::fields(); }) {
    detail::each_listed(object, f, T::fields());
  } else {
    static_assert(std::is_aggregate_v<T>,
                  "a module with constructors has to say which members it has: "
                  "static constexpr auto fields() { return nn::Fields<&Net::a, &Net::b>(); }");
    constexpr size_t count = detail::initializers<T>() - 1;  // less nn::Module, its base
    static_assert(count < detail::kMost || !detail::takes<T>(std::make_index_sequence<count + 2>()),
                  "a module has at most 24 members: put some into modules of their own, or into a "
                  "std::vector, or say fields()");
    detail::each_bound(object, f, std::make_index_sequence<count>());
  }
}

}  // namespace nn
}  // namespace adjoin
#endif

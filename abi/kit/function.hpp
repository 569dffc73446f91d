// adjoin/kit/function.hpp: plain C++ functions as ops: the schema is read off the signature.
//
// Tensor scaled(const Tensor& x, double by) { return x * by; }
// AJ_PLUGIN(.name = "acme", .provides = "ops:acme") { function<scaled>(plugin, "acme::scaled", "x,
// by=2.0"); } What the function does with ops is recorded; one that reads memory by itself gets a
// derivative with .vjp(). A Tensor& is written to.
#ifndef ADJOIN_KIT_FUNCTION_HPP
#define ADJOIN_KIT_FUNCTION_HPP
#include <adjoin/kit/kit.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

template <class F>
struct Signature;
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using result = R;
  using list = std::tuple<P...>;
  static constexpr size_t count = sizeof...(P);
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {
  using inner = T;
};
template <class T>
inline constexpr bool unsupported = false;

// The schema's word for a type of C++.
template <class T>
constexpr const char* schema_word() {
  if constexpr (std::same_as<T, Tensor>)
    return "Tensor";
  else if constexpr (std::same_as<T, Operand>)
    return "Operand";
  else if constexpr (std::same_as<T, Scalar>)
    return "Scalar";
  else if constexpr (std::same_as<T, bool>)
    return "bool";
  else if constexpr (std::integral<T>)
    return "int";
  else if constexpr (std::floating_point<T>)
    return "float";
  else if constexpr (std::convertible_to<T, std::string_view>)
    return "str";
  else if constexpr (std::same_as<T, Ints> || std::same_as<T, std::vector<int64_t>>)
    return "int[]";
  else if constexpr (std::same_as<T, Floats> || std::same_as<T, std::vector<double>>)
    return "float[]";
  else if constexpr (std::same_as<T, Bools>)
    return "bool[]";
  else if constexpr (std::same_as<T, Tensors> || std::same_as<T, std::vector<Tensor>>)
    return "Tensor[]";
  else if constexpr (std::same_as<T, DLDataType>)
    return "dtype";
  else if constexpr (std::same_as<T, DLDevice>)
    return "device";
  else if constexpr (std::same_as<T, Generator>)
    return "Generator";
  else
    static_assert(unsupported<T>,
                  "function(): an op takes and returns Tensor, numbers, bool, text, lists of "
                  "them, optional ones, tuples of results; no other type");
}

template <class P>  // as it stands in the function's list
std::string parameter_type(char letter) {
  using T = std::remove_cvref_t<P>;
  if constexpr (IsOptional<T>::value)
    return std::string(schema_word<typename IsOptional<T>::inner>()) + "?";
  else if constexpr (std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>)
    return std::string(schema_word<T>()) + "(" + letter + "!)";
  else
    return schema_word<T>();
}

template <class R>
struct ResultList {
  static std::string text(char written) {
    if constexpr (std::is_void_v<R>)
      return "()";
    else if constexpr (std::is_lvalue_reference_v<R>)
      return std::string("Tensor(") + written + "!)";
    else
      return schema_word<std::remove_cvref_t<R>>();
  }
};
template <class... R>
struct ResultList<std::tuple<R...>> {
  static std::string text(char) {
    std::string all;
    int at = 0;
    ((all += all.empty() ? "(" : ", ", all += schema_word<R>(), all += " r" + std::to_string(at++)),
     ...);
    return all + ")";
  }
};
template <class A, class B>
struct ResultList<std::pair<A, B>> : ResultList<std::tuple<A, B>> {};

// "x, by=1.0" against the types: "Tensor x, float by=1.0". Without names: input, b, c, ...
template <auto F>
std::string schema_of(std::string_view name, std::string_view names) {
  using S = Signature<decltype(F)>;
  std::string out(name);
  out += '(';
  char letter = 'a', written = 'a';
  auto next = [&](size_t i, const std::string& type, bool writes) {
    size_t comma = names.find(',');
    std::string_view word = names.substr(0, comma);
    names = comma == names.npos ? std::string_view() : names.substr(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    if (i) out += ", ";
    out += type + ' ';
    if (word.empty()) {
      out += i ? std::string(1, char('a' + i)) : "input";
    } else {
      out += word;
    }
    if (writes && written == 'a') written = letter;
    ++letter;
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    (next(I, parameter_type<std::tuple_element_t<I, typename S::list>>(letter),
          std::is_lvalue_reference_v<std::tuple_element_t<I, typename S::list>>),
     ...);
  }
  (std::make_index_sequence<S::count>());
  return out + ") -> " + ResultList<typename S::result>::text(written);
}

template <class T>
T argument(const Values& v, uint32_t i) {
  if constexpr (IsOptional<T>::value) {
    if (!v.given(i)) return std::nullopt;
    return argument<typename IsOptional<T>::inner>(v, i);
  } else if constexpr (std::same_as<T, Tensor>) {
    return v.tensor(i);
  } else if constexpr (std::same_as<T, Operand>) {
    return v.operand(i);
  } else if constexpr (std::same_as<T, Scalar>) {
    return v.scalar(i);
  } else if constexpr (std::same_as<T, bool>) {
    return v.flag(i);
  } else if constexpr (std::integral<T>) {
    int64_t x = v.integer(i);
    if (!std::in_range<T>(x))
      raise(AJ_INVALID_ARGUMENT, "argument ", i, ": ", x,
            " does not fit into the function's integer");
    return T(x);
  } else if constexpr (std::floating_point<T>) {
    return T(v.real(i));
  } else if constexpr (std::same_as<T, Ints>) {
    return v.ints(i);
  } else if constexpr (std::same_as<T, std::vector<int64_t>>) {
    return v.ints(i).vec();
  } else if constexpr (std::same_as<T, Floats>) {
    return v.floats(i);
  } else if constexpr (std::same_as<T, std::vector<double>>) {
    return {v.floats(i).begin(), v.floats(i).end()};
  } else if constexpr (std::same_as<T, Bools>) {
    return v.bools(i);
  } else if constexpr (std::same_as<T, Tensors>) {
    return v.tensors(i);
  } else if constexpr (std::same_as<T, std::vector<Tensor>>) {
    return {v.tensors(i).begin(), v.tensors(i).end()};
  } else if constexpr (std::same_as<T, DLDataType>) {
    return v.dtype(i);
  } else if constexpr (std::same_as<T, DLDevice>) {
    return v.device(i);
  } else if constexpr (std::same_as<T, Generator>) {
    return v.generator(i);
  } else {
    return T(v.text(i));
  }
}

inline void give(const Body& b, uint32_t i, const Tensor& t) { b.ret(i, t); }
inline void give(const Body& b, uint32_t i, const std::vector<Tensor>& l) { b.ret(i, l); }
template <class N>
requires std::is_arithmetic_v<N> || std::same_as<N, Scalar>
void give(const Body& b, uint32_t i, const N& x) { b.ret(i, Scalar(x)); }
template <class... R>
void give(const Body& b, uint32_t, const std::tuple<R...>& all) {
  uint32_t i = 0;
  std::apply([&](const R&... r) { (give(b, i++, r), ...); }, all);
}
template <class A, class B>
void give(const Body& b, uint32_t, const std::pair<A, B>& p) {
  give(b, 0, p.first);
  give(b, 1, p.second);
}

template <auto F>
aj_status* function_body(void*, aj_call* call) {
  using S = Signature<decltype(F)>;
  return compose(call, [](Body& b) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      std::tuple<std::remove_cvref_t<std::tuple_element_t<I, typename S::list>>...> held(
          argument<std::remove_cvref_t<std::tuple_element_t<I, typename S::list>>>(b, I)...);
      auto run = [&]() -> decltype(auto) {
        return F(static_cast<std::tuple_element_t<I, typename S::list>>(std::get<I>(held))...);
      };
      if constexpr (std::is_void_v<typename S::result>) {
        run();
      } else {
        give(b, 0, run());
      }
    }
    (std::make_index_sequence<S::count>());
  });
}

inline std::deque<std::string> schemas;  // builders keep pointers to them

// Defines the op `name` that calls F. names: its parameters, with defaults, "x, by=1.0".
template <auto F>
OpBuilder& function(Registrar& plugin, const char* name, const char* names = "",
                    const char* doc = "") {
  return plugin.op(schemas.emplace_back(schema_of<F>(name, names)).c_str(), doc)
      .tags("function-only")
      .body(&function_body<F>);
}

}  // namespace kit
}  // namespace adjoin
#endif

// adjoin/kit/adapt.hpp: lambdas as kernels and as derivatives. The parameter list is the
// declaration: it says which arguments are wanted, and for a derivative which of them are saved.
//
// Kernel: arguments by the schema's order (TensorView, int64_t, double, bool, std::string_view,
// Span, aj_value), then results (Mut<TensorView>). Derivative: Tensor is the gradient of the next
// result, Saved the next argument, a number or Span the next argument, Skip passes an argument
// over, Out is the next result. It returns a Tensor, or a tuple or array of them.
#ifndef ADJOIN_KIT_ADAPT_HPP
#define ADJOIN_KIT_ADAPT_HPP
#include <adjoin/kit/call.hpp>
#include <adjoin/kit/view.hpp>
#include <array>
#include <deque>
#include <tuple>

namespace adjoin {
namespace AJ_HIDDEN kit {

struct Saved : Tensor {};  // the argument at this place
struct Out : Tensor {};    // the next result
struct Skip {};            // an argument that the derivative doesn't need

template <class F>
struct Parameters;
template <class L, class R, class... P>
struct Parameters<R (L::*)(P...) const> {
  using list = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr size_t count = sizeof...(P);
};
template <class L>
using ParametersOf = Parameters<decltype(&L::operator())>;
template <class L, size_t I>
using Parameter = std::tuple_element_t<I, typename ParametersOf<L>::list>;

// Does a parameter take an argument of the call, or a gradient or a result?
template <class P>
constexpr bool is_gradient = std::is_same_v<P, Tensor>;
template <class P>
constexpr bool is_result = std::is_same_v<P, Out> || std::is_same_v<P, MutView>;
template <class P>
constexpr bool is_argument = !is_gradient<P> && !is_result<P>;

template <class L, size_t I>
constexpr uint32_t place() {  // of parameter I among those of its own sort
  return [&]<size_t... J>(std::index_sequence<J...>) {
    using P = Parameter<L, I>;
    return (0u + ... +
            uint32_t((is_gradient<P> && is_gradient<Parameter<L, J>>) ||
                     (is_result<P> && is_result<Parameter<L, J>>) ||
                     (is_argument<P> && is_argument<Parameter<L, J>>)));
  }
  (std::make_index_sequence<I>());
}

template <class P>
P from_value(const aj_value& v) {
  if constexpr (std::is_base_of_v<Tensor, P>) {
    P p;
    static_cast<Tensor&>(p) = Tensor::borrow(v.tag == AJ_TENSOR ? v.v.tensor : nullptr);
    return p;
  } else if constexpr (std::is_base_of_v<TensorView, P>) {
    return P(v.tag == AJ_TENSOR ? v.v.tensor : nullptr);
  } else if constexpr (std::is_same_v<P, Span>) {
    return v.tag == AJ_INTS ? Span(v.v.ints, v.aux) : Span();
  } else if constexpr (std::is_same_v<P, std::string_view>) {
    return v.tag == AJ_STRING ? std::string_view(v.v.str, v.aux) : std::string_view();
  } else if constexpr (std::is_same_v<P, aj_value>) {
    return v;
  } else {
    return number<P>(v);
  }
}

template <class L>
aj_status* adapted_kernel(void*, aj_call* call) {
  static_assert(std::is_empty_v<L>,
                "a kernel cannot capture: what it needs must be in its arguments");
  return guard(call, [&] {
    [&]<size_t... I>(std::index_sequence<I...>) {
      auto get = [&]<size_t K>(std::integral_constant<size_t, K>) {
        constexpr uint32_t at = place<L, K>();
        return from_value<Parameter<L, K>>(is_result<Parameter<L, K>> ? call->rets[at]
                                                                      : Args(call)[at]);
      };
      L{}(get(std::integral_constant<size_t, I>())...);
    }
    (std::make_index_sequence<ParametersOf<L>::count>());
  });
}

template <class L, size_t I>
constexpr bool is_saved = !is_gradient<Parameter<L, I>> && !std::is_same_v<Parameter<L, I>, Skip>;
template <class L, size_t I>
constexpr uint32_t saved_before() {
  return [&]<size_t... J>(std::index_sequence<J...>) {
    return (0u + ... + uint32_t(is_saved<L, J>));
  }
  (std::make_index_sequence<I>());
}

// What the core has to keep, in the order of the parameters.
template <class L>
inline constexpr auto saves = []<size_t... I>(std::index_sequence<I...>) {
  std::array<aj_save, (0 + ... + int(is_saved<L, I>))> list = {};
  size_t n = 0;
  ((is_saved<L, I> ? void(list[n++] = {is_result<Parameter<L, I>> ? AJ_SAVE_RESULT : AJ_SAVE_ARG,
                                       int32_t(place<L, I>()), 0})
                   : void()),
   ...);
  return list;
}
(std::make_index_sequence<ParametersOf<L>::count>());

template <class L>
aj_status* adapted_vjp(void*, aj_grad_call* call) {
  static_assert(std::is_empty_v<L>, "a derivative cannot capture: what it needs must be saved");
  return guard(std::string_view(), [&] {
    auto give = [&](size_t i, Tensor t) {
      if (i < call->ngrad_in && call->needs[i]) call->grad_in[i] = t.take();
    };
    [&]<size_t... I>(std::index_sequence<I...>) {
      auto get = [&]<size_t K>(std::integral_constant<size_t, K>) {
        using P = Parameter<L, K>;
        if constexpr (std::is_same_v<P, Skip>)
          return Skip();
        else if constexpr (is_gradient<P>)
          return Tensor::borrow(call->grad_out[place<L, K>()]);
        else
          return from_value<P>(call->saved[saved_before<L, K>()]);
      };
      auto result = L{}(get(std::integral_constant<size_t, I>())...);
      if constexpr (std::is_convertible_v<decltype(result), Tensor>) {
        give(0, std::move(result));
      } else {
        size_t i = 0;
        std::apply([&](auto&... each) { (give(i++, std::move(each)), ...); }, result);
      }
    }
    (std::make_index_sequence<ParametersOf<L>::count>());
  });
}

// The C++ parameters against the schema's text, so that a slip is an error at load and not a wrong
// number later.
template <class P>
constexpr std::string_view wanted_base() {
  if constexpr (std::is_base_of_v<TensorView, P> || std::is_same_v<P, Saved>)
    return "Tensor Operand";
  else if constexpr (std::is_same_v<P, int64_t>)
    return "int dim size";
  else if constexpr (std::is_floating_point_v<P>)
    return "float Scalar";
  else if constexpr (std::is_same_v<P, bool>)
    return "bool";
  else if constexpr (std::is_same_v<P, std::string_view>)
    return "str";
  else if constexpr (std::is_same_v<P, Span>)
    return "int[] dim[] size[]";
  else
    return "";
}

inline std::deque<std::string> schema_bases(std::string_view schema) {
  std::deque<std::string> bases;
  size_t at = schema.find('(') + 1;
  for (std::string word; at < schema.size(); ++at) {
    char c = schema[at];
    if (c == '(' || c == '<') {  // an alias mark, or a class of dtypes
      at = schema.find(c == '(' ? ')' : '>', at);
    } else if (c == ' ' || c == ')' || c == ',') {
      if (!word.empty() && word != "*") {
        size_t open = word.find('[');
        std::erase(word, '?');
        bases.push_back(open == std::string::npos ? word : word.substr(0, open) + "[]");
      }
      word.clear();
      if (c == ' ') at = std::min(schema.find_first_of(",)", at), schema.size());
      if (schema[at] == ')') break;
      while (at + 1 < schema.size() && schema[at + 1] == ' ') ++at;
    } else {
      word += c;
    }
  }
  return bases;
}

template <class L>
void match(std::string_view schema, const char* what) {
  std::deque<std::string> bases = schema_bases(schema);
  auto one = [&](std::string_view want, size_t at) {
    std::string_view have =
        at < bases.size() ? std::string_view(bases[at]) : std::string_view("nothing");
    if (want.empty() ||
        (" " + std::string(want) + " ").find(" " + std::string(have) + " ") != std::string::npos)
      return;
    raise(AJ_INVALID_ARGUMENT, schema.substr(0, schema.find('(')), ": the ", what, "'s argument ",
          int64_t(at), " wants ", want, ", the schema has ", have, " there: ", schema);
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((is_argument<Parameter<L, I>> ? one(wanted_base<Parameter<L, I>>(), place<L, I>()) : void()),
     ...);
  }
  (std::make_index_sequence<ParametersOf<L>::count>());
}

}  // namespace kit
}  // namespace adjoin
#endif

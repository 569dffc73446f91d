// plugins/reference/element.hpp: one element after the other, in any dtype. The text a backend's
// author reads first.
#ifndef ADJOIN_PLUGINS_REFERENCE_ELEMENT_HPP
#define ADJOIN_PLUGINS_REFERENCE_ELEMENT_HPP
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/philox.hpp>
#include <algorithm>
#include <vector>

namespace adjoin::reference {
using namespace adjoin::kit;  // NOLINT: this library is made of it

// How an element of the operand's dtype is read as a T, and a T written.
template <class T>
using Get = T (*)(const char*);
template <class T>
using Put = void (*)(char*, T);

template <class T>
Get<T> getter(DLDataType dtype) {
  Get<T> get = nullptr;
  visit<stored>(
      dtype, [&]<class From>() { get = [](const char* p) { return cast<T>(element<From>(p)); }; });
  return get;
}
template <class T>
Put<T> putter(DLDataType dtype) {
  Put<T> put = nullptr;
  visit<stored>(dtype, [&]<class To>() {
    put = [](char* p, T x) { *reinterpret_cast<To*>(p) = cast<To>(x); };
  });
  return put;
}

// Calls f(pointers, i) for the i-th element of the plan, innermost dimension first.
template <class F>
void for_elements(const aj_plan& p, F f) {
  int64_t i = 0;
  for_rows(p, [&](char** row, int64_t n) {
    char* at[kMaxOps];
    for (uint32_t k = 0; k < p.nops; ++k) at[k] = row[k];
    for (int64_t j = 0; j < n; ++j) {
      f(at, i++);
      for (uint32_t k = 0; k < p.nops; ++k)
        if (at[k]) at[k] += row_stride(p, k);
    }
  });
}

// The type that arithmetic on a dtype is done in: float for halves.
template <class Set, class F>
void visit_math(DLDataType d, F f) {
  visit<Set>(d, [&]<class T>() { f.template operator()<Math<T>>(); });
}

// out = f(inputs) for each element; an absent input reads as zero.
template <class... In, class F>
void map_elements(const aj_plan& p, F f) {
  using R = decltype(f(std::declval<In>()...));
  Put<R> put = putter<R>(p.ops[0].dtype);
  [&]<size_t... I>(std::index_sequence<I...>) {
    std::tuple<Get<In>...> get(p.ops[I + 1].data ? getter<In>(p.ops[I + 1].dtype) : nullptr...);
    for_elements(p, [&](char** at, int64_t) {
      put(at[0], f((std::get<I>(get) ? std::get<I>(get)(at[I + 1]) : In(0))...));
    });
  }
  (std::index_sequence_for<In...>());
}

template <class F, class Set, int N>
aj_status* pointwise(void*, aj_call* call) {
  return guard(call, [&] {
    visit_math<Set>(call->plan->compute, [&]<class T>() {
      choose<F, T>(call, [&](auto f) {
        if constexpr (N == 1)
          map_elements<T>(*call->plan, f);
        else if constexpr (N == 2)
          map_elements<T, T>(*call->plan, f);
        else
          map_elements<T, T, T>(*call->plan, f);
      });
    });
  });
}
// kit's unary and binary do the same with fast inner loops.
template <class F, class Set>
constexpr Spec one = {&pointwise<F, Set, 1>, Set::mask, AJ_KERNEL_CASTS};
template <class F, class Set>
constexpr Spec two = {&pointwise<F, Set, 2>, Set::mask, AJ_KERNEL_CASTS};
template <class F, class Set>
constexpr Spec three = {&pointwise<F, Set, 3>, Set::mask, AJ_KERNEL_CASTS};

}  // namespace adjoin::reference
#endif

// plugins/vector/vector_kernel.hpp: kernels made of vector loops; dtypes that have none go to the
// loops of the kit.
#ifndef ADJOIN_PLUGINS_VECTOR_VECTOR_KERNEL_HPP
#define ADJOIN_PLUGINS_VECTOR_VECTOR_KERNEL_HPP
#include <adjoin/kit/choosers.hpp>

#include "rows.hpp"

namespace adjoin::cpu {

// The loops of one function of the chosen instruction set; NULL: the dtype has none.
struct LoopPair {
  const Loops* single;
  const Loops* twice;
  const Loops* of(DLDataType compute) const {
    return same(compute, dtype_of<float>)    ? single
           : same(compute, dtype_of<double>) ? twice
                                             : nullptr;
  }
};

LoopPair floor_divide_pair();  // of division_bits.cpp, for div(rounding_mode="floor")

template <LoopPair (*Pair)(), aj_kernel_fn Otherwise>
aj_status* vector_kernel(void* self, aj_call* call) {
  const Loops* loops = Pair().of(call->plan->compute);
  if (!loops) return Otherwise(self, call);
  return guard(call, [&] {
    const char stateless = 0;
    run_rows(*call->plan, *loops, &stateless);
  });
}
template <LoopPair (*Pair)(), aj_kernel_fn Otherwise, class Set>
inline constexpr Spec vectors = {&vector_kernel<Pair, Otherwise>, Set::mask, kInner};

// The vector functor has the fields of the kit's scalar one, which the chooser makes.
template <LoopPair (*Pair)(), class Chooser, class Set>
aj_status* chosen_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    visit<Set>(call->plan->compute, [&]<class T>() {
      Chooser::template choose<T>(
          call, [&](auto f) { run_rows(*call->plan, *Pair().of(call->plan->compute), &f); });
    });
  });
}
template <LoopPair (*Pair)(), class Chooser, class Set>
inline constexpr Spec chosen_vectors = {&chosen_kernel<Pair, Chooser, Set>, Set::mask, kInner};

// In a namespace of an instruction set: loops of a functor F as `name`_loops.
#define AJ_LOOPS(name, F, n, shape)                                     \
  constexpr Loops name##_single = loops_of<F, float, n, Form::shape>(), \
                  name##_twice = loops_of<F, double, n, Form::shape>(); \
  static LoopPair name##_loops() { return {&name##_single, &name##_twice}; }
// The same of a functor with fields, a template of what it computes in.
#define AJ_LOOPS_OF(name, Functor, n)                                    \
  constexpr Loops name##_single = loops_of<Functor<float>, float, n>(),  \
                  name##_twice = loops_of<Functor<double>, double, n>(); \
  static LoopPair name##_loops() { return {&name##_single, &name##_twice}; }
// A function of one argument, `expression` of the tag d and the vector x, and its loops.
#define AJ_UNARY(name, expression)            \
  struct name##_f {                           \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  };                                          \
  AJ_LOOPS(name, name##_f, 1, same)
// The same of two arguments, the vectors a and b.
#define AJ_BINARY(name, expression)                \
  struct name##_f {                                \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      (void)d, (void)b;                            \
      return expression;                           \
    }                                              \
  };                                               \
  AJ_LOOPS(name, name##_f, 2, same)
// And outside: those of the chosen set, for a row: vectors<AJ_PAIR(exp), ...>. The table stands in
// an unnamed namespace, so that its kernels are nobody else's and are inlined as such.
#define AJ_PAIR(name) [] { return AJ_SIMD(name##_loops)(); }

}  // namespace adjoin::cpu
#endif

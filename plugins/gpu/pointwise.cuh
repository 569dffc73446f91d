// plugins/gpu/pointwise.cuh: functions of elements over a plan: whole vectors where everything is
// contiguous, else each element from where it lies.
#ifndef ADJOIN_PLUGINS_GPU_POINTWISE_CUH
#define ADJOIN_PLUGINS_GPU_POINTWISE_CUH
#include <type_traits>

#include "element.cuh"
#include "pack.cuh"

namespace adjoin::gpu {

template <class F, class R, class... In>
struct Map {
  F f;
  Walk<1 + sizeof...(In)> walk;
};

template <class F, class R, class... In, size_t... I>
AJ_DEVICE inline R apply(const F& f, const Walk<1 + sizeof...(In)>& w, const int64_t* offset,
                         std::index_sequence<I...>) {
  return f(w.template get<In>(int(I) + 1, offset[I + 1])...);
}

template <class F, class R, class... In>
AJ_GLOBAL void map_kernel(AJ_ARGUMENT Map<F, R, In...> p) {
  int64_t step = int64_t(blocks_x()) * threads_x();
  int64_t offset[1 + sizeof...(In)];
  for (int64_t i = int64_t(block_x()) * threads_x() + thread_x(); i < p.walk.numel; i += step) {
    p.walk.locate(i, offset);
    R r = apply<F, R, In...>(p.f, p.walk, offset, std::index_sequence_for<In...>());
    store<R>(p.walk.data[0] + offset[0], p.walk.dtype[0], r);
  }
}

// Operands that lie one element after the other: inputs of type In, or numbers; results of type
// Out; f computes in T.
template <class F, class Out, class In, int N, class T>
struct Flat {
  F f;
  int64_t n;
  Out* out;
  const In* in[N];  // NULL: the number
  T number[N];
};
template <class Out, class T, class P, class X, size_t... I>
AJ_DEVICE inline Out apply_flat(const P& p, const X& x, std::index_sequence<I...>) {
  return narrowed<Out>(p.f(p.in[I] ? widened<T>(x(I)) : p.number[I]...));
}
// A thread's elements fill 16 bytes of each operand at least.
template <class Out, class In>
inline constexpr int64_t kFlat = kPack<In> > kPack<Out> ? kPack<In> : kPack<Out>;

template <class F, class Out, class In, int N, class T>
AJ_GLOBAL void flat_kernel(AJ_ARGUMENT Flat<F, Out, In, N, T> p) {
  constexpr int64_t kEach = kFlat<Out, In>, kRead = kPack<In>, kWrite = kPack<Out>;
  constexpr auto all = std::make_index_sequence<N>();
  int64_t step = int64_t(blocks_x()) * threads_x() * kEach;
  for (int64_t i = (int64_t(block_x()) * threads_x() + thread_x()) * kEach; i < p.n; i += step) {
    if (i + kEach > p.n) {
      for (; i < p.n; ++i)
        p.out[i] = apply_flat<Out, T>(
            p, [&](size_t k) { return p.in[k][i]; }, all);
      return;
    }
    Pack<Out> results[kEach / kWrite];
    AJ_UNROLL
    for (int64_t at = 0; at < kEach; at += kRead) {
      Pack<In> x[N];
      AJ_UNROLL
      for (int k = 0; k < N; ++k)
        if (p.in[k]) x[k] = *reinterpret_cast<const Pack<In>*>(p.in[k] + i + at);
      AJ_UNROLL
      for (int64_t j = 0; j < kRead; ++j)
        results[(at + j) / kWrite].at[(at + j) % kWrite] = apply_flat<Out, T>(
            p, [&](size_t k) { return x[k].at[j]; }, all);
    }
    AJ_UNROLL
    for (int64_t k = 0; k < kEach / kWrite; ++k)
      *reinterpret_cast<Pack<Out>*>(p.out + i + k * kWrite) = results[k];
  }
}

template <class Out, class In, class T, int N, class F>
bool launch_flat(const aj_call* call, const F& f) {
  const aj_plan& plan = *call->plan;
  const aj_operand& out = plan.ops[0];
  if (!same(out.dtype, dtype_of<Out>) || !aligned(out.data)) return false;
  Flat<F, Out, In, N, T> p = {f, plan.numel, reach(static_cast<Out*>(out.data)), {}, {}};
  for (int k = 0; k < N; ++k) {
    const aj_operand& o = plan.ops[k + 1];
    if (!o.data) return false;
    if (o.flags & AJ_OPERAND_NUMBER) {
      if (same(o.dtype, dtype_of<T>))
        p.number[k] = *static_cast<const T*>(o.data);
      else if (same(o.dtype, dtype_of<In>))
        p.number[k] = T(*static_cast<const In*>(o.data));
      else
        return false;
    } else if (!same(o.dtype, dtype_of<In>) || !aligned(o.data) || !o.strides ||
               o.strides[0] != int64_t(sizeof(In))) {
      return false;
    } else {
      p.in[k] = reach(static_cast<const In*>(o.data));
    }
  }
  launch_threads<&flat_kernel<F, Out, In, N, T>>(call, plan.numel, kFlat<Out, In>, p);
  return true;
}

// The fast way, if the plan allows it. What is computed in float may be stored in halves.
template <class R, class T, int N, class F>
bool map_flat(const aj_call* call, const F& f) {
  if (!(call->plan->flags & AJ_PLAN_FLAT)) return false;
  if constexpr (std::is_same_v<T, float>) {
    auto halves = [&]<class S>(S) {
      using Out = std::conditional_t<std::is_same_v<R, T>, S, R>;
      return launch_flat<Out, S, T, N>(call, f);
    };
    for (int k = 0; k < N; ++k) {
      const aj_operand& o = call->plan->ops[k + 1];
      if (o.flags & AJ_OPERAND_NUMBER) continue;
      if (same(o.dtype, dtype_of<Half>)) return halves(Half());
      if (same(o.dtype, dtype_of<BFloat16>)) return halves(BFloat16());
    }
  }
  return launch_flat<R, T, T, N>(call, f);
}

template <class First, class...>
struct FirstOf {
  using type = First;
};

// out = f(in...) for every element; an absent input reads as zero.
template <class... In, class F>
void map(const aj_call* call, const F& f) {
  using R = std::remove_cvref_t<decltype(f(std::declval<In>()...))>;
  using T = typename FirstOf<In...>::type;
  if constexpr ((std::is_same_v<In, T> && ...))
    if (map_flat<R, T, sizeof...(In)>(call, f)) return;
  for_walks<1 + sizeof...(In)>(*call->plan, [&](const Walk<1 + sizeof...(In)>& w) {
    launch_threads<&map_kernel<F, R, In...>>(call, w.numel, 4, Map<F, R, In...>{f, w});
  });
}

template <class F, class Set, int N>
aj_status* pointwise(void*, aj_call* call) {
  return guard(call, [&] {
    visit<Set>(call->plan->compute, [&]<class T>() {
      choose<F, T>(call, [&](auto f) {
        if constexpr (N == 1)
          map<T>(call, f);
        else if constexpr (N == 2)
          map<T, T>(call, f);
        else
          map<T, T, T>(call, f);
      });
    });
  });
}
template <class F, class Set>
inline constexpr Spec one = {&pointwise<F, Set, 1>, Set::mask, AJ_KERNEL_CASTS};
template <class F, class Set>
inline constexpr Spec two = {&pointwise<F, Set, 2>, Set::mask, AJ_KERNEL_CASTS};
template <class F, class Set>
inline constexpr Spec three = {&pointwise<F, Set, 3>, Set::mask, AJ_KERNEL_CASTS};

}  // namespace adjoin::gpu
#endif

// plugins/gpu/pointwise.cuh: functions of elements over a plan: whole vectors where everything is
// contiguous, else each element from where it lies.
#ifndef ADJOIN_PLUGINS_GPU_POINTWISE_CUH
#define ADJOIN_PLUGINS_GPU_POINTWISE_CUH
#include <type_traits>

#include "element.cuh"

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

constexpr int kVector = 16;  // bytes that a thread moves at once
template <class T>
inline constexpr int64_t kPack = kVector / int64_t(sizeof(T));
template <class T>
struct alignas(kVector) Pack {
  T at[kPack<T>];
};

// All operands contiguous and of type T, or numbers.
template <class F, class R, class T, int N>
struct Flat {
  F f;
  int64_t n;
  R* out;
  const T* in[N];  // NULL: the number
  T number[N];
};
template <class F, class R, class T, int N, size_t... I>
AJ_DEVICE inline R apply_flat(const F& f, const T* x, std::index_sequence<I...>) {
  return f(x[I]...);
}
template <class F, class R, class T, int N>
AJ_GLOBAL void flat_kernel(AJ_ARGUMENT Flat<F, R, T, N> p) {
  constexpr int64_t kWide = kPack<T>;
  int64_t step = int64_t(blocks_x()) * threads_x() * kWide;
  for (int64_t i = (int64_t(block_x()) * threads_x() + thread_x()) * kWide; i < p.n; i += step) {
    bool whole = i + kWide <= p.n;
    T x[kWide][N];
    for (int k = 0; k < N; ++k) {
      if (!p.in[k]) {
        for (int j = 0; j < kWide; ++j) x[j][k] = p.number[k];
      } else if (whole) {
        Pack<T> pack = *reinterpret_cast<const Pack<T>*>(p.in[k] + i);
        for (int j = 0; j < kWide; ++j) x[j][k] = pack.at[j];
      } else {
        for (int j = 0; j < kWide; ++j)
          if (i + j < p.n) x[j][k] = p.in[k][i + j];
      }
    }
    if constexpr (sizeof(R) == sizeof(T)) {
      if (whole) {
        Pack<R> pack;
        for (int j = 0; j < kWide; ++j)
          pack.at[j] = apply_flat<F, R, T, N>(p.f, x[j], std::make_index_sequence<N>());
        *reinterpret_cast<Pack<R>*>(p.out + i) = pack;
        continue;
      }
    }
    for (int j = 0; j < kWide; ++j)
      if (i + j < p.n)
        p.out[i + j] = apply_flat<F, R, T, N>(p.f, x[j], std::make_index_sequence<N>());
  }
}

inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kVector == 0; }

// The fast way, if the plan allows it.
template <class R, class T, int N, class F>
bool map_flat(const aj_call* call, const F& f) {
  const aj_plan& plan = *call->plan;
  const aj_operand& out = plan.ops[0];
  if (!(plan.flags & AJ_PLAN_FLAT) || !same(out.dtype, dtype_of<R>) || !aligned(out.data))
    return false;
  Flat<F, R, T, N> p = {f, plan.numel, reach(static_cast<R*>(out.data)), {}, {}};
  for (int k = 0; k < N; ++k) {
    const aj_operand& o = plan.ops[k + 1];
    if (!same(o.dtype, dtype_of<T>) || !o.data) return false;
    if (o.flags & AJ_OPERAND_NUMBER)
      p.number[k] = *static_cast<const T*>(o.data);
    else if (!aligned(o.data) || !o.strides || o.strides[0] != int64_t(sizeof(T)))
      return false;
    else
      p.in[k] = reach(static_cast<const T*>(o.data));
  }
  launch_threads<&flat_kernel<F, R, T, N>>(call, plan.numel, kPack<T>, p);
  return true;
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

// adjoin/kit/loops.hpp: pointwise kernels over a plan.
//
// A functor and a type make only their inner loops, over contiguous rows; the walk, and the casting
// of operands in blocks on the stack, are compiled once for all of them.
#ifndef ADJOIN_KIT_LOOPS_HPP
#define ADJOIN_KIT_LOOPS_HPP
#include <adjoin/kit/convert.hpp>
#include <adjoin/kit/kernel.hpp>

#if defined(__clang__)
#define AJ_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define AJ_IVDEP _Pragma("GCC ivdep")
#endif

namespace adjoin {
namespace AJ_HIDDEN kit {

constexpr int kMaxOps = 8;
constexpr int64_t kBlock = 512;  // elements: four blocks of complex128 fit the first-level cache

// Calls f(pointers, n) for each innermost row.
template <class F>
void for_rows(const aj_plan& p, F&& f) {
  if (p.numel == 0) return;
  char* at[kMaxOps];
  for (uint32_t k = 0; k < p.nops; ++k) at[k] = static_cast<char*>(p.ops[k].data);
  int64_t n = p.ndim ? p.sizes[0] : 1;
  if (p.ndim <= 1) return f(at, n);  // the common case pays for no counters
  int64_t index[64];
  for (uint32_t d = 1; d < p.ndim; ++d) index[d] = 0;
  for (;;) {
    f(at, n);
    uint32_t d = 1;
    for (; d < p.ndim; ++d) {
      bool carry = ++index[d] == p.sizes[d];
      int64_t step = carry ? 1 - p.sizes[d] : 1;
      for (uint32_t k = 0; k < p.nops; ++k)
        if (at[k]) at[k] += p.ops[k].strides[d] * step;
      if (!carry) break;
      index[d] = 0;
    }
    if (d >= p.ndim) return;
  }
}

inline int64_t row_stride(const aj_plan& p, uint32_t op) {
  return p.ndim && p.ops[op].strides ? p.ops[op].strides[0] : 0;
}

// in[i] for i < n, or in[0] repeated where the mask that the loop was compiled for has the input's
// bit.
using RowFn = void (*)(const void* functor, void* out, const void* const* in, int64_t n);
struct Rows {
  uint32_t inputs;
  const Typed* out;
  const Typed* in[3];
  RowFn by_mask[8];
};

class RowDriver {
 public:
  RowDriver(const aj_plan& p, const Rows& r, const void* functor)
      : p_(p), r_(r), functor_(functor) {
    out_stride_ = row_stride(p, 0);
    direct_ = same(p.ops[0].dtype, r.out->dtype) && out_stride_ == r.out->size;
    for (uint32_t i = 0; i < r.inputs; ++i) {
      const aj_operand& o = p.ops[i + 1];
      stride_[i] = o.data ? row_stride(p, i + 1) : 0;
      bool same_type = o.data && same(o.dtype, r.in[i]->dtype);
      if (stride_[i] == 0) mask_ |= 1u << i;
      ready_[i] = same_type && (stride_[i] == 0 || stride_[i] == r.in[i]->size);
      direct_ &= ready_[i];
    }
    direct_ &= r.by_mask[mask_] != nullptr;
  }

  void run() {
    if (direct_) return for_rows(p_, [&](char** at, int64_t n) { whole(at, n); });
    for_rows(p_, [&](char** at, int64_t n) { blocks(at, n); });
  }

 private:
  void whole(char** at, int64_t n) {
    if (out_stride_ == 0 && n > 1) n = 1;
    r_.by_mask[mask_](functor_, at[0], reinterpret_cast<const void* const*>(at + 1), n);
  }

  void blocks(char** at, int64_t n) {
    alignas(64) char store[4][kBlock * 16];
    const void* in[3];
    unsigned mask = r_.by_mask[mask_] ? mask_ : 0;
    for (int64_t lo = 0; lo < n; lo += kBlock) {
      int64_t m = std::min(kBlock, n - lo);
      for (uint32_t i = 0; i < r_.inputs; ++i) in[i] = input(at, i, lo, m, mask >> i & 1, store[i]);
      char* to = at[0] + lo * out_stride_;
      bool straight = out_stride_ == r_.out->size && same(p_.ops[0].dtype, r_.out->dtype);
      r_.by_mask[mask](functor_, straight ? to : store[3], in, m);
      if (!straight) r_.out->store(to, p_.ops[0].dtype, out_stride_, store[3], m);
    }
  }

  const void* input(char** at, uint32_t i, int64_t lo, int64_t m, bool splat, char* store) {
    const Typed& t = *r_.in[i];
    const char* from = at[i + 1];
    if (!from) {
      std::memset(store, 0, t.size * (splat ? 1 : m));
      return store;
    }
    if (ready_[i] && (stride_[i] != 0 || splat)) return from + lo * stride_[i];
    t.load(store, from + lo * stride_[i], p_.ops[i + 1].dtype, stride_[i], splat ? 1 : m);
    return store;
  }

  const aj_plan& p_;
  const Rows& r_;
  const void* functor_;
  int64_t out_stride_, stride_[3];
  bool ready_[3], direct_;
  unsigned mask_ = 0;
};

template <bool Splat, class T>
struct Source {
  const T* p;
  T first;
  explicit Source(const void* q) : p(static_cast<const T*>(q)), first(element<T>(p)) {}
  T operator[](int64_t i) const {
    if constexpr (Splat)
      return first;
    else
      return element<T>(p + i);
  }
};

template <unsigned Mask, class F, class R, class... In>
void row(const void* functor, void* out, const void* const* in, int64_t n) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    auto loop = [&](auto... source) {
      const F f = *static_cast<const F*>(functor);
      R* o = static_cast<R*>(out);
      AJ_IVDEP  // an operand is the output itself or does not touch it
          for (int64_t i = 0; i < n; ++i) o[i] = f(source[i]...);
    };
    loop(Source<(Mask >> I & 1) != 0, In>(in[I])...);
  }
  (std::index_sequence_for<In...>());
}

template <class F, class R, class... In>
inline constexpr Rows rows = [] {
  Rows r = {sizeof...(In), &typed<R>, {&typed<In>...}, {&row<0, F, R, In...>}};
  if constexpr (sizeof...(In) == 2)
    r.by_mask[1] = &row<1, F, R, In...>, r.by_mask[2] = &row<2, F, R, In...>;
  if constexpr (sizeof...(In) == 3)
    r.by_mask[4] = &row<4, F, R, In...>, r.by_mask[6] = &row<6, F, R, In...>;
  return r;
}();

// out = f(in...) for every element; In are the types that f computes in.
template <class... In, class F>
void map(const aj_plan& p, const F& f) {
  using R = decltype(f(std::declval<In>()...));
  RowDriver(p, rows<F, R, In...>, &f).run();
}

// A functor may depend on the call (alpha, rounding_mode): then it is a chooser, with
//   template <class T> static void choose(const aj_call* call, auto go) { go(Functor{...}); }
template <class F, class T, class Go>
void choose(const aj_call* call, Go&& go) {
  if constexpr (requires { F::template choose<T>(call, go); })
    F::template choose<T>(call, go);
  else
    go(F{});
}

template <class F, class Set, int N>
aj_status* pointwise_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    visit<Set>(call->plan->compute, [&]<class T>() {
      choose<F, T>(call, [&](auto f) {
        if constexpr (N == 1)
          map<T>(*call->plan, f);
        else if constexpr (N == 2)
          map<T, T>(*call->plan, f);
        else
          map<T, T, T>(*call->plan, f);
      });
    });
  });
}

constexpr uint32_t kInner = AJ_KERNEL_INNER | AJ_KERNEL_CASTS;
template <class F, class Set>
inline constexpr Spec unary = {&pointwise_kernel<F, Set, 1>, Set::mask, kInner};
template <class F, class Set>
inline constexpr Spec binary = {&pointwise_kernel<F, Set, 2>, Set::mask, kInner};
template <class F, class Set>
inline constexpr Spec ternary = {&pointwise_kernel<F, Set, 3>, Set::mask, kInner};

}  // namespace kit
}  // namespace adjoin
#endif

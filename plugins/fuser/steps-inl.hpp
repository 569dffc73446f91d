// plugins/fuser/steps-inl.hpp: the steps of one dtype, for every instruction set.
//
// A step ends with a call of the next one, which the compiler makes a jump: the tile stays in the
// eight registers that arguments are passed in. Where it makes a call of it (unoptimized code), a
// chain of a hundred steps takes some stack, no more: the walk over tiles is a loop.
#if defined(ADJOIN_PLUGINS_FUSER_STEPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_FUSER_STEPS_INL_HPP
#undef ADJOIN_PLUGINS_FUSER_STEPS_INL_HPP
#else
#define ADJOIN_PLUGINS_FUSER_STEPS_INL_HPP
#endif

#include "vector/math-inl.hpp"
#include "vector/pointwise-inl.hpp"
#include "vector/rows-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using fuser::Code;
using fuser::Frame;
using fuser::Function;
using fuser::Insn;
using fuser::Operand;
using fuser::Steps;

#define AJ_TILE_OF(V) V r0, V r1, V r2, V r3, V r4, V r5, V r6, V r7
#define AJ_TILE r0, r1, r2, r3, r4, r5, r6, r7
#define AJ_EACH(DO) DO(r0, 0) DO(r1, 1) DO(r2, 2) DO(r3, 3) DO(r4, 4) DO(r5, 5) DO(r6, 6) DO(r7, 7)

template <class T>
struct Stepping {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Step = void (*)(const Insn*, const Frame*, int64_t i, AJ_TILE_OF(V));
  static constexpr size_t kLanes = hn::MaxLanes(D());
};
#define AJ_NEXT \
  return reinterpret_cast<typename Stepping<T>::Step>(step[1].run)(step + 1, frame, i, AJ_TILE)

template <class T>
HWY_INLINE T* place_of(const Operand& o, int64_t i) {
  return reinterpret_cast<T*>(o.at + i * o.advance);
}

// How a function takes and gives masks, which are vectors of lanes of all bits or none here.
enum class Takes { vectors, condition };
enum class Gives { vector, mask };

// Function F of N inputs, of which the At-th is in registers.
template <class T, class F, size_t N, size_t At, Takes K, Gives G>
struct Applied {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  const F f;
  const T* p[2];
  int64_t step[2];

  HWY_INLINE Applied(const Insn* s, const Frame* frame, int64_t i)
      : f(*reinterpret_cast<const F*>(s->numbers)), p{}, step{} {
    for (size_t k = 0; k + 1 < N; ++k) {
      const Operand& o = frame->operands[s->operand[k]];
      p[k] = place_of<const T>(o, i), step[k] = o.step;
    }
  }
  HWY_INLINE V other(size_t which, int64_t k) const {
    return hn::LoadU(D(), p[which] + k * step[which]);
  }
  // Input I of the function, of the k-th vector.
  template <size_t I>
  HWY_INLINE V input(V r, int64_t k) const {
    if constexpr (I == At)
      return r;
    else
      return other(I < At ? I : I - 1, k);
  }
  HWY_INLINE V operator()(V r, int64_t k) const {
    const D d;
    const auto y = [&]() HWY_ATTR {
      if constexpr (N == 1)
        return f(d, input<0>(r, k));
      else if constexpr (N == 2)
        return f(d, input<0>(r, k), input<1>(r, k));
      else if constexpr (K == Takes::condition)
        return f(d, hn::MaskFromVec(input<0>(r, k)), input<1>(r, k), input<2>(r, k));
      else
        return f(d, input<0>(r, k), input<1>(r, k), input<2>(r, k));
    }();
    if constexpr (G == Gives::mask)
      return hn::VecFromMask(d, y);
    else
      return y;
  }
};

// Short functions stand in the step once for each vector.
template <class T, class A>
void short_step(const Insn* step, const Frame* frame, int64_t i,
                AJ_TILE_OF(typename Stepping<T>::V)) {
  const A f(step, frame, i);
#define AJ_DO(r, k) r = f(r, k);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
// Long ones once, in a loop over those vectors that count.
template <class T, class A>
void long_step(const Insn* step, const Frame* frame, int64_t i,
               AJ_TILE_OF(typename Stepping<T>::V)) {
  using S = Stepping<T>;
  const typename S::D d;
  const A f(step, frame, i);
  HWY_ALIGN T x[8 * S::kLanes];
#define AJ_DO(r, k) hn::Store(r, d, x + k * S::kLanes);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  for (size_t k = 0; k < frame->vectors; ++k) {
    T* at = x + k * S::kLanes;
    hn::Store(f(hn::Load(d, at), int64_t(k)), d, at);
  }
#define AJ_DO(r, k) r = hn::Load(d, x + k * S::kLanes);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}

template <class T>
void load_step(const Insn* step, const Frame* frame, int64_t i,
               AJ_TILE_OF(typename Stepping<T>::V)) {
  const Operand& o = frame->operands[step->operand[0]];
  const T* p = place_of<const T>(o, i);
#define AJ_DO(r, k) r = hn::LoadU(typename Stepping<T>::D(), p + k * o.step);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
template <class T>
void store_step(const Insn* step, const Frame* frame, int64_t i,
                AJ_TILE_OF(typename Stepping<T>::V)) {
  const Operand& o = frame->operands[step->operand[0]];
  T* p = place_of<T>(o, i);
#define AJ_DO(r, k) hn::StoreU(r, typename Stepping<T>::D(), p + k * o.step);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
// Where one vector stands for all, the others may not have been computed.
template <class T>
void store_one_step(const Insn* step, const Frame* frame, int64_t i,
                    AJ_TILE_OF(typename Stepping<T>::V)) {
  const Operand& o = frame->operands[step->operand[0]];
  hn::StoreU(r0, typename Stepping<T>::D(), place_of<T>(o, i));
  AJ_NEXT;
}
// Past the caches; a tile begins on a line.
template <class T>
void stream_step(const Insn* step, const Frame* frame, int64_t i,
                 AJ_TILE_OF(typename Stepping<T>::V)) {
  const Operand& o = frame->operands[step->operand[0]];
  T* p = place_of<T>(o, i);
#define AJ_DO(r, k) hn::Stream(r, typename Stepping<T>::D(), p + k * o.step);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
// Tensors of bool: a byte for each element.
template <class T>
void load_mask_step(const Insn* step, const Frame* frame, int64_t i,
                    AJ_TILE_OF(typename Stepping<T>::V)) {
  const typename Stepping<T>::D d;
  const Operand& o = frame->operands[step->operand[0]];
  const bool* p = place_of<const bool>(o, i);
#define AJ_DO(r, k) r = hn::VecFromMask(d, load_mask(d, p + k * o.step));
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
template <class T>
void store_mask_step(const Insn* step, const Frame* frame, int64_t i,
                     AJ_TILE_OF(typename Stepping<T>::V)) {
  const typename Stepping<T>::D d;
  const Operand& o = frame->operands[step->operand[0]];
  bool* p = place_of<bool>(o, i);
#define AJ_DO(r, k) store_mask(d, hn::MaskFromVec(r), p + k * o.step);
  AJ_EACH(AJ_DO)
#undef AJ_DO
  AJ_NEXT;
}
template <class T>
void end_step(const Insn*, const Frame*, int64_t, AJ_TILE_OF(typename Stepping<T>::V)) {
  (void)r0, (void)r1, (void)r2, (void)r3, (void)r4, (void)r5, (void)r6, (void)r7;
}
template <class T>
void sweep(const Insn* first, const Frame* frame, int64_t lo, int64_t hi) {
  using S = Stepping<T>;
  const auto run = reinterpret_cast<typename S::Step>(first->run);
  const typename S::V z = hn::Zero(typename S::D());
  for (int64_t i = lo; i < hi; i += int64_t(8 * S::kLanes))
    run(first, frame, i, z, z, z, z, z, z, z, z);
}

// Functions of masks as they stand in registers.
struct MaskAnd {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::And(a, b);
  }
};
struct MaskOr {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Or(a, b);
  }
};
struct MaskXor {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Xor(a, b);
  }
};
struct MaskNot {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::VecFromMask(d, hn::Not(hn::MaskFromVec(x)));
  }
};
struct MaskNumber {  // 0 and 1
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::And(x, hn::Set(d, hn::TFromD<D>(1)));
  }
};
#define AJ_FUNCTOR(name, parameters, expression)  \
  struct name##_step {                            \
    template <class D, class V>                   \
    HWY_INLINE auto operator() parameters const { \
      (void)d;                                    \
      return expression;                          \
    }                                             \
  };
#define AJ_OF_ONE(name, expression) AJ_FUNCTOR(name, (D d, V x), expression)
#define AJ_OF_TWO(name, expression)                   \
  struct name##_step {                                \
    template <class D, class V>                       \
    HWY_INLINE auto operator()(D d, V a, V b) const { \
      (void)d, (void)b;                               \
      return expression;                              \
    }                                                 \
  };
AJ_SIGNS(AJ_OF_ONE)
AJ_ROOTS(AJ_OF_ONE)
AJ_LOGARITHMS(AJ_OF_ONE)
AJ_ANGLES(AJ_OF_ONE)
AJ_EXPONENTIALS(AJ_OF_ONE)
AJ_ERRORS(AJ_OF_ONE)
AJ_OF_ONE(isnan, hn::IsNaN(x))
AJ_OF_ONE(isinf, hn::IsInf(x))
AJ_OF_ONE(isfinite, hn::IsFinite(x))
AJ_ARITHMETIC(AJ_OF_TWO)
AJ_POWERS(AJ_OF_TWO)
AJ_COMPARISONS(AJ_OF_TWO)
#undef AJ_OF_ONE
#undef AJ_OF_TWO
#undef AJ_FUNCTOR

template <class T, class F, size_t N, bool Long, Takes K = Takes::vectors, Gives G = Gives::vector>
constexpr Function function_of(const char* name) {
  Function made = {name, uint8_t(N), K == Takes::condition, G == Gives::mask, {}};
  auto one = [&]<size_t At>() {
    if constexpr (At < N) {
      using A = Applied<T, F, N, At, K, G>;
      made.at[At] = reinterpret_cast<Code>(Long ? &long_step<T, A> : &short_step<T, A>);
    }
  };
  one.template operator()<0>(), one.template operator()<1>(), one.template operator()<2>();
  return made;
}

template <class T>
const Steps& steps_here() {
#define AJ_SHORT(name, expression) function_of<T, name##_step, 1, false>(#name),
#define AJ_LONG(name, expression) function_of<T, name##_step, 1, true>(#name),
#define AJ_SHORT_TWO(name, expression) function_of<T, name##_step, 2, false>(#name),
#define AJ_LONG_TWO(name, expression) function_of<T, name##_step, 2, true>(#name),
#define AJ_COMPARED(name, expression) \
  function_of<T, name##_step, 2, false, Takes::vectors, Gives::mask>(#name),
  // clang-format off
  static const Function functions[] = {
      AJ_SIGNS(AJ_SHORT) AJ_ROOTS(AJ_SHORT)
      AJ_LOGARITHMS(AJ_LONG) AJ_ANGLES(AJ_LONG) AJ_EXPONENTIALS(AJ_LONG) AJ_ERRORS(AJ_LONG)
      AJ_ARITHMETIC(AJ_SHORT_TWO) AJ_POWERS(AJ_LONG_TWO) AJ_COMPARISONS(AJ_COMPARED)
      // clang-format on
      function_of<T, isnan_step, 1, false, Takes::vectors, Gives::mask>("isnan"),
      function_of<T, isinf_step, 1, false, Takes::vectors, Gives::mask>("isinf"),
      function_of<T, isfinite_step, 1, false, Takes::vectors, Gives::mask>("isfinite"),
      function_of<T, MaskAnd, 2, false>("mask_and"),
      function_of<T, MaskOr, 2, false>("mask_or"),
      function_of<T, MaskXor, 2, false>("mask_xor"),
      function_of<T, MaskNot, 1, false>("mask_not"),
      function_of<T, MaskNumber, 1, false>("mask_number"),
      function_of<T, AddScaled<T>, 2, false>("add_scaled"),
      function_of<T, Where, 3, false, Takes::condition>("where"),
      function_of<T, Clamp, 3, false>("clamp"),
      function_of<T, Lerp, 3, true>("lerp"),
      function_of<T, AddCMul<T>, 3, false>("addcmul"),
      function_of<T, AddCDiv<T>, 3, false>("addcdiv"),
      function_of<T, LeakyRelu<T>, 1, false>("leaky_relu"),
      function_of<T, Elu<T>, 1, true>("elu"),
      function_of<T, Softplus<T>, 1, true>("softplus"),
      function_of<T, TanhSlope, 2, false>("tanh_slope"),
      function_of<T, SigmoidSlope, 2, false>("sigmoid_slope"),
      function_of<T, SiluSlope, 2, true>("silu_slope"),
      {},
  };
#undef AJ_SHORT
#undef AJ_LONG
#undef AJ_SHORT_TWO
#undef AJ_LONG_TWO
#undef AJ_COMPARED
  static const Steps steps = {sizeof(T),
                              int64_t(Stepping<T>::kLanes),
                              reinterpret_cast<Code>(&load_step<T>),
                              reinterpret_cast<Code>(&load_mask_step<T>),
                              reinterpret_cast<Code>(&store_step<T>),
                              reinterpret_cast<Code>(&store_one_step<T>),
                              reinterpret_cast<Code>(&stream_step<T>),
                              reinterpret_cast<Code>(&store_mask_step<T>),
                              reinterpret_cast<Code>(&end_step<T>),
                              functions,
                              &sweep<T>};
  return steps;
}

#undef AJ_TILE_OF
#undef AJ_TILE
#undef AJ_EACH
#undef AJ_NEXT
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

// plugins/vector/plain-inl.hpp: kernels of the kit's functors, whose loops the compiler vectorizes
// for every instruction set. Include it, after "simd.hpp", from a file of pointwise kernels; there
// `unary`, `binary` and `ternary` are those of this file, not the kit's.
#if defined(ADJOIN_PLUGINS_VECTOR_PLAIN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ADJOIN_PLUGINS_VECTOR_PLAIN_INL_HPP
#undef ADJOIN_PLUGINS_VECTOR_PLAIN_INL_HPP
#else
#define ADJOIN_PLUGINS_VECTOR_PLAIN_INL_HPP
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {

// Bools are read and written as bytes, which gcc vectorizes and bools it does not.
template <bool Splat, class T>
struct PlainSource : kit::Source<Splat, T> {
  using kit::Source<Splat, T>::Source;
};
template <>
struct PlainSource<false, bool> {
  const uint8_t* p;
  explicit PlainSource(const void* q) : p(static_cast<const uint8_t*>(q)) {}
  HWY_INLINE bool operator[](int64_t i) const { return p[i] != 0; }
};
template <class F, class R, class... S>
HWY_INLINE void plain_loop(const F f, R* HWY_RESTRICT out, int64_t n, const S... source) {
  using Kept = std::conditional_t<std::is_same_v<R, bool>, uint8_t, R>;
  Kept* to = reinterpret_cast<Kept*>(out);
  AJ_IVDEP
  for (int64_t i = 0; i < n; ++i) to[i] = Kept(f(source[i]...));
}
template <unsigned Mask, class F, class R, class... In, size_t... I>
HWY_INLINE void plain_row_of(const F& f, R* out, const void* const* in, int64_t n,
                             std::index_sequence<I...>) {
  plain_loop(f, out, n, PlainSource<(Mask >> I & 1) != 0, In>(in[I])...);
}
template <unsigned Mask, class F, class R, class... In>
void plain_row(const void* functor, void* out, const void* const* in, int64_t n) {
  plain_row_of<Mask, F, R, In...>(*static_cast<const F*>(functor), static_cast<R*>(out), in, n,
                                  std::index_sequence_for<In...>());
}

// Loops alone: whose dtypes they serve says who asks for them.
template <class F, class R, class... In>
constexpr PlainLoops make_plain_loops() {
  PlainLoops l = {{&plain_row<0, F, R, In...>}};
  if constexpr (sizeof...(In) == 2) l.by_mask[1] = &plain_row<1, F, R, In...>;
  if constexpr (sizeof...(In) > 1) l.by_mask[2] = &plain_row<2, F, R, In...>;
  if constexpr (sizeof...(In) == 3)
    l.by_mask[4] = &plain_row<4, F, R, In...>, l.by_mask[6] = &plain_row<6, F, R, In...>;
  return l;
}
template <class Signature>
struct PlainLoopsOf;
template <class F, class R, class... In>
struct PlainLoopsOf<R(F, In...)> {
  static constexpr PlainLoops loops = make_plain_loops<F, R, In...>();
};
template <class Signature>
const PlainLoops* plain_loops() {
  return &PlainLoopsOf<Signature>::loops;
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

template <class F, class... Of>
constexpr bool is_one_of = (std::is_same_v<F, Of> || ...);
// Functors that give signed and unsigned numbers of one size the same bits: one loop serves both.
template <class F>
constexpr bool kSignless =
    is_one_of<F, scalar::Add, scalar::Sub, scalar::Mul, scalar::Neg, scalar::Square,
              scalar::BitwiseAnd, scalar::BitwiseOr, scalar::BitwiseXor, scalar::BitwiseNot,
              scalar::ShiftLeft, scalar::Eq, scalar::Ne, scalar::LogicalNot, scalar::LogicalXor,
              scalar::IsNan, scalar::IsInf, scalar::IsFinite, scalar::Where>;
template <class F, class T>
constexpr auto looped_as() {
  if constexpr (kSignless<F> && is_integer<T> && !std::is_same_v<T, bool>)
    return std::make_unsigned_t<T>();
  else
    return T();
}

// out = f(in...) for every element; In are the types that f computes in.
template <class... In, class F>
void plain_map(const aj_plan& p, const F& f) {
  using R = decltype(f(decltype(looped_as<F, In>())()...));
  using Signature = R(F, decltype(looped_as<F, In>())...);
  static constexpr RowTypes types = {
      sizeof...(In), &typed<decltype(f(std::declval<In>()...))>, {&typed<In>...}};
  run_plain(p, types, *AJ_SIMD(plain_loops<Signature>)(), &f);
}

template <class F, class Set, int N>
aj_status* plain_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    visit<Set>(call->plan->compute, [&]<class T>() {
      choose<F, T>(call, [&](auto f) {
        if constexpr (N == 1)
          plain_map<T>(*call->plan, f);
        else if constexpr (N == 2)
          plain_map<T, T>(*call->plan, f);
        else
          plain_map<T, T, T>(*call->plan, f);
      });
    });
  });
}
template <class F, class Set>
inline constexpr Spec unary = {&plain_kernel<F, Set, 1>, Set::mask, kInner};
template <class F, class Set>
inline constexpr Spec binary = {&plain_kernel<F, Set, 2>, Set::mask, kInner};

}  // namespace adjoin::cpu
#endif
#endif

// plugins/gpu/kernels/reduce.cuh: reductions over a plan. Which elements are joined in which order
// depends on the shape and the layout alone.
#include <limits>
#include <tuple>

#include "../block.cuh"
#include "../element.cuh"
#include "../pack.cuh"
#include "../reducers.cuh"

namespace adjoin::gpu {
namespace {

constexpr int kReduceDims = 24;
constexpr int64_t kChunk = 16384;      // elements of a block's task
constexpr int64_t kColumnChunk = 512;  // of a thread's

template <class R>
struct Fold {
  using State = typename R::State;
  R reducer;
  const char* in;
  char* out[2];
  int32_t in_dtype, out_dtype[2];
  int32_t nreduced, ndim, nout;
  int64_t n, chunk;
  Divisor kept, chunks;
  Divisor sizes[kReduceDims];
  int64_t in_strides[kReduceDims], out_strides[2][kReduceDims];
  State* parts;     // of chunks > 1: [kept][chunks]
  bool one_stride;  // what is joined lies in steps of one size

  AJ_HD static int64_t place(const Divisor* sizes, const int64_t* strides, int lo, int hi,
                             int64_t i) {
    int64_t at = 0;
    for (int d = lo; d + 1 < hi; ++d) at += sizes[d].split(&i) * strides[d];
    return lo < hi ? at + i * strides[hi - 1] : 0;
  }
  template <class V>
  AJ_HD void put(int o, int64_t output, V v) const {
    store<V>(out[o] + place(sizes, out_strides[o], nreduced, ndim, output), out_dtype[o], v);
  }
  AJ_HD void finish(int64_t output, const State& s) const {
    if constexpr (R::kIndexed) {
      if (nout == 2) put(0, output, s.value);
      if (nout == 2 || R::kIndexOnly)
        put(nout - 1, output, int64_t(s.index));
      else
        put(0, output, s.value);
    } else {
      put(0, output, reducer.finish(s, n));
    }
  }
};

template <class R>
struct JoinBy {
  const R& reducer;
  using State = typename R::State;
  AJ_HD State operator()(State a, const State& b) const {
    reducer.join(a, b);
    return a;
  }
};

// A norm of another order than 0, 1, 2 and infinity calls a function for each element: what is read
// ahead would not stay in registers.
template <class R>
inline constexpr bool kMayCall = false;
template <class T>
inline constexpr bool kMayCall<NormOf<T>> = true;
template <class R>
inline constexpr bool kReadsAhead = true;
template <>  // its absolute value is a call already
inline constexpr bool kReadsAhead<NormOf<Complex<double>>> = false;

// Elements of S from i on, four loads under way; returns where it has stopped.
template <class S, class R>
AJ_DEVICE int64_t add_fours(const Fold<R>& p, typename R::State& s, const char* from, int64_t i,
                            int64_t hi, int64_t step) {
  using T = typename R::T;
  if constexpr (kMayCall<R>)
    if (p.reducer.calls()) return i;
  auto add = [&](S x, int64_t at) {
    if constexpr (kMayCall<R>)
      p.reducer.add_plain(s, widened<T>(x));
    else
      p.reducer.add(s, widened<T>(x), at);
  };
  int64_t stride = p.nreduced ? p.in_strides[0] : 0, hop = step * stride;
  for (const char* at = from + i * stride; i + 3 * step < hi; i += 4 * step, at += 4 * hop) {
    S a = element<S>(at), b = element<S>(at + hop), c = element<S>(at + 2 * hop),
      d = element<S>(at + 3 * hop);
    add(a, i);
    add(b, i + step);
    add(c, i + 2 * step);
    add(d, i + 3 * step);
  }
  return i;
}

template <bool Wide, class R>
AJ_GLOBAL void fold_kernel(AJ_ARGUMENT Fold<R> p) {
  using Own = Team<Wide>;
  using T = typename R::T;
  for (int64_t task = Own::task(); task < p.kept.size * p.chunks.size; task += Own::tasks_step()) {
    // A thread's neighbours take neighbouring outputs, so that they read neighbouring memory.
    Quotient q = (Wide ? p.chunks : p.kept).divided(task);
    int64_t output = Wide ? q.whole : q.rest, part = Wide ? q.rest : q.whole;
    const char* from = p.in + p.place(p.sizes, p.in_strides, p.nreduced, p.ndim, output);
    int64_t lo = part * p.chunk, hi = lo + p.chunk < p.n ? lo + p.chunk : p.n;
    auto s = p.reducer.start();
    int64_t i = lo + Own::first();
    if constexpr (kReadsAhead<R>)
      if (p.one_stride && p.in_dtype == DTypeOf<T>::index)
        i = add_fours<T>(p, s, from, i, hi, Own::step());
    if constexpr (std::is_same_v<T, float>) {
      if (p.one_stride && p.in_dtype == DTypeOf<Half>::index)
        i = add_fours<Half>(p, s, from, i, hi, Own::step());
      if (p.one_stride && p.in_dtype == DTypeOf<BFloat16>::index)
        i = add_fours<BFloat16>(p, s, from, i, hi, Own::step());
    }
    for (; i < hi; i += Own::step())
      p.reducer.add(s, load<T>(from + p.place(p.sizes, p.in_strides, 0, p.nreduced, i), p.in_dtype),
                    i);
    s = Own::join(s, JoinBy<R>{p.reducer});
    if (!Own::leads()) continue;
    if (p.chunks.size > 1)
      p.parts[output * p.chunks.size + part] = s;
    else
      p.finish(output, s);
  }
}
template <bool Wide, class R>
AJ_GLOBAL void parts_kernel(AJ_ARGUMENT Fold<R> p) {
  using Own = Team<Wide>;
  for (int64_t output = Own::task(); output < p.kept.size; output += Own::tasks_step()) {
    auto s = p.reducer.start();
    const auto* from = p.parts + output * p.chunks.size;
    int64_t i = Own::first(), step = Own::step();
    for (; i + 3 * step < p.chunks.size; i += 4 * step) {
      auto a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
      p.reducer.join(s, a);
      p.reducer.join(s, b);
      p.reducer.join(s, c);
      p.reducer.join(s, d);
    }
    for (; i < p.chunks.size; i += step) p.reducer.join(s, from[i]);
    s = Own::join(s, JoinBy<R>{p.reducer});
    if (Own::leads()) p.finish(output, s);
  }
}

template <class R>
void reduce(const aj_call* call, const R& reducer) {
  const aj_plan& plan = *call->plan;
  const aj_operand& in = plan.ops[plan.nout];
  Fold<R> p = {};
  p.reducer = reducer;
  p.in = reach(static_cast<const char*>(in.data));
  p.in_dtype = index_of(in.dtype);
  p.nout = int32_t(plan.nout);
  p.n = 1;
  int64_t kept = 1;
  for (uint32_t o = 0; o < plan.nout; ++o) {
    p.out[o] = reach(static_cast<char*>(plan.ops[o].data));
    p.out_dtype[o] = index_of(plan.ops[o].dtype);
  }
  for (uint32_t d = 0; d < plan.ndim; ++d) {
    (d < plan.nreduced ? p.n : kept) *= plan.sizes[d];
    if (plan.sizes[d] == 1) continue;
    if (p.ndim == kReduceDims)
      raise(AJ_UNIMPLEMENTED, "a reduction over more than ", kReduceDims,
            " dimensions that cannot be joined; make the input contiguous");
    p.sizes[p.ndim] = plan.sizes[d];
    p.in_strides[p.ndim] = in.strides[d];
    for (uint32_t o = 0; o < plan.nout; ++o) p.out_strides[o][p.ndim] = plan.ops[o].strides[d];
    p.ndim++;
    if (d < plan.nreduced) p.nreduced++;
  }
  if (kept == 0) return;
  p.kept = kept;
  p.one_stride = p.nreduced <= 1;
  bool columns = p.nreduced < p.ndim && p.nreduced > 0 && kept >= 32 &&
                 p.in_strides[p.nreduced] == bytes_of(in.dtype) &&
                 p.in_strides[0] != p.in_strides[p.nreduced];
  bool wide = p.n > kNarrow && !columns;
  p.chunk = wide ? kChunk : kColumnChunk;
  p.chunks = std::max<int64_t>(1, (p.n + p.chunk - 1) / p.chunk);
  int64_t chunks = p.chunks.size;
  Buffer<typename R::State> parts(call, chunks > 1 ? kept * chunks : 1);
  p.parts = parts.data();
  launch_teams<&fold_kernel<false, R>, &fold_kernel<true, R>>(call, kept * chunks, wide, p);
  if (chunks > 1)
    launch_teams<&parts_kernel<false, R>, &parts_kernel<true, R>>(call, kept, chunks > kNarrow, p);
}

// Computes in the plan's dtype.
template <class Set, template <class> class R, class... Extra>
void reduce_as(aj_call* call, Extra... extra) {
  visit<Set>(call->plan->compute, [&]<class T>() {
    if constexpr (sizeof...(Extra) == 0)
      reduce(call, R<T>{});
    else
      reduce(call, R<T>{{}, extra...});
  });
}

template <class Set, template <class> class R>
aj_status* plain(void*, aj_call* call) {
  return guard(call, [&] { reduce_as<Set, R>(call); });
}

aj_status* var(void*, aj_call* call) {
  return guard(call, [&] {
    double correction = Args(call).none(2) ? 1 : Args(call).real(2);
    reduce_as<floating_complex, VarOf>(call, correction);
  });
}

aj_status* vector_norm(void*, aj_call* call) {
  return guard(call, [&] { reduce_as<floating_complex, NormOf>(call, Args(call).real(1)); });
}

template <class T>
using Maximum = ExtremeOf<T, scalar::Gt, false>;
template <class T>
using Minimum = ExtremeOf<T, scalar::Lt, false>;
template <class T>
using FirstMaximum = ExtremeOf<T, scalar::Gt, true>;
template <class T>
using FirstMinimum = ExtremeOf<T, scalar::Lt, true>;

template <bool All>
aj_status* truth(void*, aj_call* call) {
  return guard(call, [&] { reduce(call, TruthOf<All>{}); });
}

}  // namespace

AJ_KERNELS(reduce_kernels) = {
    {"sum", {&plain<all_types, SumOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {"mean", {&plain<floating_complex, MeanOf>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"prod", {&plain<all_types, ProdOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {"var", {&var, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"vector_norm", {&vector_norm, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"amax", {&plain<reals_bool, Maximum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"amin", {&plain<reals_bool, Minimum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"max.dim", {&plain<reals_bool, Maximum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"min.dim", {&plain<reals_bool, Minimum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmax", {&plain<reals_bool, FirstMaximum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmin", {&plain<reals_bool, FirstMinimum>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"all", {&truth<true>, 0, AJ_KERNEL_CASTS}},
    {"any", {&truth<false>, 0, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

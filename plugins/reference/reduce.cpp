// plugins/reference/reduce.cpp: reductions and scans by plain loops. Sums of floats are kept in
// double, so they hardly round.
#include "element.hpp"

namespace adjoin::reference {
namespace {

// Calls begin() / step(element, index) / end(output pointers) for every output.
template <class T, class Begin, class Step, class End>
void for_outputs(const aj_plan& p, Begin begin, Step step, End end) {
  int64_t n = 1, kept = 1;
  for (uint32_t d = 0; d < p.ndim; ++d) (d < p.nreduced ? n : kept) *= p.sizes[d];
  const aj_operand& in = p.ops[p.nout];
  Get<T> get = getter<T>(in.dtype);
  auto offset = [&](const aj_operand& o, uint32_t d, uint32_t last, int64_t i) {
    int64_t at = 0;
    for (; d < last; i /= p.sizes[d++]) at += i % p.sizes[d] * o.strides[d];
    return at;
  };
  for (int64_t k = 0; k < kept; ++k) {
    begin();
    const char* from = static_cast<const char*>(in.data) + offset(in, p.nreduced, p.ndim, k);
    for (int64_t i = 0; i < n; ++i) step(get(from + offset(in, 0, p.nreduced, i)), i);
    char* to[2] = {};
    for (uint32_t o = 0; o < p.nout; ++o)
      to[o] = static_cast<char*>(p.ops[o].data) + offset(p.ops[o], p.nreduced, p.ndim, k);
    end(to, n);
  }
}

template <class T>
using Precise = std::conditional_t<std::is_same_v<T, float>, double,
                                   std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;

// F: start value, and f(accumulated, element).
template <class Set, class F>
aj_status* fold(aj_call* call, F f) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit_math<Set>(p.compute, [&]<class T>() {
      using A = Precise<T>;
      A sum;
      Put<A> put = putter<A>(p.ops[0].dtype);
      for_outputs<A>(
          p, [&] { sum = f.template start<A>(); }, [&](A x, int64_t) { sum = f(sum, x); },
          [&](char** to, int64_t n) { put(to[0], f.finish(sum, n)); });
    });
  });
}

struct Plain {
  template <class A>
  A finish(A sum, int64_t) const {
    return sum;
  }
};
struct SumOf : Plain {
  template <class A>
  A start() const {
    return A(0);
  }
  template <class A>
  A operator()(A sum, A x) const {
    return scalar::Add()(sum, x);
  }
};
struct MeanOf : SumOf {
  template <class A>
  A finish(A sum, int64_t n) const {
    return sum / A(Real<A>(n));
  }
};
struct ProdOf : Plain {
  template <class A>
  A start() const {
    return A(1);
  }
  template <class A>
  A operator()(A sum, A x) const {
    return scalar::Mul()(sum, x);
  }
};

aj_status* sum(void*, aj_call* call) { return fold<all_types>(call, SumOf()); }
aj_status* mean(void*, aj_call* call) { return fold<floating_complex>(call, MeanOf()); }
aj_status* prod(void*, aj_call* call) { return fold<all_types>(call, ProdOf()); }

template <bool Root>
aj_status* spread(void*, aj_call* call) {  // Welford's recurrence
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double correction = Args(call).none(2) ? 1 : Args(call).real(2);
    visit_math<floating_complex>(p.compute, [&]<class T>() {
      using A = Precise<T>;
      A mean;
      double squares, count;
      Put<double> put = putter<double>(p.ops[0].dtype);
      for_outputs<A>(
          p, [&] { mean = A(0), squares = count = 0; },
          [&](A x, int64_t) {
            A before = x - mean;
            mean = mean + before / A(Real<A>(++count));
            A after = x - mean;
            if constexpr (is_complex<A>)
              squares += before.re * after.re + before.im * after.im;
            else
              squares += before * after;
          },
          [&](char** to, int64_t n) {
            const double variance = n == 0 ? NAN : squares / std::max(0.0, double(n) - correction);
            put(to[0], Root ? std::sqrt(variance) : variance);
          });
    });
  });
}

aj_status* vector_norm(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double ord = Args(call).real(1), sum;
    visit_math<floating_complex>(p.compute, [&]<class T>() {
      Put<double> put = putter<double>(p.ops[0].dtype);
      for_outputs<T>(
          p, [&] { sum = ord == -INFINITY ? INFINITY : 0; },
          [&](T element, int64_t) {
            double x = double(scalar::Abs()(element));
            if (ord == INFINITY)
              sum = scalar::Maximum()(sum, x);
            else if (ord == -INFINITY)
              sum = scalar::Minimum()(sum, x);
            else if (ord == 0)
              sum += x != 0;
            else
              sum += std::pow(x, ord);
          },
          [&](char** to, int64_t) {
            put(to[0], ord == 0 || std::isinf(ord) ? sum : std::pow(sum, 1 / ord));
          });
    });
  });
}

template <class Better, bool Values, bool Indices>
aj_status* extreme(void*, aj_call* call) {  // the first of the best; a NaN is best
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit_math<reals_bool>(p.compute, [&]<class T>() {
      T best = T(0);
      int64_t where;
      Put<T> put = Values ? putter<T>(p.ops[0].dtype) : nullptr;
      for_outputs<T>(
          p, [&] { where = -1; },
          [&](T x, int64_t i) {
            if (where < 0 || (!scalar::is_nan(best) && (scalar::is_nan(x) || Better()(x, best))))
              best = x, where = i;
          },
          [&](char** to, int64_t) {
            if (Values) put(to[0], best);
            if (Indices) *reinterpret_cast<int64_t*>(to[Values]) = where;
          });
    });
  });
}

template <bool All>
aj_status* truth(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    bool value;
    Put<bool> put = putter<bool>(p.ops[0].dtype);
    for_outputs<bool>(
        p, [&] { value = All; }, [&](bool x, int64_t) { value = All ? value && x : value || x; },
        [&](char** to, int64_t) { put(to[0], value); });
  });
}

template <class F>
aj_status* scan(void*, aj_call* call) {  // dimension 0 of the plan is the scanned one
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit_math<all_types>(p.compute, [&]<class T>() {
      using A = Precise<T>;
      Get<A> get = getter<A>(p.ops[1].dtype);
      Put<A> put = putter<A>(p.ops[0].dtype);
      for_rows(p, [&](char** at, int64_t n) {
        A sum = F().template start<A>();
        for (int64_t i = 0; i < n; ++i) {
          sum = F()(sum, get(at[1] + i * p.ops[1].strides[0]));
          put(at[0] + i * p.ops[0].strides[0], sum);
        }
      });
    });
  });
}

}  // namespace

AJ_KERNELS(reduce_kernels) = {
    {"sum", {&sum, all_types::mask, AJ_KERNEL_CASTS}},
    {"mean", {&mean, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"prod", {&prod, all_types::mask, AJ_KERNEL_CASTS}},
    {"var", {&spread<false>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"std", {&spread<true>, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"vector_norm", {&vector_norm, floating_complex::mask, AJ_KERNEL_CASTS}},
    {"amax", {&extreme<scalar::Gt, true, false>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"amin", {&extreme<scalar::Lt, true, false>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"max.dim", {&extreme<scalar::Gt, true, true>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"min.dim", {&extreme<scalar::Lt, true, true>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmax", {&extreme<scalar::Gt, false, true>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"argmin", {&extreme<scalar::Lt, false, true>, reals_bool::mask, AJ_KERNEL_CASTS}},
    {"all", {&truth<true>, 0, AJ_KERNEL_CASTS}},
    {"any", {&truth<false>, 0, AJ_KERNEL_CASTS}},
    {"cumsum", {&scan<SumOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {"cumprod", {&scan<ProdOf>, all_types::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::reference

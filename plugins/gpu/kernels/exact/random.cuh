// plugins/gpu/kernels/exact/random.cuh: numbers of the shared generator: element i takes its word
// of its block, so they are those of every other backend.
#include "../../draw.cuh"
#include "../../element.cuh"

namespace adjoin::gpu {
namespace {

// Writes f(logical index) everywhere. The plan is in logical order.
template <class F, class... In>
struct Numbers {
  F f;
  Walk<1 + sizeof...(In)> walk;
};
template <class F, class... In>
AJ_GLOBAL void numbers_kernel(AJ_ARGUMENT Numbers<F, In...> p) {
  F f = p.f;
  if constexpr (requires { f.philox; }) f.philox = placed(f.philox);
  int64_t step = int64_t(blocks_x()) * threads_x();
  int64_t offset[1 + sizeof...(In)];
  for (int64_t i = int64_t(block_x()) * threads_x() + thread_x(); i < p.walk.numel; i += step) {
    p.walk.locate(i, offset);
    auto write = [&](auto x) { store(p.walk.data[0] + offset[0], p.walk.dtype[0], x); };
    if constexpr (sizeof...(In) == 0)
      write(f(uint64_t(p.walk.first + i)));
    else
      write(f(uint64_t(p.walk.first + i), p.walk.template get<In...>(1, offset[1])));
  }
}
template <class... In, class F>
void numbers(const aj_call* call, const F& f) {
  for_walks<1 + sizeof...(In)>(*call->plan, [&](const Walk<1 + sizeof...(In)>& w) {
    launch_threads<&numbers_kernel<F, In...>>(call, w.numel, 4, Numbers<F, In...>{f, w});
  });
}

template <class T, bool Normal>
struct Floats {
  Philox philox;
  T by, start;
  AJ_HD T operator()(uint64_t i) const {
    T values[4];
    Philox::Block block = philox(i / kPerBlock<T>);
    Normal ? normal_block(block, values) : uniform_block(block, values);
    return scaled(values[i % kPerBlock<T>], by, start);
  }
};
template <bool Normal>
aj_status* fill_floats(void*, aj_call* call) {
  return guard(call, [&] {
    double a = Args(call).real(1), b = Args(call).real(2);  // low, high or mean, std
    visit<stored_floating>(call->plan->ops[0].dtype, [&]<class S>() {
      using T = Math<S>;
      numbers(call, Floats<T, Normal>{generator(call, 3), Normal ? T(b) : T(b) - T(a), T(a)});
    });
  });
}

struct Integers {
  Philox philox;
  uint64_t low, range;
  AJ_HD int64_t operator()(uint64_t i) const { return int64_t(low + integer_of(philox, i, range)); }
};
aj_status* fill_integers(void*, aj_call* call) {
  return guard(call, [&] {
    auto low = uint64_t(Args(call).integer(1)), high = uint64_t(Args(call).integer(2));
    numbers(call, Integers{generator(call, 3), low, high - low});
  });
}

template <class T>
struct Steps {
  T start, step;
  AJ_HD T operator()(uint64_t i) const {
    return scalar::Add()(start, scalar::Mul()(step, cast<T>(int64_t(i))));
  }
};
aj_status* fill_steps(void*, aj_call* call) {
  return guard(call, [&] {
    visit<stored>(call->plan->ops[0].dtype, [&]<class S>() {
      using T = std::conditional_t<is_integer<S>, int64_t,
                                   std::conditional_t<is_complex<S>, Complex128, double>>;
      numbers(call, Steps<T>{number<T>(Args(call)[1]), number<T>(Args(call)[2])});
    });
  });
}

template <class T>
struct Drop {
  Philox philox;
  float drop;
  T scale;
  AJ_HD T operator()(uint64_t i, T x) const {
    return uniform_of(philox(i / 4).word[i % 4]) >= drop ? x * scale : T(0);
  }
};
aj_status* dropout(void*, aj_call* call) {
  return guard(call, [&] {
    double drop = Args(call).real(1);
    visit<floating_complex>(call->plan->compute, [&]<class T>() {
      T scale = T(Real<T>(drop < 1 ? 1 / (1 - drop) : 0));
      numbers<T>(call, Drop<T>{generator(call, 2), float(drop), scale});
    });
  });
}

}  // namespace

AJ_KERNELS(random_kernels) = {
    {"uniform_philox_", {&fill_floats<false>, stored_floating::mask, AJ_KERNEL_CASTS}},
    {"normal_philox_", {&fill_floats<true>, stored_floating::mask, AJ_KERNEL_CASTS}},
    {"randint_philox_", {&fill_integers, 0, AJ_KERNEL_CASTS}},
    {"arange_fill_", {&fill_steps, 0, AJ_KERNEL_CASTS}},
    {"dropout_philox", {&dropout, floating_complex::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

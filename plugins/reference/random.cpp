// plugins/reference/random.cpp: numbers of the shared generator, one element after the other.
#include "element.hpp"

namespace adjoin::reference {
namespace {

Philox generator(const aj_call* call, uint32_t seed) {
  return {uint64_t(Args(call).integer(seed)), uint64_t(Args(call).integer(seed + 1))};
}

template <bool Normal>
aj_status* fill_floats(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    Philox philox = generator(call, 3);
    double a = Args(call).real(1), b = Args(call).real(2);  // low, high or mean, std
    visit_math<stored_floating>(p.ops[0].dtype, [&]<class T>() {
      Put<T> put = putter<T>(p.ops[0].dtype);
      for_elements(p, [&](char** at, int64_t i) {
        uint64_t element = uint64_t(p.first_index + i);
        T values[4];
        Philox::Block block = philox(element / kPerBlock<T>);
        Normal ? normal_block(block, values) : uniform_block(block, values);
        T x = values[element % kPerBlock<T>];
        put(at[0], scaled(x, Normal ? T(b) : T(b) - T(a), T(a)));
      });
    });
  });
}

aj_status* fill_integers(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    Philox philox = generator(call, 3);
    int64_t low = Args(call).integer(1), high = Args(call).integer(2);
    Put<int64_t> put = putter<int64_t>(p.ops[0].dtype);
    for_elements(p, [&](char** at, int64_t i) {
      put(at[0], int64_t(uint64_t(low) + integer_of(philox, uint64_t(p.first_index + i),
                                                    uint64_t(high) - uint64_t(low))));
    });
  });
}

aj_status* fill_steps(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    visit<stored>(p.ops[0].dtype, [&]<class S>() {
      using T = std::conditional_t<is_integer<S>, int64_t,
                                   std::conditional_t<is_complex<S>, Complex128, double>>;
      T start = number<T>(Args(call)[1]), step = number<T>(Args(call)[2]);
      Put<T> put = putter<T>(p.ops[0].dtype);
      for_elements(p, [&](char** at, int64_t i) {
        put(at[0], scalar::Add()(start, scalar::Mul()(step, cast<T>(p.first_index + i))));
      });
    });
  });
}

aj_status* dropout(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double drop = Args(call).real(1);
    Philox philox = generator(call, 2);
    visit_math<Join<stored_floating, complexes>>(p.compute, [&]<class T>() {
      Get<T> get = getter<T>(p.ops[1].dtype);
      Put<T> put = putter<T>(p.ops[0].dtype);
      T scale = T(Real<T>(drop < 1 ? 1 / (1 - drop) : 0));
      for_elements(p, [&](char** at, int64_t i) {
        uint64_t element = uint64_t(p.first_index + i);
        bool keep = uniform_of(philox(element / 4).word[element % 4]) >= float(drop);
        put(at[0], keep ? get(at[1]) * scale : T(0));
      });
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

}  // namespace adjoin::reference

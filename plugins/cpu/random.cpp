// plugins/cpu/random.cpp: numbers of the shared generator, in blocks.
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/philox.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

Philox generator(const aj_call* call, uint32_t seed) {
  return {uint64_t(Args(call).integer(seed)), uint64_t(Args(call).integer(seed + 1))};
}

// Calls make(values, first element, n) for blocks of the plan and stores what it made.
template <class T, class Make>
void fill_blocks(const aj_plan& p, Make make) {
  T values[kBlock];
  int64_t step = row_stride(p, 0), i = p.first_index;
  for_rows(p, [&](char** at, int64_t n) {
    for (int64_t lo = 0; lo < n; lo += kBlock) {
      int64_t m = std::min(kBlock, n - lo);
      make(values, i + lo, m);
      Convert<T>::store(at[0] + lo * step, p.ops[0].dtype, step, values, m);
    }
    i += n;
  });
}

// Calls use(j, block's value) for elements first + j, j < n, drawing each block of `per` elements
// once.
template <int per, class Draw>
void walk_blocks(int64_t first, int64_t n, Draw draw) {
  for (int64_t j = 0; j < n;) {
    int64_t in = (first + j) % per, m = std::min<int64_t>(per - in, n - j);
    draw(uint64_t(first + j) / per, in, j, m);
    j += m;
  }
}

template <bool Normal>
aj_status* fill_floats(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    Philox philox = generator(call, 3);
    double a = Args(call).real(1), b = Args(call).real(2);
    visit<stored_floating>(p.ops[0].dtype, [&]<class S>() {
      using T = Math<S>;
      fill_blocks<T>(p, [&](T* out, int64_t first, int64_t n) {
        walk_blocks<kPerBlock<T>>(first, n, [&](uint64_t block, int64_t in, int64_t j, int64_t m) {
          T values[4];
          Normal ? normal_block(philox(block), values) : uniform_block(philox(block), values);
          for (int64_t k = 0; k < m; ++k)
            out[j + k] =
                Normal ? values[in + k] * T(b) + T(a) : values[in + k] * (T(b) - T(a)) + T(a);
        });
      });
    });
  });
}

aj_status* fill_integers(void*, aj_call* call) {
  return guard(call, [&] {
    Philox philox = generator(call, 3);
    uint64_t low = uint64_t(Args(call).integer(1)), range = uint64_t(Args(call).integer(2)) - low;
    fill_blocks<int64_t>(*call->plan, [&](int64_t* out, int64_t first, int64_t n) {
      if (range > (1u << 24)) {
        for (int64_t j = 0; j < n; ++j)
          out[j] = int64_t(low + integer_of(philox, uint64_t(first + j), range));
        return;
      }
      walk_blocks<4>(first, n, [&](uint64_t block, int64_t in, int64_t j, int64_t m) {
        Philox::Block words = philox(block);
        for (int64_t k = 0; k < m; ++k)
          out[j + k] = int64_t(low + (words.word[in + k] * range >> 32));
      });
    });
  });
}

aj_status* fill_steps(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    auto fill = [&]<class T>(T) {
      T start = number<T>(Args(call)[1]), step = number<T>(Args(call)[2]);
      fill_blocks<T>(p, [&](T* out, int64_t first, int64_t n) {
        for (int64_t j = 0; j < n; ++j)
          out[j] = scalar::Add()(start, scalar::Mul()(step, cast<T>(first + j)));
      });
    };
    switch (p.ops[0].dtype.code) {
      case kDLFloat:
      case kDLBfloat:
        return fill(0.0);
      case kDLComplex:
        return fill(Complex128(0));
      default:
        return fill(int64_t(0));
    }
  });
}

aj_status* dropout(void*, aj_call* call) {
  return guard(call, [&] {
    const aj_plan& p = *call->plan;
    double drop = Args(call).real(1);
    Philox philox = generator(call, 2);
    visit<floating_complex>(p.compute, [&]<class T>() {
      T values[kBlock], scale = T(Real<T>(drop < 1 ? 1 / (1 - drop) : 0));
      int64_t to = row_stride(p, 0), from = row_stride(p, 1), i = p.first_index;
      for_rows(p, [&](char** at, int64_t n) {
        for (int64_t lo = 0; lo < n; lo += kBlock) {
          int64_t m = std::min(kBlock, n - lo);
          Convert<T>::load(values, at[1] + lo * from, p.ops[1].dtype, from, m);
          walk_blocks<4>(i + lo, m, [&](uint64_t block, int64_t in, int64_t j, int64_t count) {
            Philox::Block words = philox(block);
            for (int64_t k = 0; k < count; ++k)
              values[j + k] =
                  uniform_of(words.word[in + k]) >= float(drop) ? values[j + k] * scale : T(0);
          });
          Convert<T>::store(at[0] + lo * to, p.ops[0].dtype, to, values, m);
        }
        i += n;
      });
    });
  });
}

}  // namespace

const Kernel random_kernels[] = {
    {"uniform_philox_", {&fill_floats<false>, stored_floating::mask, kInner}},
    {"normal_philox_", {&fill_floats<true>, stored_floating::mask, kInner}},
    {"randint_philox_", {&fill_integers, 0, kInner}},
    {"arange_fill_", {&fill_steps, 0, kInner}},
    {"dropout_philox", {&dropout, floating_complex::mask, kInner}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

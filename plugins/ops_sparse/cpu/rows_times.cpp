// plugins/ops_sparse/cpu/rows_times.cpp: a matrix of rows times a strided one, and inner products
// at its places, as vector code.
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops_sparse/cpu/rows_times.cpp"
#include "vector/simd.hpp"

#ifndef ADJOIN_PLUGINS_OPS_SPARSE_CPU_ROWS_TIMES_ONCE
#define ADJOIN_PLUGINS_OPS_SPARSE_CPU_ROWS_TIMES_ONCE
namespace adjoin::cpu {
namespace {

template <class T, class I>
struct Rows {
  const I *begins, *columns;
  const T *values, *dense;
  T* out;
  int64_t width, count;
};

}  // namespace
}  // namespace adjoin::cpu
#endif

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// N vectors of a row's columns, from column `at` on; all elements of the row one after the other.
template <int N, class T, class I, class D>
HWY_INLINE void columns_of(D d, const Rows<T, I>& m, int64_t row, int64_t at) {
  constexpr int64_t L = HWY_LANES(T);
  hn::Vec<D> sum[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) sum[j] = hn::Zero(d);
  for (int64_t k = m.begins[row]; k < m.begins[row + 1]; ++k) {
    const auto x = hn::Set(d, m.values[k]);
    const T* from = m.dense + int64_t(m.columns[k]) * m.width + at;
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sum[j] = hn::MulAdd(x, hn::LoadU(d, from + j * L), sum[j]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) hn::StoreU(sum[j], d, m.out + row * m.width + at + j * L);
}

// Fewer columns than a vector has lanes.
template <class T, class I>
HWY_INLINE void few_columns(const Rows<T, I>& m, int64_t row, int64_t at, int64_t n) {
  constexpr int64_t L = HWY_LANES(T);
  T sum[L] = {};
  for (int64_t k = m.begins[row]; k < m.begins[row + 1]; ++k) {
    const T x = m.values[k];
    const T* from = m.dense + int64_t(m.columns[k]) * m.width + at;
    for (int64_t j = 0; j < n; ++j) sum[j] = std::fma(x, from[j], sum[j]);
  }
  for (int64_t j = 0; j < n; ++j) m.out[row * m.width + at + j] = sum[j];
}

// L places from `columns` on, as wide as T.
template <class T, class I>
HWY_INLINE auto places_at(const I* columns) {
  const hn::RebindToSigned<hn::ScalableTag<T>> di;
  if constexpr (sizeof(I) == sizeof(T)) {
    return hn::LoadU(di, reinterpret_cast<const hn::TFromD<decltype(di)>*>(columns));
  } else if constexpr (sizeof(I) < sizeof(T)) {
    return hn::PromoteTo(di, hn::LoadU(hn::Rebind<int32_t, decltype(di)>(), columns));
  } else {
    const auto* halves = reinterpret_cast<const int32_t*>(columns);  // the low ones are the places
    constexpr int64_t L = HWY_LANES(T);
    return hn::ConcatEven(di, hn::LoadU(di, halves + L), hn::LoadU(di, halves));
  }
}

// x at those places, 0 in lanes that the mask leaves out. AVX-512's gather adds to a register:
// unless that is set before, each waits for what was there, the sum of the row before it. The
// compiler must not see that a mask has all lanes: it would leave the setting out.
template <class T, class V, class M>
HWY_INLINE auto gathered(const T* x, V places, M lanes) {
  const hn::ScalableTag<T> d;
#if HWY_TARGET == HWY_AVX3
  auto bits = lanes.raw;
  asm("" : "+Yk"(bits));
  if constexpr (sizeof(T) == 4)
    return decltype(hn::Zero(d)){
        _mm512_mask_i32gather_ps(_mm512_setzero_ps(), bits, places.raw, x, 4)};
  else
    return decltype(hn::Zero(d)){
        _mm512_mask_i64gather_pd(_mm512_setzero_pd(), bits, places.raw, x, 8)};
#else
  return hn::IfThenElseZero(lanes, hn::GatherIndex(d, x, places));
#endif
}

template <class T, class V>
HWY_INLINE T total(V lanes) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4)
    return _mm512_reduce_add_ps(lanes.raw);
  else
    return _mm512_reduce_add_pd(lanes.raw);
#else
  const hn::ScalableTag<T> d;
  return hn::GetLane(hn::SumOfLanes(d, lanes));
#endif
}

// A vector: elements of a row stand in lanes. The last ones are read with those of the next rows,
// which count as nothing, unless the matrix ends.
template <class T, class I>
HWY_INLINE T times_vector(const T* x, const Rows<T, I>& m, int64_t row) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  int64_t k = m.begins[row];
  const int64_t end = m.begins[row + 1];
  auto sum = hn::Zero(d), more = hn::Zero(d);
  const auto all = hn::FirstN(d, size_t(L));
  auto taken = [&](int64_t at, auto lanes)
                   HWY_ATTR { return gathered(x, places_at<T>(m.columns + at), lanes); };
  if (end - k <= L && k + L <= m.count) {
    const auto mine = hn::FirstN(d, size_t(end - k));
    return total<T>(hn::Mul(hn::IfThenElseZero(mine, hn::LoadU(d, m.values + k)), taken(k, mine)));
  }
  for (; k + 2 * L <= end; k += 2 * L) {
    sum = hn::MulAdd(hn::LoadU(d, m.values + k), taken(k, all), sum);
    more = hn::MulAdd(hn::LoadU(d, m.values + k + L), taken(k + L, all), more);
  }
  T rest = 0;
  for (; k < end; k += L) {
    if (k + L > m.count) {
      for (; k < end; ++k) rest += m.values[k] * x[m.columns[k]];
      break;
    }
    const auto mine = hn::FirstN(d, size_t(std::min(L, end - k)));
    sum = hn::MulAdd(hn::IfThenElseZero(mine, hn::LoadU(d, m.values + k)), taken(k, mine), sum);
  }
  return total<T>(hn::Add(sum, more)) + rest;
}

template <class T, class I>
void rows_times(const Rows<T, I>& m, int64_t lo, int64_t hi) {
  const hn::ScalableTag<T> d;
  constexpr int64_t L = HWY_LANES(T);
  if (m.width == 1) {
    for (int64_t row = lo; row < hi; ++row) m.out[row] = times_vector(m.dense, m, row);
    return;
  }
  for (int64_t row = lo; row < hi; ++row) {
    int64_t at = 0;
    for (; at + 8 * L <= m.width; at += 8 * L) columns_of<8>(d, m, row, at);
    if (at + 4 * L <= m.width) columns_of<4>(d, m, row, at), at += 4 * L;
    if (at + 2 * L <= m.width) columns_of<2>(d, m, row, at), at += 2 * L;
    if (at + L <= m.width) columns_of<1>(d, m, row, at), at += L;
    if (at < m.width) few_columns(m, row, at, m.width - at);
  }
}

void times_32_32(const Rows<float, int32_t>& m, int64_t lo, int64_t hi) { rows_times(m, lo, hi); }
void times_32_64(const Rows<float, int64_t>& m, int64_t lo, int64_t hi) { rows_times(m, lo, hi); }
void times_64_32(const Rows<double, int32_t>& m, int64_t lo, int64_t hi) { rows_times(m, lo, hi); }
void times_64_64(const Rows<double, int64_t>& m, int64_t lo, int64_t hi) { rows_times(m, lo, hi); }

}  // namespace
}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {
namespace {
using namespace kit;  // NOLINT: kernels are made of it

template <class T, class I>
void run(const Rows<T, I>& m, int64_t lo, int64_t hi) {
  if constexpr (std::is_same_v<T, float> && sizeof(I) == 4) AJ_SIMD(times_32_32)(m, lo, hi);
  if constexpr (std::is_same_v<T, float> && sizeof(I) == 8) AJ_SIMD(times_32_64)(m, lo, hi);
  if constexpr (std::is_same_v<T, double> && sizeof(I) == 4) AJ_SIMD(times_64_32)(m, lo, hi);
  if constexpr (std::is_same_v<T, double> && sizeof(I) == 8) AJ_SIMD(times_64_64)(m, lo, hi);
}

template <class T, class I>
void product_of(Args args) {
  Dense<I> begins(args.tensor(0)), columns(args.tensor(1));
  Dense<T> values(args.tensor(2)), dense(args.tensor(3)), out(args.result(0));
  const int64_t n = args.tensor(0).numel() - 1, width = args.tensor(3).size(1),
                count = args.tensor(2).numel();
  const Rows<T, I> m{begins.data(), columns.data(), values.data(), dense.data(),
                     out.data(),    width,          count};
  const int64_t each = (count / std::max<int64_t>(n, 1) + 1) * std::max<int64_t>(width, 1);
  if (n > 0 && width > 0)
    parallel_for(n, grain_of(each), [&](int64_t lo, int64_t hi) { run(m, lo, hi); });
  out.commit();
}

void csr_mm(Args args) {
  visit<floating>(args.tensor(2).dtype(), [&]<class T>() {
    if (args.tensor(0).dtype().bits == 32)
      product_of<T, int32_t>(args);
    else
      product_of<T, int64_t>(args);
  });
}

int32_t can_csr_mm(void*, const aj_call* call) {
  const DLTensor &begins = call->args[0].v.tensor->dl, &columns = call->args[1].v.tensor->dl,
                 &dense = call->args[3].v.tensor->dl;
  const DLDataType d = call->args[2].v.tensor->dl.dtype;
  if (d.code != kDLFloat || d.bits < 32) return 0;
  const bool whole = (begins.dtype.bits == 32 || begins.dtype.bits == 64) &&
                     begins.dtype.code == kDLInt && columns.dtype.code == kDLInt &&
                     columns.dtype.bits == begins.dtype.bits;
  return whole && dense.shape[0] < (int64_t(1) << 31);
}

}  // namespace

AJ_KERNELS(sparse_product_kernels) = {
    {"_::csr_mm", {&plain_kernel<csr_mm>, 0, 0, can_csr_mm}},
    {nullptr, {}},
};

}  // namespace adjoin::cpu
#endif

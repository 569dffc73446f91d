// plugins/gpu/element.cuh: one element of any dtype, and where a plan's elements lie.
#ifndef ADJOIN_PLUGINS_GPU_ELEMENT_CUH
#define ADJOIN_PLUGINS_GPU_ELEMENT_CUH
#include "divide.cuh"

namespace adjoin::gpu {

constexpr int kDims = 12;  // of a launch; plans of more are cut into several

// Number of a dtype, as kernels switch on it.
inline int index_of(DLDataType d) {
  return visit<stored>(d, []<class T>() { return DTypeOf<T>::index; });
}

// clang-format off
#define AJ_EVERY_DTYPE_(X)                                                                     \
  X(bool) X(uint8_t) X(int8_t) X(int16_t) X(int32_t) X(int64_t) X(Half) X(BFloat16) X(float)   \
  X(double) X(Complex64) X(Complex128) X(uint16_t) X(uint32_t) X(uint64_t)
// clang-format on
template <class T>
[[gnu::noinline]] AJ_HD T load_any(const char* p, int dtype) {
  switch (dtype) {
#define AJ_CASE_(From)       \
  case DTypeOf<From>::index: \
    return cast<T>(element<From>(p));
    AJ_EVERY_DTYPE_(AJ_CASE_)
#undef AJ_CASE_
  }
  return T(0);
}
template <class T>
[[gnu::noinline]] AJ_HD void store_any(char* p, int dtype, T x) {
  switch (dtype) {
#define AJ_CASE_(To)                         \
  case DTypeOf<To>::index:                   \
    *reinterpret_cast<To*>(p) = cast<To>(x); \
    break;
    AJ_EVERY_DTYPE_(AJ_CASE_)
#undef AJ_CASE_
  }
}
template <class T>
AJ_HD inline T load(const char* p, int dtype) {
  return dtype == DTypeOf<T>::index ? element<T>(p) : load_any<T>(p, dtype);
}
template <class T>
AJ_HD inline void store(char* p, int dtype, T x) {
  if (dtype == DTypeOf<T>::index)
    *reinterpret_cast<T*>(p) = x;
  else
    store_any<T>(p, dtype, x);
}

// Sizes and byte strides of up to N operands, innermost first.
template <int N>
struct Walk {
  int64_t numel, first;  // first: logical index of the first element
  int32_t ndim;
  int32_t dtype[N];
  bool number[N];  // the value is kept here
  char* data[N];   // NULL: absent
  Divisor sizes[kDims];
  int64_t strides[N][kDims];
  alignas(16) unsigned char value[N][16];

  template <class T>
  AJ_HD T get(int k, int64_t offset) const {
    if (number[k]) return load<T>(reinterpret_cast<const char*>(value[k]), dtype[k]);
    return data[k] ? load<T>(data[k] + offset, dtype[k]) : T(0);
  }
  AJ_HD void locate(int64_t i, int64_t* offset) const {
    for (int k = 0; k < N; ++k) offset[k] = 0;
    for (int d = 0; d < ndim; ++d) {
      int64_t at = d + 1 < ndim ? sizes[d].split(&i) : i;
      for (int k = 0; k < N; ++k) offset[k] += at * strides[k][d];
    }
  }
};

// Calls f(walk) for the plan, or for its parts where it has too many dimensions.
template <int N, class F>
void for_walks(const aj_plan& p, F f) {
  if (p.numel == 0) return;
  Walk<N> w = {};
  uint32_t inner = std::min<uint32_t>(p.ndim, kDims);
  w.ndim = int32_t(inner);
  w.numel = 1;
  for (uint32_t d = 0; d < inner; ++d) w.numel *= p.sizes[d];
  for (uint32_t d = 0; d + 1 < inner; ++d) w.sizes[d] = p.sizes[d];
  for (int k = 0; k < N; ++k) {
    const aj_operand& o = p.ops[k];
    w.dtype[k] = index_of(o.dtype);
    w.number[k] = o.data && (o.flags & AJ_OPERAND_NUMBER);
    if (w.number[k])
      std::memcpy(w.value[k], o.data, size_t(bytes_of(o.dtype)));
    else
      w.data[k] = reach(static_cast<char*>(o.data));
    for (uint32_t d = 0; d < inner; ++d)
      w.strides[k][d] = w.data[k] && o.strides ? o.strides[d] : 0;
  }
  int64_t parts = p.numel / w.numel;
  for (int64_t part = 0; part < parts; ++part) {
    Walk<N> now = w;
    int64_t rest = part;
    now.first = p.first_index + part * w.numel;
    for (uint32_t d = inner; d < p.ndim; rest /= p.sizes[d++])
      for (int k = 0; k < N; ++k)
        if (w.data[k]) now.data[k] += rest % p.sizes[d] * p.ops[k].strides[d];
    f(now);
  }
}

}  // namespace adjoin::gpu
#endif

// adjoin/kit/gpu.hpp: kernels of single elements for GPUs, from the functors that serve the
// processor: one source, which nvcc, hipcc and a plain C++ compiler read.
//
//     plugin.op("acme::squash(Tensor input) -> Tensor", "...").kind("unary_float")
//         .kernel("cpu", unary<Squash, floating>)
//     #ifdef AJ_GPU
//         .kernel(AJ_GPU, gpu_unary<Squash, floating>)
//     #endif
//
// AJ_GPU is "cuda" under nvcc, "hip" under hipcc, and not defined elsewhere. A functor's operator()
// is AJ_HD.
#ifndef ADJOIN_KIT_GPU_HPP
#define ADJOIN_KIT_GPU_HPP
#include <adjoin/kit/loops.hpp>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define AJ_GPU "cuda"
#define AJ_GPU_CALL_(name) cuda##name
#elif defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define AJ_GPU "hip"
#define AJ_GPU_CALL_(name) hip##name
#endif

#ifdef AJ_GPU
namespace adjoin {
namespace AJ_HIDDEN kit {

constexpr uint32_t kGpuDims = 12;  // of a launch; plans of more are cut into several

// What a launch works on: N inputs and, first, the output.
template <class F, class T, int N>
struct GpuElements {
  F f;
  int64_t numel;
  uint32_t ndim;
  char* data[N + 1];  // NULL: a number, or absent
  T number[N + 1];
  int64_t sizes[kGpuDims], strides[N + 1][kGpuDims];
};

template <class F, class R, class T, int N, size_t... I>
AJ_HD inline R gpu_apply(const F& f, const T* x, std::index_sequence<I...>) {
  return f(x[I]...);
}
template <class F, class R, class T, int N>
__global__ void gpu_elements(GpuElements<F, T, N> p) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < p.numel; i += step) {
    int64_t at[N + 1] = {}, rest = i;
    for (uint32_t d = 0; d < p.ndim; rest /= p.sizes[d++])
      for (int k = 0; k <= N; ++k) at[k] += rest % p.sizes[d] * p.strides[k][d];
    T x[N];
    for (int k = 0; k < N; ++k)
      x[k] =
          p.data[k + 1] ? *reinterpret_cast<const T*>(p.data[k + 1] + at[k + 1]) : p.number[k + 1];
    *reinterpret_cast<R*>(p.data[0] + at[0]) =
        gpu_apply<F, R, T, N>(p.f, x, std::make_index_sequence<N>());
  }
}

inline void gpu_check(AJ_GPU_CALL_(Error_t) result, const char* doing) {
  if (result == AJ_GPU_CALL_(Success)) return;
  raise(AJ_INTERNAL, AJ_GPU, ": ", doing, ": ", AJ_GPU_CALL_(GetErrorString)(result));
}

// out = f(inputs...) for every element of the call's plan, queued on the call's stream.
template <class T, int N, class F>
void gpu_map(const aj_call* call, const F& f) {
  using R = decltype([]<size_t... I>(const F& g, std::index_sequence<I...>) {
    return g((void(I), T())...);
  }(f, std::make_index_sequence<N>()));
  const aj_plan& plan = *call->plan;
  if (plan.numel == 0) return;
  GpuElements<F, T, N> p = {f, 1, std::min(plan.ndim, kGpuDims), {}, {}, {}, {}};
  for (uint32_t d = 0; d < p.ndim; ++d) p.numel *= p.sizes[d] = plan.sizes[d];
  for (int k = 0; k <= N; ++k) {
    const aj_operand& o = plan.ops[k];
    if (o.flags & AJ_OPERAND_NUMBER)
      p.number[k] = *static_cast<const T*>(o.data);
    else
      p.data[k] = static_cast<char*>(o.data);
    for (uint32_t d = 0; d < p.ndim && o.strides; ++d) p.strides[k][d] = o.strides[d];
  }
  int before = 0, wanted = call->device.device_id;
  gpu_check(AJ_GPU_CALL_(GetDevice)(&before), "which device is current");
  if (before != wanted) gpu_check(AJ_GPU_CALL_(SetDevice)(wanted), "choosing the device");
  auto blocks = unsigned(std::min<int64_t>((p.numel + 255) / 256, 65535));
  auto stream = static_cast<AJ_GPU_CALL_(Stream_t)>(call->stream);
  for (int64_t part = 0; part < plan.numel / p.numel; ++part) {
    GpuElements<F, T, N> now = p;
    int64_t rest = part;
    for (uint32_t d = p.ndim; d < plan.ndim; rest /= plan.sizes[d++])
      for (int k = 0; k <= N; ++k)
        if (p.data[k] && plan.ops[k].strides)
          now.data[k] += rest % plan.sizes[d] * plan.ops[k].strides[d];
    gpu_elements<F, R, T, N><<<dim3(blocks), dim3(256), 0, stream>>>(now);
  }
  AJ_GPU_CALL_(Error_t) launched = AJ_GPU_CALL_(GetLastError)();
  if (before != wanted) gpu_check(AJ_GPU_CALL_(SetDevice)(before), "choosing the device again");
  gpu_check(launched, "launching a kernel");
}

template <class F, class Set, int N>
aj_status* gpu_kernel(void*, aj_call* call) {
  return guard(call, [&] {
    visit<Set>(call->plan->compute,
               [&]<class T>() { choose<F, T>(call, [&](auto f) { gpu_map<T, N>(call, f); }); });
  });
}

// Operands come in the compute dtype: the core casts the others.
template <class F, class Set>
inline constexpr Spec gpu_unary = {&gpu_kernel<F, Set, 1>, Set::mask, 0};
template <class F, class Set>
inline constexpr Spec gpu_binary = {&gpu_kernel<F, Set, 2>, Set::mask, 0};
template <class F, class Set>
inline constexpr Spec gpu_ternary = {&gpu_kernel<F, Set, 3>, Set::mask, 0};

}  // namespace kit
}  // namespace adjoin
#endif
#endif

// plugins/gpu/launch.cuh: from a call to launches: one thread an element, or one block a task.
#ifndef ADJOIN_PLUGINS_GPU_LAUNCH_CUH
#define ADJOIN_PLUGINS_GPU_LAUNCH_CUH
#include <adjoin/kit/choosers.hpp>
#include <adjoin/kit/view.hpp>
#include AJ_GPU_TARGET  // named by who compiles: what the kernels are written over

#include "fault.hpp"

namespace adjoin::gpu {
using namespace adjoin::kit;  // NOLINT: the kernels are made of it

constexpr unsigned kThreads = 256;      // of a block of independent threads
constexpr int64_t kMostBlocks = 65535;  // of any dimension of any grid

// Grids of a given number of threads; `each` elements to a thread.
template <auto Kernel, class P>
void launch_threads(const aj_call* call, int64_t n, int64_t each, const P& p) {
  if (n <= 0) return;
  int64_t threads = (n + each - 1) / each;
  auto width = unsigned(std::min<int64_t>(kThreads, (threads + 31) / 32 * 32));
  launch_grid<Kernel>(call, unsigned(std::min((threads + width - 1) / width, kMostBlocks)), 1, 1,
                      width, 1, p);
}
// Blocks take tasks block_x(), block_x() + blocks_x(), ...
template <auto Kernel, class P>
void launch_blocks(const aj_call* call, int64_t tasks, unsigned width, const P& p) {
  if (tasks <= 0) return;
  launch_grid<Kernel>(call, unsigned(std::min(tasks, kMostBlocks)), 1, 1, width, 1, p);
}

// Calls f(i) for i in [0, n), a thread each.
template <class F>
struct Each {
  int64_t n;
  F f;
};
template <class F>
AJ_GLOBAL void each_kernel(AJ_ARGUMENT Each<F> p) {
  int64_t step = int64_t(blocks_x()) * threads_x();
  for (int64_t i = int64_t(block_x()) * threads_x() + thread_x(); i < p.n; i += step) p.f(i);
}
template <class F>
void each(const aj_call* call, int64_t n, const F& f) {
  launch_threads<&each_kernel<F>>(call, n, 4, Each<F>{n, f});
}

AJ_HD inline void report(Fault* fault, int code, int64_t a, int64_t b, int64_t c) {
  if (atomic_cas(&fault->code, kNoFault, kFaultBeingWritten) != kNoFault) return;
  fault->a = a;
  fault->b = b;
  fault->c = c;
  fence_for_host();
  *const_cast<volatile int*>(&fault->code) = code;
}
// An index from 0, or -1 and a report: no place, for there may be none at all.
AJ_HD inline int64_t checked(int64_t i, int64_t size, int64_t dim, Fault* fault) {
  if (i >= 0 && i < size) return i;
  report(fault, kIndexFault, i, size, dim);
  return -1;
}

// A 0-dim tensor of the host may stand among those of the device; its memory is only read here and
// now, never by a kernel.
inline bool foreign(const aj_call* call, TensorView t) {
  return t && t.device().device_type != call->device.device_type;
}

// Copies any strided tensor into any other of the same shape, casting. Asynchronous.
void copy(const aj_call* call, MutView to, TensorView from);
void fill_zero(const aj_call* call, void* p, int64_t bytes);

// Memory of the device for the time of a call: what is queued on the stream may still use it, since
// the core hands it out again on the same stream only.
class Scratch {
 public:
  Scratch(const aj_call* call, DLDataType dtype, Span shape)
      : tensor_(new_tensor(call->device, dtype, shape)) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() { core().release(tensor_); }
  aj_tensor* tensor() const { return tensor_; }
  template <class T>
  T* data() const {
    return reach(MutView(tensor_).template data<T>());
  }

 private:
  aj_tensor* tensor_;
};
// n of any type, uninitialised.
template <class T>
class Buffer {
 public:
  Buffer(const aj_call* call, int64_t n) : Buffer(call, std::max<int64_t>(1, n), 0) {}
  T* data() const { return scratch_.data<T>(); }

 private:
  Buffer(const aj_call* call, int64_t n, int)
      : bytes_(n * int64_t(sizeof(T))), scratch_(call, dtype_of<uint8_t>, Span(&bytes_, 1)) {}
  int64_t bytes_;
  Scratch scratch_;
};

// A dense tensor of one dtype where kernels reach it: the view's own memory when it is that
// already, else a copy, which commit() writes back.
template <class T>
class Plain {
 public:
  Plain(const aj_call* call, TensorView t) : call_(call) {
    if (!t) return;
    if (!own(t)) copy(call, MutView(made_->tensor()), t);
  }
  // keep: the old values are read too.
  Plain(const aj_call* call, MutView t, bool keep = false) : call_(call), to_(t) {
    if (!own(t) && keep) copy(call, MutView(made_->tensor()), t);
  }
  T* data() const { return data_; }
  void commit() {
    if (made_ && to_) copy(call_, to_, TensorView(made_->tensor()));
  }

 private:
  bool own(TensorView t) {
    if (same(t.dtype(), dtype_of<T>) && t.dense() && !foreign(call_, t)) {
      data_ = reach(const_cast<T*>(t.template data<T>()));
      return true;
    }
    made_ = std::make_unique<Scratch>(call_, dtype_of<T>, t.shape());
    data_ = made_->template data<T>();
    return false;
  }
  const aj_call* call_;
  MutView to_;
  std::unique_ptr<Scratch> made_;
  T* data_ = nullptr;
};

}  // namespace adjoin::gpu
#endif

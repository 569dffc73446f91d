// acme.cpp: the op acme::acme with its kernels and its derivative.
//
// Read by a plain C++ compiler it serves the processor, by nvcc CUDA too, by hipcc HIP: build.sh.
#include <adjoin/kit/gpu.hpp>
#include <adjoin/kit/kit.hpp>

namespace {

using namespace adjoin;       // NOLINT: Tensor, call
using namespace adjoin::kit;  // NOLINT: this file is made of it

// One element. AJ_HD: for the processor and for GPUs.
template <class T>
struct AcmeBy {
  T by;
  AJ_HD T operator()(T x) const { return x / (by + (x < T(0) ? -x : x)); }
};
// What depends on the call's other arguments is chosen once a call.
struct Acme {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(AcmeBy<T>{T(Args(call).real(1))});
  }
};

}  // namespace

AJ_PLUGIN(.name = "acme", .version = "0.1.0", .provides = "ops:acme") {
  plugin.op("acme::acme(Tensor input, *, float by=1.0) -> Tensor", "input / (by + |input|).")
      .kind("unary_float")
      .kernel("cpu", unary<Acme, floating>)
#ifdef AJ_GPU
      .kernel(AJ_GPU, gpu_unary<Acme, floating>)
#endif
      .vjp([](Tensor g, Saved x, double by) {
        Tensor d = by + call("abs", x);
        return g * by / (d * d);
      });
}

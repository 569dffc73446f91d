// bounded.cpp: what forward found out is kept for the derivative, and a hook changes gradients on
// their way.
//
//     adjoin.load_plugin("./libaj_bounded.so")
//     y = adjoin.ops.bounded.clip(x, limit=2.0)   # beyond the limit the slope is 1/10
//     z = adjoin.ops.bounded.calm(y, norm=1.0)    # y; the norm of its gradient is at most 1
#include <adjoin/kit/kit.hpp>
#include <adjoin/kit/ops.hpp>

namespace {

using namespace adjoin;       // NOLINT: this file is made of it
using namespace adjoin::kit;  // NOLINT

// The slopes are a second result that users do not see: saved, not computed again.
aj_status* clip(void*, aj_call* call) {
  return compose(call, [](Body& b) {
    const Tensor& x = b.tensor(0);
    double limit = b.real(1);
    if (!(limit > 0)) raise(AJ_INVALID_ARGUMENT, "limit is ", limit, ", more than 0 is wanted");
    Tensor inside = le(abs(x), limit), edge = clamp(x, -limit, limit);
    b.ret(0, edge + (x - edge) * 0.1);
    b.ret(1, where(inside, ones_like(x), full_like(x, 0.1)));
  });
}

struct Norm {
  double most;
};

// Belongs to the tensor that it hangs on. The gradient that comes in is borrowed, the one put in
// its place is given away.
aj_status* shorten(void* self, aj_tensor** grad) {
  return guard("bounded.calm", [&] {
    Tensor g = Tensor::borrow(*grad), size = sqrt(sum(g * g));
    *grad = (g * clamp(static_cast<Norm*>(self)->most / size, Scalar(), 1.0)).take();
  });
}
aj_status* calm(void*, aj_call* call) {
  return compose(call, [](Body& b) {
    Tensor y = b.tensor(0) * 1;  // a tensor of its own, so that the hook is on it alone
    if (y.requires_grad())
      check(autograd().hook_tensor(
          y.get(), AJ_HOOK_TENSOR, &shorten, new Norm{b.real(1)},
          [](void* self) { delete static_cast<Norm*>(self); }, nullptr));
    b.ret(0, y);
  });
}

}  // namespace

AJ_PLUGIN(.name = "bounded", .version = "1.0.0", .provides = "ops:bounded") {
  plugin
      .op("bounded::clip(Tensor input, float limit=1.0) -> (Tensor, aux Tensor)",
          "input, with a slope of 1/10 beyond +-limit.")
      .tags("function-only")
      .body(&clip)
      .vjp([](Tensor g, Skip, Skip, Out, Out slope) { return g * slope; });
  plugin
      .op("bounded::calm(Tensor input, float norm=1.0) -> Tensor",
          "input; its gradient has at most that norm.")
      .tags("function-only")
      .body(&calm);
}

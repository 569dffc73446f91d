// op.cpp: ops written with the kit: a functor that serves every floating dtype, a lambda as a kernel, derivatives as lambdas.
#include <adjoin/kit/kit.hpp>

namespace {

using namespace adjoin;       // NOLINT: Tensor, call
using namespace adjoin::kit;  // NOLINT: this file is made of it

template <class T>
struct RatioOf {
  T by;
  AJ_HD T operator()(T x) const { return x / (by + x * x); }
};
struct Ratio {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(RatioOf<T>{T(Args(call).real(1))});
  }
};

// x * (x > 0) + by, from other ops; a result that the caller gave is written into.
void ramp(Body& b) { b.ret(0, b.tensor(0) * call("relu", b.tensor(0)) + b.real(1)); }

}  // namespace

// Nothing of it runs on after a call.
extern "C" AJ_EXPORT aj_status* aj_plugin_drain_v1() { return nullptr; }

AJ_PLUGIN(.name = NAME, .version = "1.0", .vendor = "Golden", .provides = "ops:" NAME) {
  plugin.op(NAME "::ratio(Tensor x, *, float by=1.0) -> Tensor", "x / (by + x * x).")
      .kind("unary_float")
      .kernel("cpu", unary<Ratio, floating>)
      .vjp([](Tensor g, Saved x, double by) {
        Tensor square = x * x, low = square + by;
        return g * (by - square) / (low * low);
      });
  plugin.op(NAME "::dot(Tensor x, Tensor y) -> Tensor", "The sum of x * y of two vectors of float64.")
      .infer([](void*, aj_call* call) {
        return guard(call, [&] {
          if (Args(call).tensor(0).shape().size() != 1) raise(AJ_INVALID_ARGUMENT, NAME "::dot: two vectors are wanted");
          check(dispatch().declare(call, 0, dtype_of<double>, 0, nullptr, nullptr));
        });
      })
      .kernel("cpu", [](TensorView x, TensorView y, Mut<TensorView> out) {
        double sum = 0;
        for (int64_t i = 0; i < x.shape()[0]; ++i) sum += x.data<double>()[i * x.strides()[0]] * y.data<double>()[i * y.strides()[0]];
        *out.data<double>() = sum;
      })
      .vjp([](Tensor g, Saved x, Saved y) { return std::tuple<Tensor, Tensor>(g * y, g * x); });
  plugin.op(NAME "::ramp(Tensor x, float by=1.0) -> Tensor", "x * relu(x) + by.").tags("in-place").body(body<ramp>);
}

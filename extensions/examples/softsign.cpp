// softsign.cpp: the op of squash.c with the kit: one functor, one derivative, every dtype.
#include <adjoin/kit/kit.hpp>
using namespace adjoin;
using namespace adjoin::kit;

struct Softsign {
  template <class T>
  AJ_HD T operator()(T x) const {
    return x / (T(1) + abs(x));
  }
};

AJ_PLUGIN(.name = "softsign", .version = "1.0.0", .provides = "ops:softsign") {
  plugin.op("softsign::softsign(Tensor input) -> Tensor", "input / (1 + |input|).")
      .kind("unary_float")
      .kernel("cpu", unary<Softsign, floating>)
      .vjp([](Tensor g, Out y) { return g * call("square", 1 - call("abs", y)); });
}

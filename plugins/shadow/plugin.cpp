// plugins/shadow/plugin.cpp: a dispatch key that runs every op on a second backend too and stops at
// the first difference. It knows nothing of the core but the contract.
//
// While a thread includes the key "shadow", each of its calls is made twice. shadow::watch says
// where the second one goes and how far results may be apart; its result counts calls so far.
#include <adjoin/kit/plugin.hpp>

#include "watch.hpp"

namespace adjoin::shadow {
namespace {

using namespace kit;

aj_status* infer_counts(void*, aj_call* call) {
  const int64_t two = 2;
  return dispatch().declare(call, 0, dtype_of<int64_t>, 1, &two, nullptr);
}

double limit(double given, double otherwise) {
  if (given < 0) return otherwise;
  return given;
}

}  // namespace
}  // namespace adjoin::shadow

AJ_PLUGIN(.name = "shadow", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "ops:shadow;key:shadow") {
  using namespace adjoin::shadow;
  using namespace adjoin::kit;
  uint64_t mask;
  const aj_dispatch& d = dispatch();
  auto* registrar = plugin.env()->registrar;
  check(d.def_key(registrar, AJ_STR_LIT("shadow"), AJ_KEY_ABOVE_AUTOGRAD, &mask));
  check(d.def_fallback(registrar, AJ_STR_LIT("shadow"), watch, nullptr));
  plugin
      .op("shadow::watch(Tensor input, str device, float element, float scale) -> Tensor",
          "Calls made twice, and calls left out, so far; then begins again with this device and "
          "limits in ULP.")
      .tags("function-only")
      .infer(infer_counts)
      .kernel("cpu", [](TensorView, std::string_view device, double element, double scale,
                        Mut<TensorView> out) {
        auto* counts = out.data<int64_t>();
        counts[0] = compared(), counts[1] = left_out();
        Limits usual;
        if (!device.empty())
          configure(std::string(device),
                    {limit(element, usual.element), limit(scale, usual.scale)});
      });
}

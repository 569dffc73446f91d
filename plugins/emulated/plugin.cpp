// plugins/emulated/plugin.cpp: a GPU for machines that have none: the GPU kernels of plugins/gpu on
// fibres, with memory that the host cannot touch, streams that lag, and faults to order.
#include <adjoin/kit/plugin.hpp>

#include "device.hpp"
#include "orders.hpp"

namespace {

using namespace adjoin;

aj_status* configure(void*, aj_call* call) {
  const aj_value& text = call->args[0];
  return emulated::set_orders(text.tag == AJ_STRING_OBJ
                                  ? kit::view_of(kit::core().string_get(text.v.object))
                                  : std::string_view(text.v.str, text.aux));
}

}  // namespace

AJ_PLUGIN(.name = "emulated", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "device:emulated;ops:emulated;imitates:gpu") {
  kit::check(emulated::set_orders(kit::view_of(plugin.env()->options)));
  plugin.device(emulated::device_table);
  plugin.kernels("emulated");
  aj_op_def def = {};
  def.struct_size = sizeof def;
  def.schema = AJ_STR_LIT("emulated::configure(str options) -> ()");
  def.doc = AJ_STR_LIT(
      "Orders delays and faults of the emulated devices: 'fail_alloc=3' is the third from now; "
      "there are fail_alloc, fail_kernel, fail_copy, hang (0 ends it), delay_us, deadline_ms, "
      "blocking, warp and seed.");
  def.tags = AJ_STR_LIT("function-only");
  def.body = configure;
  kit::check(kit::dispatch().def_op(plugin.env()->registrar, &def));
}

// core/op/serves.cpp: who would serve an op on a device, and why, in words.
#include "core/op/serves.hpp"

#include "core/device/device.hpp"
#include "core/guest/object.hpp"
#include "core/op/registry.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

aj_status* op_explain(const aj_op* op, aj_str device, aj_object** out) {
  int32_t type = view(device) == "meta" ? kMetaType : 0;
  if (!type) AJ_TRY(device_kind_find(view(device), &type));
  std::string text_out = op->schema.name + " on " + std::string(view(device)) + "\n";
  const Kernel* chosen = resolve(const_cast<aj_op*>(op), type - 1);
  int rank = 0;
  for (const Kernel* k = chosen; k; k = k->next) {
    text_out += text("  ", ++rank, ". ",
                     k->flags & kKernelBody ? "the op's body"
                     : k->provider.empty()  ? "the core"
                                            : "plugin " + k->provider);
    if (!(k->flags & kKernelBody))
      text_out += text(", priority ", k->priority, k->can_run ? ", asks its can_run" : "");
    if (k->dtypes) {
      text_out += ", for";
      for (int i = 0; i < 64; i++)
        if (k->dtypes >> i & 1 && dtypes[i].name) text_out += text(" ", dtypes[i].name);
    }
    text_out += "\n";
  }
  if (!chosen)
    text_out +=
        op->kind == Kind::view ? "  a view: served by the core on every device\n" : "  nobody\n";
  return string_new(str(text_out), out);
}

}  // namespace adjoin

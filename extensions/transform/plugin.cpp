// extensions/transform/plugin.cpp: libaj_transform.so: the key "transform", and the table
// "x.transform".
#include <adjoin/kit/plugin.hpp>

#include "batch.hpp"
#include "custom.hpp"
#include "dual.hpp"

namespace adjoin::transform {

void register_payload();

namespace {

const char kHint[] = "inside a transform it has one for each sample: compute with it, or return it";

aj_status* settle(void*, aj_tensor* t, aj_tensor** strided) {
  return guard("", [&] {
    const Payload* p = payload_of(t);
    note_look();
    bool differs = false;
    Tensor held = current_value(t, &differs);
    if (!(p->level->open || p->level->kept) || differs)
      raise(AJ_UNIMPLEMENTED,
            p->level->open
                ? "the values of a batched tensor were asked for (item, bool, numpy, an if); "
                : "the values of a tensor whose transform has ended were asked for; ",
            kHint, "; where() chooses between values");
    aj_tensor* value = nullptr;
    check(wrap_table->tensor_strided(held.get(), AJ_STR_LIT("transform"), &value));
    *strided = value;
  });
}

aj_status* describe(void*, aj_tensor* t, aj_object** text) {
  return guard("", [&] {
    const Payload* p = payload_of(t);
    if (!p->level->open && p->level->kept) return void(*text = nullptr);  // its values say more
    std::string said = p->level->kind == AJ_LEVEL_DUAL ? kit::text("dual, level ", p->level->id)
                       : p->batched
                           ? kit::text("a batch of ", p->level->size, ", level ", p->level->id)
                           : kit::text("one for all samples, level ", p->level->id);
    check(core().string_new(str(said), text));
  });
}

aj_status* copy(void*, aj_tensor* t, aj_tensor** out) {
  static constinit Op clone("clone");
  return guard("", [&] {
    const aj_value arg = value(Tensor::view(t));
    *out = run(clone.get(), &arg, 1).take();
  });
}

aj_status* add_gradient(void*, aj_tensor* a, aj_tensor* b, aj_tensor** sum) {
  return guard("", [&] { *sum = (Tensor::view(a) + Tensor::view(b)).take(); });
}

const aj_transforms table = {
    .struct_size = sizeof(aj_transforms),
    .minor = 0,
    .enter = enter,
    .leave = leave,
    .batched = batched,
    .unbatched = unbatched,
    .shared = shared,
    .dual = dual,
    .undual = undual,
    .lift = lift_to,
    .innermost = innermost_id,
    .batch_of = batch_of,
    .random_stride = random_stride,
    .loop_count = loop_count,
    .loop_at = loop_at,
    .loops_forbid = loops_forbid,
    .kind = kind_of,
    .below = below,
    .above = above,
    .custom_apply = custom_apply,
};

}  // namespace
}  // namespace adjoin::transform

AJ_PLUGIN(.name = "transform", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:x.transform") {
  using namespace adjoin::transform;
  const aj_plugin_env& env = *plugin.env();
  wrap_table = static_cast<const aj_wrappers*>(env.query("x.wrap", 1));
  lower_table = static_cast<const aj_lower*>(env.query("x.lower", 1));
  if (!wrap_table || !lower_table)
    raise(AJ_UNAVAILABLE, "libadjoin has no x.wrap or x.lower; it is older than libaj_transform");
  transform_key = dispatch().key_mask(AJ_STR_LIT("transform"));
  register_payload();
  check(dispatch().def_fallback(env.registrar, AJ_STR_LIT("transform"), serve, nullptr));
  aj_wrapper_def w{};
  w.struct_size = sizeof w;
  w.key = AJ_STR_LIT("transform");
  w.settle = settle;
  w.describe = describe;
  w.copy = copy;
  w.add_gradient = add_gradient;
  w.hint = str(kHint);
  check(wrap_table->def_wrapper(env.registrar, &w));
  plugin.service("x.transform", "transform", &table, 0);
}

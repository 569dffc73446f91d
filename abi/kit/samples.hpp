// adjoin/kit/samples.hpp: a look at values, for a check, where a tensor may be one of a transform.
#ifndef ADJOIN_KIT_SAMPLES_HPP
#define ADJOIN_KIT_SAMPLES_HPP
#include <adjoin/abi/transform.h>

#include <adjoin/kit/losses.hpp>

namespace adjoin {
namespace AJ_HIDDEN ops {

// NULL: nobody has opened a transform in this process.
inline const aj_transforms* transforms() {
  constexpr aj_str slot = AJ_STR_LIT("x.transform");
  if (!kit::services().count(slot)) return nullptr;
  aj_service_def d{};
  d.struct_size = sizeof d;
  kit::check(kit::services().at(slot, 0, &d));
  return static_cast<const aj_transforms*>(d.table);
}

// Calls `see` with what t holds. In a batch that is all samples, with a dimension in front for each
// level that is open; of a dual it is the value. Nothing is recorded.
template <class F>
void see_values(const Tensor& t, const F& see) {
  NoGradGuard off;
  const aj_transforms* all = t.has_memory() ? nullptr : transforms();
  const int32_t level = all ? all->innermost() : 0;
  if (!level) return see(t);
  aj_tensor *value = nullptr, *tangent = nullptr;
  kit::check(all->kind(level) == AJ_LEVEL_BATCH ? all->unbatched(t.get(), 0, level, &value)
                                                : all->undual(t.get(), level, &value, &tangent));
  const Tensor held = Tensor::steal(value);
  if (tangent) Tensor::steal(tangent);
  kit::check(all->below(level));
  struct Above {
    const aj_transforms* all;
    ~Above() { all->above(); }
  } above{all};
  see_values(held, see);
}

}  // namespace ops
}  // namespace adjoin
#endif

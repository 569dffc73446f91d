// core/tape/accumulate.cpp: adding up gradients: between nodes, and into a leaf's .grad.
#include <algorithm>
#include <utility>

#include "core/base/keys.hpp"
#include "core/op/call.hpp"
#include "core/tape/engine.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {
namespace {

// Written down by a lazy scope: as good as strided, since each op of it is carried out later.
bool is_lazy(const aj_tensor* t) { return !is_strided(t) && t->keys & 1ull << kLazyBit; }
bool takes_adds(const aj_tensor* t) { return is_strided(t) || is_lazy(t); }

bool lazily_exclusive(const aj_tensor* t) {
  return refs(const_cast<aj_object*>(&t->obj)).load(std::memory_order_acquire) == 1 &&
         storage(t).refs.load(std::memory_order_acquire) == 1 && !requires_grad(t) &&
         !(t->obj.flags & AJ_TENSOR_VIEW);
}

bool may_add_into(const aj_tensor* to, const aj_tensor* g) {
  const bool alone = is_lazy(to) ? lazily_exclusive(to) &&
                                       (!to->dl.strides || dense_strides(shape(to), strides(to)))
                                 : exclusive(to) && (is_dense(to) || order_is_free(to));
  return alone && takes_adds(g) && priv(to).dtype == priv(g).dtype &&
         std::ranges::equal(shape(to), shape(g));
}

// A copy with the leaf's strides, which .grad keeps where they leave no gaps.
aj_status* like_leaf(aj_tensor* leaf, aj_tensor* g, aj_tensor** out) {
  Ref made;
  int64_t reach = 1;  // of a leaf without gaps: its number of elements
  for (int i = 0; i < leaf->dl.ndim; i++) reach += (leaf->dl.shape[i] - 1) * leaf->dl.strides[i];
  if (is_dense(leaf) || overlaps_itself(leaf) || reach != priv(leaf).numel) {
    AJ_TRY(tensor_new(device(g), dt(priv(g).dtype), shape(leaf), made.out()));
  } else {
    AJ_TRY(
        tensor_new_strided(device(g), dt(priv(g).dtype), shape(leaf), strides(leaf), made.out()));
  }
  AJ_TRY(tape::copy_into(made.get(), g));
  *out = made.take();
  return nullptr;
}

// A gradient of another layout than the leaf's stays what it is; nobody else may see it change.
aj_status* own_grad(aj_tensor* g, bool create, aj_tensor** out) {
  bool strided = is_strided(g), alone = refs(&g->obj).load(std::memory_order_acquire) == 1;
  if (create || (alone && (!strided || exclusive(g)))) return retain(*out = g), nullptr;
  if (strided) return tape::clone(g, out);
  AJ_TRY(tensor_copy(g, out));
  return *out ? nullptr : tensor_same(g, out);
}

aj_status* first_grad(aj_tensor* leaf, Meta* m, aj_tensor* g, bool create) {
  if (!create && exclusive(g) && std::ranges::equal(strides(g), strides(leaf))) {
    g->obj.flags &= ~uint32_t(AJ_TENSOR_FREE_ORDER);  // these strides are the leaf's own
    m->grad = g;
    return nullptr;
  }
  aj_tensor* copy = nullptr;
  aj_status* s = like_leaf(leaf, g, &copy);
  release(g);
  m->grad = copy;
  return s;
}

aj_status* add_up(aj_tensor* a, aj_tensor* b, aj_tensor** out) {
  return is_strided(a) && is_strided(b) ? tape::add(a, b, out) : sum_gradients(a, b, out);
}

}  // namespace

bool exclusive(const aj_tensor* t) {
  const Storage& s = storage(t);
  return refs(const_cast<aj_object*>(&t->obj)).load(std::memory_order_acquire) == 1 &&
         s.refs.load(std::memory_order_acquire) == 1 &&
         !(s.flags & (kStorageForeign | kStorageReadOnly)) && !requires_grad(t);
}

aj_status* accumulate(aj_tensor** slot, aj_tensor* g, bool create) {
  if (__builtin_expect(!*slot, 1)) {
    *slot = g;
    return nullptr;
  }
  if (!create && may_add_into(*slot, g)) {
    aj_status* s = tape::add_into(*slot, g);
    release(g);
    return s;
  }
  if (!create && may_add_into(g, *slot)) {
    std::swap(*slot, g);
    aj_status* s = tape::add_into(*slot, g);
    release(g);
    return s;
  }
  aj_tensor* sum = nullptr;
  aj_status* s = add_up(*slot, g, &sum);
  release(g);
  release(*slot);
  *slot = sum;
  return s;
}

// By what others do, which may read .grad: so without its lock, and again where somebody has come
// between.
static aj_status* accumulate_unlocked(Meta* m, aj_tensor* g, bool create) {
  for (;;) {
    Ref before, sum;  // released after the lock is
    uint32_t version = 0;
    {
      SpinGuard guard(m->spin);
      if (m->grad) before = Ref::borrow(m->grad), version = watched_version(m->grad);
    }
    AJ_TRY(before ? add_up(before.get(), g, sum.out()) : own_grad(g, create, sum.out()));
    SpinGuard guard(m->spin);
    if (m->grad != before.get() || (before && watched_version(m->grad) != version)) continue;
    aj_tensor* old = std::exchange(m->grad, sum.take());
    sum = Ref(old);
    return nullptr;
  }
}

aj_status* accumulate_grad(aj_tensor* leaf, aj_tensor* g, bool create) {
  Meta* m = meta_of(leaf);
  Ref held(g);
  {
    SpinGuard guard(m->spin);
    if (!m->grad && is_strided(g) && is_strided(leaf))
      return first_grad(leaf, m, held.take(), create);
    if (m->grad && !create && takes_adds(m->grad) && takes_adds(g))
      return tape::add_into(m->grad, g);
  }
  return accumulate_unlocked(m, g, create);
}

}  // namespace adjoin

// core/tensor/word.cpp: the word that one language may keep on a tensor.
#include "core/tensor/word.hpp"

#include "core/guest/frontend.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {

void* frontend_word(const aj_tensor* t, int32_t id) {
  return priv(t).frontend_id == id ? priv(t).frontend : nullptr;
}

// The word serves one language per tensor: a second one is not remembered.
void set_frontend_word(aj_tensor* t, int32_t id, void* word, int32_t owned) {
  TensorPriv& p = priv(t);
  if (p.frontend && p.frontend_id != id) return;
  p.frontend = word;
  p.frontend_id = word ? uint16_t(id) : 0;
  p.flags = uint16_t(owned && word ? p.flags | kFrontendOwned : p.flags & ~kFrontendOwned);
}

void frontend_dtype_changed(const aj_tensor* t) {
  const TensorPriv& p = priv(t);
  if (!p.frontend) return;
  if (auto tell = frontend_dtype_teller(p.frontend_id)) tell(p.frontend);
}

}  // namespace adjoin

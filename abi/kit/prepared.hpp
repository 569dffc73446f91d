// adjoin/kit/prepared.hpp: forms of a tensor's contents that kernels want, such as packed weights,
// made once for as long as nobody writes to the tensor.
#ifndef ADJOIN_KIT_PREPARED_HPP
#define ADJOIN_KIT_PREPARED_HPP
#include <adjoin/kit/tensor.hpp>
#include <adjoin/kit/view.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

// The form of t under the key: the kept one, or what make() returns, kept if the key was asked for
// before. Undefined: not worth keeping, and nothing was made. The key says how the form is laid
// out; t's shape and strides and the place in its storage are told apart by the core.
template <class Make>
Tensor prepared(TensorView t, Span key, Make&& make) {
  if (!t || !AJ_HAS_FN(&core(), aj_core, prepared_keep)) return Tensor();
  aj_tensor* found = nullptr;
  uint64_t ticket = core().prepared_find(t.get(), key.data(), key.size_bytes(), &found);
  if (found || !ticket) return Tensor::steal(found);
  Tensor made = make();
  core().prepared_keep(t.get(), ticket, key.data(), key.size_bytes(), made.get());
  return made;
}

}  // namespace kit
}  // namespace adjoin
#endif

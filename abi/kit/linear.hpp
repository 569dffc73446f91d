// adjoin/kit/linear.hpp: what kernels of nn::linear share.
#ifndef ADJOIN_KIT_LINEAR_HPP
#define ADJOIN_KIT_LINEAR_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {

// A kernel adds one number, or a row of one for each output. Any other bias that broadcasts is left
// to the op's body: the kernel declines before it writes.
inline void want_row(TensorView bias, int64_t outputs) {
  if (!bias || bias.numel() == 1) return;
  if (bias.numel() != outputs || bias.size(-1) != outputs)
    raise(AJ_UNIMPLEMENTED, "the bias ", bias, " is no row of ", outputs);
}

}  // namespace kit
}  // namespace adjoin
#endif

// plugins/ops_linalg/cpu/small.hpp: ops on stacks of small matrices. False: others must do it.
#ifndef ADJOIN_PLUGINS_OPS_LINALG_SMALL_HPP
#define ADJOIN_PLUGINS_OPS_LINALG_SMALL_HPP
#include <adjoin/kit/view.hpp>

namespace adjoin::cpu {

struct Small {
  static bool cholesky(kit::Args args);
  static bool lu(kit::Args args);
  static bool solve(kit::Args args);
  static bool inverse(kit::Args args);
  static bool det(kit::Args args);
  static bool qr(kit::Args args);
  static bool eigh(kit::Args args);
  static bool svd(kit::Args args);
};

}  // namespace adjoin::cpu
#endif

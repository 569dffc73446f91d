// plugins/onednn/matmul.hpp: the provider of "aj.blas/cpu".
#ifndef ADJOIN_PLUGINS_ONEDNN_MATMUL_HPP
#define ADJOIN_PLUGINS_ONEDNN_MATMUL_HPP
#include <adjoin/abi/service.h>

namespace adjoin::onednn {

extern const aj_blas matmul;

}  // namespace adjoin::onednn
#endif

// adjoin/nn.hpp: neural networks: modules, layers, containers, initial values. Losses are ops:
// cross_entropy(logits, labels).
#ifndef ADJOIN_NN_HPP
#define ADJOIN_NN_HPP
#include <adjoin/joined.hpp>
#include <adjoin/nn/attention.hpp>
#include <adjoin/nn/container.hpp>
#include <adjoin/nn/conv.hpp>
#include <adjoin/nn/init.hpp>
#include <adjoin/nn/layers.hpp>
#include <adjoin/nn/linear.hpp>
#include <adjoin/nn/losses.hpp>
#include <adjoin/nn/module.hpp>
#include <adjoin/nn/norm.hpp>
#include <adjoin/nn/rnn.hpp>

namespace AJ_HIDDEN adjoin {
namespace nn {
namespace functional = ::adjoin;  // where others have cross_entropy and its like
}  // namespace nn
}  // namespace adjoin
#endif

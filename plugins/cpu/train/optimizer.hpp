// plugins/cpu/train/optimizer.hpp: what the vector loops of optimizer.cpp and those who call them
// share.
#ifndef ADJOIN_PLUGINS_CPU_TRAIN_OPTIMIZER_HPP
#define ADJOIN_PLUGINS_CPU_TRAIN_OPTIMIZER_HPP
#include <cstdint>

namespace adjoin::cpu {

// The same elements of a parameter, its gradient and what the optimizer keeps of it.
template <class T>
struct Row {
  T *p, *g, *state[3];
  T* at(int list) const { return list == 0 ? p : list == 1 ? g : state[list - 2]; }
};

template <class T>
struct SgdNumbers {
  T lr, momentum, undampened, decay, sign;
  bool with_momentum, first, nesterov;
};

// shrink: decoupled weight decay; step and root: the bias corrections of a parameter's own count.
template <class T>
struct AdamNumbers {
  T toward_mean, beta2, toward_square, eps, decay, shrink, sign, step = 0, root = 0;
  bool amsgrad;
};

enum class Norm { sum_of_squares, sum, largest };

// Tensors are handed out in blocks, so that threads share one large tensor or many small ones.
constexpr int64_t kStepBlock = 16384;

}  // namespace adjoin::cpu
#endif

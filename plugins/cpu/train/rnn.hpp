// plugins/cpu/train/rnn.hpp: the vector functions of recurrent layers (rnn_vectors.cpp) as rnn.cpp
// calls them.
#ifndef ADJOIN_PLUGINS_CPU_TRAIN_RNN_HPP
#define ADJOIN_PLUGINS_CPU_TRAIN_RNN_HPP
#include <cstdint>

namespace adjoin::cpu {

// A row of a step: what stands at the same place before and now. Units [from, to) are worked on; a
// gate of unit j lies at gate * hidden + j.
template <class T>
struct CellRow {
  int64_t hidden, from, to;
  const T* bias;      // of all gates, both biases added (GRU: the candidate's input bias alone)
  const T* bias_new;  // GRU: the candidate's hidden bias
  T *gates, *c, *h;   // kept: gates after their activation, cells, output
  const T *c_before, *h_before;
  T* state;  // h once more, for the next step's product
};

template <class T>
struct CellGrad {
  int64_t hidden, from, to;
  const T *gates, *c, *h, *c_before, *h_before, *grad;
  T *dh, *dc;             // carried to the step before
  T *d_input, *d_hidden;  // of the gates: for the input's product, and for the state's
};

enum class Cell { lstm, gru, tanh, relu };

template <class T>
struct RnnVectors {
  int64_t width;  // columns of a panel
  // A panel of op(B): columns [from, from + width), k rows of it side by side, zeros past column n.
  void (*pack)(int64_t k, int64_t n, const T* b, int64_t row, int64_t column, int64_t from, T* out);
  // m rows of C = A panel, or C += A panel; `columns` of the panel are there.
  void (*multiply)(int64_t m, int64_t k, const T* a, int64_t lda, const T* panel, int64_t columns,
                   bool add, T* c, int64_t ldc);
  void (*forward)(Cell kind, const CellRow<T>& row);
  void (*backward)(Cell kind, const CellGrad<T>& row);
};

template <class T>
const RnnVectors<T>& rnn_vectors();

}  // namespace adjoin::cpu
#endif

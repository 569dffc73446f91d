// plugins/gpu/cells.cuh: one unit of a recurrent cell: a step forward, and backward.
#ifndef ADJOIN_PLUGINS_GPU_CELLS_CUH
#define ADJOIN_PLUGINS_GPU_CELLS_CUH
#include <cmath>

#include "launch.cuh"

namespace adjoin::gpu {

enum class Cell : int32_t { lstm, gru, tanh, relu };
inline Cell cell_of(std::string_view mode) {
  return mode == "LSTM"       ? Cell::lstm
         : mode == "GRU"      ? Cell::gru
         : mode == "RNN_TANH" ? Cell::tanh
                              : Cell::relu;
}
AJ_HD inline int gates_of(Cell kind) { return kind == Cell::lstm ? 4 : kind == Cell::gru ? 3 : 1; }

template <class M>
AJ_HD M squashed(M x) {
  M e = std::exp(-std::fabs(x));  // at most 1
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// Gates lie n apart: what goes into them, then what they are. Of a GRU the fourth is the state's
// share of the candidate. c, if the cell has one, becomes the new one.
template <class M>
AJ_HD M cell_forward(Cell kind, M* gates, int n, M h, M* c) {
  if (kind == Cell::lstm) {
    M i = squashed(gates[0]), f = squashed(gates[n]), g = std::tanh(gates[2 * n]),
      o = squashed(gates[3 * n]);
    gates[0] = i, gates[n] = f, gates[2 * n] = g, gates[3 * n] = o;
    *c = f * *c + i * g;
    return o * std::tanh(*c);
  }
  if (kind == Cell::gru) {
    M r = squashed(gates[0]), z = squashed(gates[n]);
    M m = std::tanh(gates[2 * n] + r * gates[3 * n]);
    gates[0] = r, gates[n] = z, gates[2 * n] = m;
    return m + z * (h - m);
  }
  M x = gates[0];
  return kind == Cell::tanh ? std::tanh(x) : x < 0 ? M(0) : x;  // NaN stays
}

template <class M>
struct CellGradient {
  M h, h_before, c, c_before;
  M dh, dc;   // of the step; then what goes to the step before beside the gates
  M d[4];     // of what goes into the gates
  M d_apart;  // of the state's share of a GRU's candidate
};
template <class M>
AJ_HD void cell_backward(Cell kind, const M* gates, int n, CellGradient<M>* s) {
  M dh = s->dh;
  if (kind == Cell::lstm) {
    M i = gates[0], f = gates[n], g = gates[2 * n], o = gates[3 * n], t = std::tanh(s->c);
    M dc = s->dc + dh * o * (1 - t * t);
    s->d[0] = dc * g * i * (1 - i);
    s->d[1] = dc * s->c_before * f * (1 - f);
    s->d[2] = dc * i * (1 - g * g);
    s->d[3] = dh * t * o * (1 - o);
    s->dc = dc * f;
    s->dh = M(0);
  } else if (kind == Cell::gru) {
    M r = gates[0], z = gates[n], m = gates[2 * n], q = gates[3 * n];
    M dm = dh * (1 - z) * (1 - m * m);
    s->d[0] = dm * q * r * (1 - r);
    s->d[1] = dh * (s->h_before - m) * z * (1 - z);
    s->d[2] = dm;
    s->d_apart = dm * r;
    s->dh = dh * z;
  } else {
    s->d[0] = kind == Cell::tanh ? dh * (1 - s->h * s->h) : s->h > 0 ? dh : M(0);
    s->dh = M(0);
  }
}

}  // namespace adjoin::gpu
#endif

// plugins/cpu/train/rnn_vectors.cpp: recurrent layers' inner loops: products of few rows with
// packed weights, and the gates of a step.
#include <adjoin/kit/scalar_math.hpp>
#include <algorithm>

#include "rnn.hpp"
#include "vector/rows.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/train/rnn_vectors.cpp"
#include "vector/simd.hpp"
// after it
#include "vector/lanes.hpp"
#include "vector/math-inl.hpp"

#if AJ_VECTORS
HWY_BEFORE_NAMESPACE();
namespace adjoin::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of C held in registers, two vectors of columns each.
constexpr int kTileRows_ = HWY_TARGET <= HWY_AVX3 ? 10 : 6;

template <class T>
void rnn_pack(int64_t k, int64_t n, const T* b, int64_t row, int64_t column, int64_t from, T* out) {
  const int64_t width = 2 * int64_t(hn::Lanes(hn::ScalableTag<T>())),
                there = std::min(width, n - from);
  b += from * column;
  if (row == 1 && there == width) {  // columns lie along rows
    constexpr int64_t size = sizeof(T);
    return transpose(size, reinterpret_cast<char*>(out), width * size,
                     reinterpret_cast<const char*>(b), column * size, width, k, false);
  }
  for (int64_t p = 0; p < k; ++p, b += row, out += width) {
    for (int64_t j = 0; j < there; ++j) out[j] = b[j * column];
    for (int64_t j = there; j < width; ++j) out[j] = T(0);
  }
}

template <int Rows, class T>
void rnn_tile(int64_t k, const T* a, int64_t lda, const T* b, int64_t columns, bool add, T* c,
              int64_t ldc) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const T* row[Rows];
  V left[Rows], right[Rows];
  for (int r = 0; r < Rows; ++r) row[r] = a + r * lda, left[r] = right[r] = hn::Zero(d);
  for (int64_t p = 0; p < k; ++p, b += 2 * lanes) {
    const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
    for (int r = 0; r < Rows; ++r) {
      const V x = hn::Set(d, row[r][p]);
      left[r] = hn::MulAdd(x, b0, left[r]);
      right[r] = hn::MulAdd(x, b1, right[r]);
    }
  }
  if (columns == 2 * lanes) {
    for (int r = 0; r < Rows; ++r, c += ldc) {
      hn::StoreU(add ? left[r] + hn::LoadU(d, c) : left[r], d, c);
      hn::StoreU(add ? right[r] + hn::LoadU(d, c + lanes) : right[r], d, c + lanes);
    }
    return;
  }
  const size_t first = size_t(std::min(columns, lanes)), second = size_t(columns) - first;
  for (int r = 0; r < Rows; ++r, c += ldc) {
    store_n(add ? left[r] + load_n(d, c, first) : left[r], d, c, first);
    if (second)
      store_n(add ? right[r] + load_n(d, c + lanes, second) : right[r], d, c + lanes, second);
  }
}

template <class T>
void rnn_multiply(int64_t m, int64_t k, const T* a, int64_t lda, const T* panel, int64_t columns,
                  bool add, T* c, int64_t ldc) {
  int64_t tiles = (m + kTileRows_ - 1) / kTileRows_;
  for (int64_t i = 0, from = 0; i < tiles; ++i) {
    int64_t rows = (m - from) / (tiles - i);
    auto go = [&]<int Rows>() {
      rnn_tile<Rows>(k, a + from * lda, lda, panel, columns, add, c + from * ldc, ldc);
    };
    switch (rows) {
      case 1:
        go.template operator()<1>();
        break;
      case 2:
        go.template operator()<2>();
        break;
      case 3:
        go.template operator()<3>();
        break;
      case 4:
        go.template operator()<4>();
        break;
      case 5:
        go.template operator()<5>();
        break;
      case 6:
        go.template operator()<6>();
        break;
      case 7:
        go.template operator()<7>();
        break;
      case 8:
        go.template operator()<8>();
        break;
      case 9:
        go.template operator()<9>();
        break;
      default:
        go.template operator()<10>();
        break;
    }
    from += rows;
  }
}

// f(at, get, put) for the vectors of [from, to); the last may be shorter.
template <class T, class F>
HWY_INLINE void each_vector(int64_t from, int64_t to, F f) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (; from + lanes <= to; from += lanes)
    f(
        d, from, [&](const T* p) HWY_ATTR { return hn::LoadU(d, p + from); },
        [&](V v, T* p) HWY_ATTR { hn::StoreU(v, d, p + from); });
  if (from == to) return;
  const size_t n = size_t(to - from);
  f(
      d, from, [&](const T* p) HWY_ATTR { return load_n(d, p + from, n); },
      [&](V v, T* p) HWY_ATTR { store_n(v, d, p + from, n); });
}

template <class T>
void lstm_forward(const CellRow<T>& r) {
  const int64_t n = r.hidden;
  each_vector<T>(r.from, r.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto i = math::sigmoid(d, get(r.gates) + get(r.bias)),
         f = math::sigmoid(d, get(r.gates + n) + get(r.bias + n)),
         g = math::tanh(d, get(r.gates + 2 * n) + get(r.bias + 2 * n)),
         o = math::sigmoid(d, get(r.gates + 3 * n) + get(r.bias + 3 * n));
    auto c = hn::MulAdd(f, get(r.c_before), i * g);
    auto h = o * math::tanh(d, c);
    put(i, r.gates);
    put(f, r.gates + n);
    put(g, r.gates + 2 * n);
    put(o, r.gates + 3 * n);
    put(c, r.c);
    put(h, r.h);
    put(h, r.state);
  });
}

template <class T>
void gru_forward(const CellRow<T>& row) {
  const int64_t n = row.hidden;
  each_vector<T>(row.from, row.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto r = math::sigmoid(d, get(row.gates) + get(row.bias)),
         z = math::sigmoid(d, get(row.gates + n) + get(row.bias + n)),
         q = get(row.gates + 3 * n) + get(row.bias_new);
    auto m = math::tanh(d, hn::MulAdd(r, q, get(row.gates + 2 * n) + get(row.bias + 2 * n)));
    auto h = hn::MulAdd(z, get(row.h_before) - m, m);
    put(r, row.gates);
    put(z, row.gates + n);
    put(m, row.gates + 2 * n);
    put(q, row.gates + 3 * n);
    put(h, row.h);
    put(h, row.state);
  });
}

template <bool Relu, class T>
void plain_forward(const CellRow<T>& r) {
  each_vector<T>(r.from, r.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto x = get(r.h) + get(r.bias);
    if constexpr (Relu)
      x = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    else
      x = math::tanh(d, x);
    put(x, r.h);
    put(x, r.state);
  });
}

template <class T>
void lstm_backward(const CellGrad<T>& r) {
  const int64_t n = r.hidden;
  each_vector<T>(r.from, r.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto one = hn::Set(d, T(1)), dh = get(r.dh) + get(r.grad);
    auto i = get(r.gates), f = get(r.gates + n), g = get(r.gates + 2 * n), o = get(r.gates + 3 * n),
         t = math::tanh(d, get(r.c));
    auto dc = hn::MulAdd(dh * o, hn::NegMulAdd(t, t, one), get(r.dc));
    put(dc * g * i * (one - i), r.d_input);
    put(dc * get(r.c_before) * f * (one - f), r.d_input + n);
    put(dc * i * hn::NegMulAdd(g, g, one), r.d_input + 2 * n);
    put(dh * t * o * (one - o), r.d_input + 3 * n);
    put(dc * f, r.dc);
  });
}

template <class T>
void gru_backward(const CellGrad<T>& row) {
  const int64_t n = row.hidden;
  each_vector<T>(row.from, row.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto one = hn::Set(d, T(1)), dh = get(row.dh) + get(row.grad);
    auto r = get(row.gates), z = get(row.gates + n), m = get(row.gates + 2 * n),
         q = get(row.gates + 3 * n);
    auto dm = dh * (one - z) * hn::NegMulAdd(m, m, one);
    auto dr = dm * q * r * (one - r), dz = dh * (get(row.h_before) - m) * z * (one - z);
    for (T* to : {row.d_input, row.d_hidden}) {
      put(dr, to);
      put(dz, to + n);
    }
    put(dm, row.d_input + 2 * n);
    put(dm * r, row.d_hidden + 2 * n);
    put(dh * z, row.dh);
  });
}

template <bool Relu, class T>
void plain_backward(const CellGrad<T>& r) {
  each_vector<T>(r.from, r.to, [&](auto d, int64_t, auto get, auto put) HWY_ATTR {
    auto h = get(r.h), dh = get(r.dh) + get(r.grad);
    if constexpr (Relu)
      put(hn::IfThenElse(hn::Gt(h, hn::Zero(d)), dh, hn::Zero(d)), r.d_input);
    else
      put(dh * hn::NegMulAdd(h, h, hn::Set(d, T(1))), r.d_input);
  });
}

template <class T>
void rnn_forward(Cell kind, const CellRow<T>& r) {
  switch (kind) {
    case Cell::lstm:
      return lstm_forward(r);
    case Cell::gru:
      return gru_forward(r);
    case Cell::tanh:
      return plain_forward<false>(r);
    case Cell::relu:
      return plain_forward<true>(r);
  }
}

template <class T>
void rnn_backward(Cell kind, const CellGrad<T>& r) {
  switch (kind) {
    case Cell::lstm:
      return lstm_backward(r);
    case Cell::gru:
      return gru_backward(r);
    case Cell::tanh:
      return plain_backward<false>(r);
    case Cell::relu:
      return plain_backward<true>(r);
  }
}

template <class T>
int64_t rnn_width() {
  return 2 * int64_t(hn::Lanes(hn::ScalableTag<T>()));
}

}  // namespace adjoin::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace adjoin::cpu {

template <class T>
const RnnVectors<T>& rnn_vectors() {
  static const RnnVectors<T> table = {AJ_SIMD(rnn_width<T>)(), AJ_SIMD(rnn_pack<T>),
                                      AJ_SIMD(rnn_multiply<T>), AJ_SIMD(rnn_forward<T>),
                                      AJ_SIMD(rnn_backward<T>)};
  return table;
}
template const RnnVectors<float>& rnn_vectors<float>();
template const RnnVectors<double>& rnn_vectors<double>();

}  // namespace adjoin::cpu
#endif

// plugins/ops_linalg/cpu/householder.cpp: QR and the columns of Q by blocks of reflections.
#include "householder.hpp"

#include <algorithm>

namespace adjoin::cpu::householder {
namespace {

// Columns whose reflections are applied together.
int64_t block_of(int64_t k) { return k >= 512 ? 4 * kPanel : k >= 192 ? 2 * kPanel : kPanel; }

// Reflections of w columns: V (m, w), ones on its diagonal and zeros above; T (w, w), zeros below
// its diagonal. With memory for what they are applied to.
template <class T>
struct Reflections {
  Block<T> v, t, sums, more;
  int64_t wide;

  Reflections(int64_t m, int64_t k, T* work) : wide(std::min(block_of(k), k)) {
    v = {work, 1, m}, work += m * wide;
    t = {work, 1, wide}, work += wide * wide;
    sums = {work, 1, wide}, more = {nullptr, 1, wide};
  }
  void room(int64_t n) { more.at = sums.at + wide * std::max(n, wide); }

  // V of the vectors that stand in A's columns j ... j + w - 1.
  void copy(Block<const T> a, int64_t m, int64_t j, int64_t w) {
    for (int64_t c = j; c < j + w; ++c) {
      T* to = v.at + c * v.column;
      std::fill_n(to, std::min(c, m), T(0));
      to[c] = 1;
      std::copy(a.at + c * a.column + c + 1, a.at + c * a.column + m, to + c + 1);
    }
  }
  // T of V's columns j ... j + w - 1.
  void join(int64_t m, int64_t j, int64_t w, const T* tau) {
    const Block<T> part = v.part(j, j), to = t.part(j, j);
    multiply(sums, part.transposed().read(), part.read(), w, w, m - j, 1, 0);
    for (int64_t c = 0; c < w; ++c) {
      T* x = to.at + c * to.column;
      std::fill_n(x, w, T(0));
      for (int64_t k = 0; k < c; ++k) {
        const T *before = to.at + k * to.column, s = sums.at[k + c * sums.column];
        for (int64_t i = 0; i <= k; ++i) x[i] += before[i] * s;
      }
      for (int64_t i = 0; i < c; ++i) x[i] *= -tau[c];
      x[c] = tau[c];
    }
  }
  // T of the columns j ... j + h - 1 and j + h ... j + w - 1, whose own are there.
  void join(int64_t m, int64_t j, int64_t h, int64_t w) {
    const Block<T> second = v.part(j + h, j + h), corner = t.part(j, j + h);
    multiply(sums, v.part(j + h, j).transposed().read(), second.read(), h, w - h, m - j - h, 1, 0);
    multiply(more, t.part(j, j).read(), sums.read(), h, w - h, h, 1, 0);
    multiply(corner, more.read(), t.part(j + h, j + h).read(), h, w - h, w - h, -1, 0);
    for (int64_t c = 0; c < h; ++c) std::fill_n(t.part(j + h, j + c).at, w - h, T(0));
  }
  // C (m, n) becomes H C, or H^T C, of the columns j ... j + w - 1; row j of V is C's first.
  void apply(Block<T> c, int64_t m, int64_t n, int64_t j, int64_t w, bool transposed) {
    const Block<const T> part = v.part(j, j).read(), one = t.part(j, j).read();
    multiply(sums, part.transposed(), c.read(), w, n, m, 1, 0);
    multiply(more, transposed ? one.transposed() : one, sums.read(), w, n, w, 1, 0);
    subtract_product(c, part, more.read(), m, n, w);
  }
  // QR of A's columns j ... j + w - 1 from row j on.
  void columns(Block<T> a, int64_t m, int64_t j, int64_t w, T* tau) {
    const Block<T> part = a.part(j, j);
    if (w <= kPanel) {
      code<T>().panel(part.at, part.column, m - j, w, tau + j);
      copy(a.read(), m, j, w);
      return join(m, j, w, tau + j);
    }
    const int64_t h = (w / 2 + kPanel - 1) / kPanel * kPanel;
    columns(a, m, j, h, tau);
    apply(a.part(j, j + h), m - j, w - h, j, h, true);
    columns(a, m, j + h, w - h, tau);
    join(m, j, h, w);
  }
};

}  // namespace

int64_t work_of(int64_t m, int64_t n) {
  const int64_t wide = block_of(std::min(m, n));
  return m * wide + wide * wide + 2 * wide * std::max(n, wide);
}

template <class T>
void factor(Block<T> a, int64_t m, int64_t n, T* tau, T* work) {
  const int64_t k = std::min(m, n);
  Reflections<T> block(m, k, work);
  block.room(n);
  for (int64_t j = 0; j < k; j += block.wide) {
    const int64_t w = std::min(block.wide, k - j);
    block.columns(a.part(j, j), m - j, 0, w, tau + j);
    block.apply(a.part(j, j + w), m - j, n - j - w, 0, w, true);
  }
}

template <class T>
void form(Block<T> a, int64_t m, int64_t n, int64_t k, const T* tau, T* work) {
  for (int64_t j = k; j < n; ++j) {
    std::fill_n(a.at + j * a.column, m, T(0));
    a.at[j + j * a.column] = 1;
  }
  if (k == 0) return;
  Reflections<T> block(m, k, work);
  block.room(n);
  for (int64_t j = (k - 1) / block.wide * block.wide; j >= 0; j -= block.wide) {
    const int64_t w = std::min(block.wide, k - j);
    const Block<T> part = a.part(j, j);
    block.copy(part.read(), m - j, 0, w);
    for (int64_t i = 0; i < w; i += kPanel)
      block.join(m - j, i, std::min(kPanel, w - i), tau + j + i);
    for (int64_t h = kPanel; h < w; h *= 2)
      for (int64_t i = 0; i + h < w; i += 2 * h) block.join(m - j, i, h, std::min(2 * h, w - i));
    block.apply(part.part(0, w), m - j, n - j - w, 0, w, false);
    // The block's own columns: those of I - V (T V1^T), V1 the top of V.
    multiply(block.more, block.t.read(), block.v.transposed().read(), w, w, w, 1, 0);
    multiply(part, block.v.read(), block.more.read(), m - j, w, w, -1, 0);
    for (int64_t c = 0; c < w; ++c) {
      part.at[c + c * part.column] += 1;
      std::fill_n(a.at + (j + c) * a.column, j, T(0));
    }
  }
}

template void factor(Block<float>, int64_t, int64_t, float*, float*);
template void factor(Block<double>, int64_t, int64_t, double*, double*);
template void form(Block<float>, int64_t, int64_t, int64_t, const float*, float*);
template void form(Block<double>, int64_t, int64_t, int64_t, const double*, double*);

}  // namespace adjoin::cpu::householder

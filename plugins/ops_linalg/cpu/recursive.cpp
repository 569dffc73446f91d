// plugins/ops_linalg/cpu/recursive.cpp: the offer of Cholesky, LU and triangular solves of real
// matrices by halves, and of QR, over the products of "aj.blas/cpu".
#include <adjoin/kit/parallel.hpp>

#include "blocks.hpp"
#include "householder.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;
using blocks::kPanel;
using blocks::kTriangle;

// The larger half, in whole leaves.
int64_t half_of(int64_t n, int64_t leaf) { return (n / 2 + leaf - 1) / leaf * leaf; }

// op(A) X = B.
template <class T>
void solve_left(Block<const T> a, bool upper, bool unit, Block<T> b, int64_t n, int64_t m) {
  if (n <= kTriangle)
    return blocks::code<T>().left(a.at, a.row, a.column, upper, unit, b.at, b.column, n, m);
  const int64_t h = half_of(n, kTriangle), first = upper ? h : 0, rest = upper ? 0 : h,
                one = upper ? n - h : h, other = n - one;
  solve_left(a.part(first, first), upper, unit, b.part(first, 0), one, m);
  subtract_product(b.part(rest, 0), a.part(rest, first), b.part(first, 0).read(), other, m, one);
  solve_left(a.part(rest, rest), upper, unit, b.part(rest, 0), other, m);
}

// X op(A) = B.
template <class T>
void solve_right(Block<const T> a, bool upper, bool unit, Block<T> b, int64_t m, int64_t n) {
  if (n <= kTriangle)
    return blocks::code<T>().right(a.at, a.row, a.column, upper, unit, b.at, b.column, m, n);
  const int64_t h = half_of(n, kTriangle), first = upper ? 0 : h, rest = upper ? h : 0,
                one = upper ? h : n - h, other = n - one;
  solve_right(a.part(first, first), upper, unit, b.part(0, first), m, one);
  subtract_product(b.part(0, rest), b.part(0, first).read(), a.part(first, rest), m, other, one);
  solve_right(a.part(rest, rest), upper, unit, b.part(0, rest), m, other);
}

// The lower triangle of C -= A A^T, or of the upper one: A^T A, with transposed blocks.
template <class T>
void subtract_square(Block<T> c, Block<const T> a, int64_t n, int64_t k, bool upper) {
  constexpr int64_t leaf = 64;
  if (n <= leaf) return subtract_product(c, a, a.transposed(), n, n, k);
  const int64_t h = half_of(n, leaf);
  subtract_square(c, a, h, k, upper);
  subtract_square(c.part(h, h), a.part(h, 0), n - h, k, upper);
  if (upper)
    subtract_product(c.part(0, h), a, a.part(h, 0).transposed(), h, n - h, k);
  else
    subtract_product(c.part(h, 0), a.part(h, 0), a.transposed(), n - h, h, k);
}

template <class T>
int32_t cholesky(Block<T> a, int64_t n, bool upper) {
  if (n <= kPanel) return factor::cholesky(factor::Matrix<T>{a.at, n, n, a.column}, upper);
  const int64_t h = half_of(n, kPanel);
  if (const int32_t info = cholesky(a, h, upper)) return info;
  const Block<T> other = upper ? a.part(0, h) : a.part(h, 0), rest = a.part(h, h);
  if (upper) {
    solve_left(a.transposed().read(), false, false, other, h, n - h);
    subtract_square(rest, other.transposed().read(), n - h, h, true);
  } else {
    solve_right(a.transposed().read(), true, false, other, n - h, h);
    subtract_square(rest, other.read(), n - h, h, false);
  }
  const int32_t info = cholesky(rest, n - h, upper);
  return info ? info + int32_t(h) : 0;
}

// Eight columns at once, so that their loads do not wait for each other.
template <class T>
void exchange(Block<T> a, const int32_t* pivots, int64_t count, int64_t columns) {
  constexpr int64_t wide = 8;
  const int64_t ld = a.column;
  int64_t j = 0;
  for (; j + wide <= columns; j += wide)
    for (int64_t i = 0; i < count; ++i) {
      if (pivots[i] == i) continue;
      T *x = a.at + j * ld + i, *y = a.at + j * ld + pivots[i];
      T p[wide], q[wide];
      for (int64_t c = 0; c < wide; ++c) p[c] = x[c * ld], q[c] = y[c * ld];
      for (int64_t c = 0; c < wide; ++c) x[c * ld] = q[c], y[c * ld] = p[c];
    }
  for (; j < columns; ++j) {
    T* x = a.at + j * ld;
    for (int64_t i = 0; i < count; ++i) std::swap(x[i], x[pivots[i]]);
  }
}

// Pivots count from 0.
template <class T>
int32_t lu(Block<T> a, int64_t m, int64_t n, int32_t* pivots) {
  const int64_t least = std::min(m, n);
  if (n <= kPanel) return blocks::code<T>().panel(a.at, a.column, m, n, pivots);
  const int64_t h = least <= kPanel ? least : half_of(least, kPanel);
  if (h == least && n > least) {  // the rest is no part of the square
    const int32_t info = lu(a, m, least, pivots);
    exchange(a.part(0, least), pivots, least, n - least);
    solve_left(a.read(), false, true, a.part(0, least), least, n - least);
    return info;
  }
  int32_t info = lu(a, m, h, pivots);
  const Block<T> right = a.part(0, h);
  exchange(right, pivots, h, n - h);
  solve_left(a.read(), false, true, right, h, n - h);
  subtract_product(a.part(h, h), a.part(h, 0).read(), right.read(), m - h, n - h, h);
  const int32_t more = lu(a.part(h, h), m - h, n - h, pivots + h);
  exchange(a.part(h, 0), pivots + h, least - h, h);
  for (int64_t i = h; i < least; ++i) pivots[i] += int32_t(h);
  if (!info && more) info = more + int32_t(h);
  return info;
}

template <class T>
void one(const aj_linalg_problem& p, int64_t i, T* work) {
  const bool upper = p.flags & AJ_LINALG_UPPER, unit = p.flags & AJ_LINALG_UNIT;
  auto block = [&](const aj_linalg_matrix& m) {
    return Block<T>{matrix_at<T>(m, i, 0, 0).at, 1, m.ld};
  };
  switch (p.routine) {
    case AJ_LINALG_POTRF:
      p.info[i] = cholesky(block(p.a), p.n, upper);
      return;
    case AJ_LINALG_GETRF: {
      const int64_t least = std::min(p.m, p.n);
      int32_t* pivots = p.pivots + i * least;
      p.info[i] = lu(block(p.a), p.m, p.n, pivots);
      for (int64_t k = 0; k < least; ++k) ++pivots[k];
      return;
    }
    case AJ_LINALG_GEQRF:
      return householder::factor(block(p.a), p.m, p.n, block(p.b).at, work);
    case AJ_LINALG_ORGQR:
      return householder::form(block(p.a), p.m, p.n, p.k, block(p.b).at, work);
    default: {
      Block<const T> a = block(p.a).read();
      if (p.trans) a = a.transposed();
      const bool above = upper != (p.trans != 0);
      if (p.flags & AJ_LINALG_RIGHT)
        solve_right(a, above, unit, block(p.b), p.m, p.n);
      else
        solve_left(a, above, unit, block(p.b), p.m, p.n);
    }
  }
}

int32_t score(void*, const aj_linalg_problem* p) {
  if (p->dtype.code != kDLFloat || isa() == Isa::none || Products::now().named) return 0;
  const bool right = p->flags & AJ_LINALG_RIGHT;
  constexpr int64_t small = 16;  // below plain loops are as fast
  int64_t n = p->n, least = small;
  switch (p->routine) {
    case AJ_LINALG_POTRF:
    case AJ_LINALG_GETRF:
      break;
    case AJ_LINALG_TRSM:
      n = right ? p->n : p->m;
      break;
    case AJ_LINALG_GEQRF:
    case AJ_LINALG_ORGQR:
      n = std::min(p->m, p->n), least = 4;
      break;
    default:
      return 0;
  }
  return n >= least && std::max(p->m, p->n) < INT32_MAX / 8 ? 200 : 0;
}

int64_t elements(const aj_linalg_problem& p) {
  const bool reflects = p.routine == AJ_LINALG_GEQRF || p.routine == AJ_LINALG_ORGQR;
  return reflects ? householder::work_of(p.m, p.n) : 0;
}
uint64_t workspace(void*, const aj_linalg_problem* p) {
  return uint64_t(elements(*p) * kit::bytes_of(p->dtype));
}
aj_status* run(void*, const aj_linalg_problem* p, void* work) {
  return guard("linalg", [&] {
    visit<Types<float, double>>(p->dtype, [&]<class T>() {
      for (int64_t i = 0; i < p->batch; ++i) one(*p, i, static_cast<T*>(work));
    });
  });
}

}  // namespace

const aj_linalg recursive_linalg = {.struct_size = sizeof(aj_linalg),
                                    .minor = AJ_ABI_MINOR,
                                    .name = AJ_STR_LIT("recursive"),
                                    .self = nullptr,
                                    .score = score,
                                    .workspace = workspace,
                                    .run = run};

}  // namespace adjoin::cpu

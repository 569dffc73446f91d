// plugins/ops_linalg/cpu/recursive.cpp: the offer of Cholesky, LU and triangular solves of real
// matrices by halves, over the products of "aj.blas/cpu".
#include <adjoin/kit/parallel.hpp>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "blocks.hpp"
#include "offers.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;
using blocks::kPanel;
using blocks::kTriangle;

// Who multiplies, looked up once for every revision of the services.
struct Products {
  uint64_t revision;
  std::vector<const aj_blas*> all;

  static const Products& now() {
    static std::atomic<const Products*> kept{nullptr};
    const Products* found = kept.load(std::memory_order_acquire);
    const uint64_t revision = services_revision();
    if (found && found->revision == revision) return *found;
    auto* made = new Products{revision, {}};  // the old one stays: others may read it
    constexpr aj_str slot = {"aj.blas/cpu", 11};
    // Our own products, which know this processor, unless somebody chose.
    const bool chosen =
        secure_getenv("ADJOIN_BLAS") ||
        (AJ_HAS_FN(&services(), aj_services, chosen) && !view_of(services().chosen(slot)).empty());
    for (uint32_t i = 0; i < services().count(slot); ++i) {
      aj_service_def def{};
      def.struct_size = sizeof def;
      if (aj_status* status = services().at(slot, i, &def))
        core().status_free(status);
      else if (!chosen && view_of(def.name) == "own" && isa() >= Isa::avx2)
        made->all.assign(1, static_cast<const aj_blas*>(def.table)), i = UINT32_MAX - 1;
      else if (i == 0 || def.priority >= 0)
        made->all.push_back(static_cast<const aj_blas*>(def.table));
    }
    kept.store(made, std::memory_order_release);
    return *made;
  }
  void run(const aj_gemm& g) const {
    const aj_blas* best = nullptr;
    int32_t most = 0;
    for (const aj_blas* one : all)
      if (const int32_t score = one->score(one->self, &g); score > most) best = one, most = score;
    if (!best) raise(AJ_UNIMPLEMENTED, "no service of aj.blas/cpu multiplies ", g.dtype);
    check(best->gemm(best->self, &g));
  }
};

// Element (i, j) is at i * row + j * column; one of the two is 1.
template <class T>
struct Block {
  T* at;
  int64_t row, column;
  Block part(int64_t i, int64_t j) const { return {at + i * row + j * column, row, column}; }
  Block transposed() const { return {at, column, row}; }
  Block<const T> read() const { return {at, row, column}; }
};

// C -= A B; the columns of C are dense.
template <class T>
void subtract_product(Block<T> c, Block<const T> a, Block<const T> b, int64_t m, int64_t n,
                      int64_t k) {
  if (m == 0 || n == 0 || k == 0) return;
  aj_gemm g{};  // by rows, so of everything the transposed
  g.struct_size = sizeof g;
  g.dtype = dtype_of<T>, g.device = {kDLCPU, 0};
  g.batch = 1, g.m = n, g.n = m, g.k = k;
  g.a = b.at, g.trans_a = b.row != 1, g.lda = b.row != 1 ? b.row : b.column;
  g.b = a.at, g.trans_b = a.row != 1, g.ldb = a.row != 1 ? a.row : a.column;
  g.c = c.at, g.ldc = c.column;
  g.alpha = -1, g.beta = 1;
  Products::now().run(g);
}

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

template <class T>
void exchange(Block<T> a, const int32_t* pivots, int64_t count, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    T* x = a.at + j * a.column;
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
void one(const aj_linalg_problem& p, int64_t i) {
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
  if (p->dtype.code != kDLFloat || isa() == Isa::none) return 0;
  // Who names a library is served by its LAPACK.
  const char* named = secure_getenv("ADJOIN_BLAS");
  if (named && *named && std::string_view(named) != "own") return 0;
  if (p->routine != AJ_LINALG_POTRF && p->routine != AJ_LINALG_GETRF &&
      p->routine != AJ_LINALG_TRSM)
    return 0;
  constexpr int64_t least = 16;  // below plain loops are as fast
  const int64_t n = p->routine == AJ_LINALG_TRSM && !(p->flags & AJ_LINALG_RIGHT) ? p->m : p->n;
  return n >= least && std::max(p->m, p->n) < INT32_MAX / 8 ? 200 : 0;
}
uint64_t workspace(void*, const aj_linalg_problem*) { return 0; }
aj_status* run(void*, const aj_linalg_problem* p, void*) {
  return guard("linalg", [&] {
    visit<Types<float, double>>(p->dtype, [&]<class T>() {
      for (int64_t i = 0; i < p->batch; ++i) one<T>(*p, i);
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

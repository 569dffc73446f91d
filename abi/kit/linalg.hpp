// adjoin/kit/linalg.hpp: problems of abi/linalg.h: plain loops that serve them, and kernels of ops
// that make problems of a call's tensors in host memory.
#ifndef ADJOIN_KIT_LINALG_HPP
#define ADJOIN_KIT_LINALG_HPP
#include <adjoin/abi/linalg.h>

#include <adjoin/kit/spectral.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <cstring>

namespace adjoin {
namespace AJ_HIDDEN kit {

// One matrix of a problem.
template <class T>
factor::Matrix<T> matrix_at(const aj_linalg_matrix& m, int64_t i, int64_t rows, int64_t columns) {
  T* at = m.data ? reinterpret_cast<T*>(static_cast<char*>(m.data) + m.offset) : nullptr;
  return {at ? at + i * m.stride : nullptr, rows, columns, m.ld};
}

template <class T>
void plain_one(const aj_linalg_problem& p, int64_t i) {
  const bool upper = p.flags & AJ_LINALG_UPPER, vectors = p.flags & AJ_LINALG_VECTORS;
  const int64_t k = std::min(p.m, p.n);
  auto a = [&](int64_t rows, int64_t columns) { return matrix_at<T>(p.a, i, rows, columns); };
  auto values = [&] { return matrix_at<Real<T>>(p.b, i, k, 1).at; };
  switch (p.routine) {
    case AJ_LINALG_POTRF:
      p.info[i] = factor::cholesky(a(p.n, p.n), upper);
      return;
    case AJ_LINALG_GETRF:
      p.info[i] = factor::lu(a(p.m, p.n), p.pivots + i * k);
      return;
    case AJ_LINALG_TRSM: {
      const bool left = !(p.flags & AJ_LINALG_RIGHT);
      const int64_t n = left ? p.m : p.n;
      return factor::solve_triangular(a(n, n), matrix_at<T>(p.b, i, p.m, p.n),
                                      {left, upper, (p.flags & AJ_LINALG_UNIT) != 0, p.trans});
    }
    case AJ_LINALG_GEQRF:
      return factor::qr(a(p.m, p.n), matrix_at<T>(p.b, i, k, 1).at);
    case AJ_LINALG_ORGQR:
      return factor::form_q(a(p.m, p.n), matrix_at<T>(p.b, i, p.k, 1).at, p.k);
    case AJ_LINALG_HEEVD:
      p.info[i] = 0;
      return factor::eigh(a(p.n, p.n), upper, matrix_at<Real<T>>(p.b, i, p.n, 1).at);
    case AJ_LINALG_GESDD: {
      const bool full = p.flags & AJ_LINALG_FULL;
      factor::Matrix<T> u = {nullptr, 0, 0, 0}, vh = u;
      if (vectors) {
        u = matrix_at<T>(p.c, i, p.m, full ? p.m : k);
        vh = matrix_at<T>(p.d, i, full ? p.n : k, p.n);
      }
      p.info[i] = factor::svd(a(p.m, p.n), u, vh, values()) ? 0 : 1;
      return;
    }
    default: {
      using C = factor::ComplexOf<T>;
      factor::Matrix<C> v = {nullptr, 0, 0, 0};
      if (vectors) v = matrix_at<C>(p.c, i, p.n, p.n);
      p.info[i] = factor::eig(a(p.n, p.n), v, matrix_at<C>(p.b, i, p.n, 1).at) ? 0 : 1;
    }
  }
}

inline void plain_linalg(const aj_linalg_problem& p) {
  visit<floating_complex>(p.dtype, [&]<class T>() {
    for (int64_t i = 0; i < p.batch; ++i) plain_one<T>(p, i);
  });
}

// Four rows of four.
inline void turn_square(const float* from, int64_t down, float* to, int64_t step) {
  using Four = float __attribute__((vector_size(16)));
  Four x[4], y[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&x[i], from + i * down, sizeof x[i]);
  for (int i = 0; i < 2; ++i) {
    y[i] = __builtin_shufflevector(x[i], x[i + 2], 0, 4, 1, 5);
    y[i + 2] = __builtin_shufflevector(x[i], x[i + 2], 2, 6, 3, 7);
  }
  for (int i = 0; i < 4; i += 2) {
    x[i] = __builtin_shufflevector(y[i], y[i + 1], 0, 4, 1, 5);
    x[i + 1] = __builtin_shufflevector(y[i], y[i + 1], 2, 6, 3, 7);
  }
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * step, &x[i], sizeof x[i]);
}

// to(c, r) = from(r, c), r below `rows`, c below `columns`: rows of `from` lie `down` apart, those
// of `to` `step`. Squares are turned in registers.
template <class T>
void turn_over(const T* from, int64_t down, int64_t rows, int64_t columns, T* to, int64_t step) {
  constexpr int64_t tile = 16;
  auto plainly = [&](int64_t r, int64_t last_r, int64_t c, int64_t last_c) {
    for (int64_t j = c; j < last_c; ++j)
      for (int64_t i = r; i < last_r; ++i) to[j * step + i] = from[i * down + j];
  };
  for (int64_t c = 0; c < columns; c += tile)
    for (int64_t r = 0; r < rows; r += tile) {
      const int64_t last_r = std::min(rows, r + tile), last_c = std::min(columns, c + tile);
      if constexpr (std::is_same_v<T, float>) {
        if (last_r == r + tile && last_c == c + tile) {
          for (int64_t i = r; i < last_r; i += 4)
            for (int64_t j = c; j < last_c; j += 4)
              turn_square(from + i * down + j, down, to + j * step + i, step);
          continue;
        }
      }
      plainly(r, last_r, c, last_c);
    }
}

// The matrices of a tensor, one after the other, each column by column: where they lie, or a copy.
template <class T>
class Stack {
 public:
  int64_t batch = 1, rows, columns;

  explicit Stack(TensorView t, bool copied = false)
      : rows(t.size(-2)), columns(t.size(-1)), view_(t) {
    for (int64_t d = 0; d < t.ndim() - 2; ++d) batch *= t.size(d);
    if (!copied && lies_so()) {
      data_ = const_cast<T*>(t.data<T>());
      return;
    }
    memory_.reset(new T[size_t(std::max<int64_t>(1, batch * rows * columns))]);
    data_ = memory_.get();
  }
  // An argument's values, to be read (in its place) or used up (a copy).
  static Stack of(TensorView t, bool used_up) {
    Stack s(t, used_up);
    if (s.memory_) s.read(t);
    return s;
  }
  // A copy, for what is the same of square matrices and their transposed: of those that are copied
  // faster.
  static Stack either_way(TensorView t) {
    Stack s(t, true);
    if (t.stride(-1) != 1) {
      s.read(t);
      return s;
    }
    for (int64_t i = 0; i < s.batch; ++i)
      for (int64_t r = 0; r < s.rows; ++r)
        std::copy_n(of_stack<const T>(t, i) + r * t.stride(-2), s.columns, s[i] + r * s.columns);
    return s;
  }
  T* operator[](int64_t i) const { return data_ + i * rows * columns; }
  factor::Matrix<T> at(int64_t i) const { return {(*this)[i], rows, columns, ld()}; }
  int64_t ld() const { return std::max<int64_t>(1, rows); }
  aj_linalg_matrix matrix() const { return {data_, 0, ld(), rows * columns}; }

  // The upper left part of each from another tensor, which broadcasts.
  void read(TensorView from) {
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t m = std::min(rows, from.size(-2)), n = std::min(columns, from.size(-1));
      if (from.stride(-1) == 1)
        turn_over(of_stack<const T>(from, i), from.stride(-2), m, n, (*this)[i], rows);
      else
        move<const T>(from, i, [](const T& x, T& own) { own = x; });
    }
  }
  void commit() {
    if (!memory_) return;
    for (int64_t i = 0; i < batch; ++i)
      if (view_.stride(-1) == 1)
        turn_over((*this)[i], rows, columns, rows, of_stack<T>(view_, i), view_.stride(-2));
      else
        move<T>(view_, i, [](T& x, const T& own) { x = own; });
  }

 private:
  bool lies_so() const {
    int64_t step = rows * columns;
    if ((rows > 1 && view_.stride(-2) != 1) || (columns > 1 && view_.stride(-1) != rows))
      return false;
    for (int64_t d = view_.ndim() - 3; d >= 0; --d) {
      if (view_.size(d) > 1 && view_.stride(d) != step) return false;
      step *= view_.size(d);
    }
    return true;
  }
  // Matrix i of a tensor's.
  template <class Other>
  static Other* of_stack(const TensorView& t, int64_t i) {
    int64_t offset = 0, rest = i;
    for (int64_t d = t.ndim() - 3; d >= 0; rest /= t.size(d), --d)
      offset += rest % t.size(d) * t.stride(d);
    return reinterpret_cast<Other*>(const_cast<char*>(t.bytes())) + offset;
  }
  template <class Other, class F>
  void move(TensorView t, int64_t i, F f) const {
    constexpr int64_t tile = 16;
    Other* other = of_stack<Other>(t, i);
    const int64_t m = std::min(rows, t.size(-2)), n = std::min(columns, t.size(-1)),
                  down = t.stride(-2), right = t.stride(-1);
    T* own = (*this)[i];
    for (int64_t c = 0; c < n; c += tile)
      for (int64_t r = 0; r < m; r += tile)
        for (int64_t j = c; j < std::min(n, c + tile); ++j)
          for (int64_t k = r; k < std::min(m, r + tile); ++k)
            f(other[k * down + j * right], own[k + j * rows]);
  }

  TensorView view_;
  T* data_;
  std::unique_ptr<T[]> memory_;
};

inline aj_linalg_problem problem_of(const Args& args, int32_t routine, int64_t batch, int64_t m,
                                    int64_t n) {
  aj_linalg_problem p{};
  p.struct_size = sizeof p;
  p.routine = routine;
  p.dtype = args.tensor(0).dtype();
  p.device = args.tensor(0).device();
  p.batch = batch, p.m = m, p.n = n;
  p.stream = args.call()->stream;
  return p;
}

inline uint32_t when(bool on, uint32_t flag) { return on ? flag : 0; }

// Says why an op has no result; `where` names the element of a stack: "(batch element 3): ", or
// nothing. The code is the problem's info.
enum class Failed { cholesky, lu, solve, inverse, eig_of_nan, svd_of_nan, convergence };
[[noreturn, gnu::cold, gnu::noinline]] inline void tell_failed(Failed what,
                                                               const std::string& where,
                                                               int32_t code) {
  constexpr char kind[] = "LinAlgError";
  constexpr int32_t wrong = AJ_INVALID_ARGUMENT;
  switch (what) {
    case Failed::cholesky:
      raise_as(kind, wrong, where,
               "the matrix is not positive-definite: its leading minor of order ", code,
               " is not; a shift of the diagonal makes it so");
    case Failed::lu:
      raise(wrong, where, "element ", code, " of U's diagonal is zero, and lu_solve ",
            "would divide by it; lu and lu_factor_ex give the factors");
    case Failed::solve:
      raise_as(kind, wrong, where, "the matrix is singular: element ", code,
               " of U's diagonal is zero, so there is no one solution; lstsq finds one");
    case Failed::inverse:
      raise_as(kind, wrong, where, "the matrix is singular: element ", code,
               " of U's diagonal is zero, so there is no inverse; pinv finds the next best");
    case Failed::eig_of_nan:
      raise(wrong, where, "the matrix holds NaN or infinity, which have no eigenvalues");
    case Failed::svd_of_nan:
      raise_as(kind, wrong, where,
               "the matrix holds NaN or infinity, which have no singular values");
    default:
      raise_as(kind, wrong, where, "the algorithm did not converge: code ", code,
               "; float64 may help");
  }
}
// "(batch element 3): "; of a single matrix nothing.
inline std::string element_of(const TensorView& t, int64_t i) {
  return t.ndim() > 2 ? text("(batch element ", i, "): ") : std::string();
}
// The first of the stack whose info is not 0.
inline void tell_first_failed(Failed what, const TensorView& t, const int32_t* info,
                              int64_t batch) {
  for (int64_t i = 0; i < batch; ++i)
    if (info[i]) tell_failed(what, element_of(t, i), info[i]);
}
inline void want_pivots(bool wanted) {
  if (!wanted)
    raise(AJ_UNIMPLEMENTED, "a factorisation without pivots is not there on this device; ",
          "leave pivot=True");
}

// Kernels of ops; Solver::run serves a problem.
template <class Solver>
struct Factorings {
  static void cholesky(Args args) {
    each(args, [&]<class T>() {
      Stack<T> l(args.result(0));
      Dense<int32_t> info(args.result(1));
      l.read(args.tensor(0));
      auto p = problem_of(args, AJ_LINALG_POTRF, l.batch, l.rows, l.rows);
      const bool upper = args.flag(1);
      p.flags = when(upper, AJ_LINALG_UPPER);
      p.a = l.matrix(), p.info = info.data();
      Solver::run(p);
      for (int64_t i = 0; i < l.batch; ++i)
        for (int64_t j = 0; j < l.rows; ++j) {
          T* column = l.at(i).column(j);
          std::fill(upper ? column + j + 1 : column, upper ? column + l.rows : column + j, T(0));
        }
      void_where_failed(l, info);
      l.commit(), info.commit();
      if (args.flag(2)) tell_first_failed(Failed::cholesky, args.tensor(0), info.data(), l.batch);
    });
  }

  static void lu(Args args) {
    each(args, [&]<class T>() {
      want_pivots(args.flag(1));
      Stack<T> a(args.result(0));
      Dense<int32_t> pivots(args.result(1)), info(args.result(2));
      a.read(args.tensor(0));
      factor_lu(args, a, pivots.data(), info.data());
      a.commit(), pivots.commit(), info.commit();
      if (args.flag(2)) tell_first_failed(Failed::lu, args.tensor(0), info.data(), a.batch);
    });
  }

  static void pivot_order(Args args) {
    Dense<int64_t> exchanges(args.tensor(0)), order(args.result(0));
    const int64_t rows = args.integer(1), k = args.tensor(0).size(-1);
    const int64_t batch = rows ? args.result(0).numel() / rows : 0;
    for (int64_t i = 0; i < batch; ++i) {
      int64_t* from = order.data() + i * rows;
      for (int64_t j = 0; j < rows; ++j) from[j] = j;
      for (int64_t j = 0; j < k; ++j) {
        const int64_t other = exchanges[i * k + j];
        if (other < 0 || other >= rows)
          raise(AJ_OUT_OF_RANGE, "pivot ", other + 1, " is out of range: pivots are from 1 to ",
                rows);
        std::swap(from[j], from[other]);
      }
    }
    order.commit();
  }

  static void solve_triangular(Args args) {
    each(args, [&]<class T>() {
      Stack<T> x(args.result(0)), a = Stack<T>::of(args.tensor(0), false);
      x.read(args.tensor(1));
      auto p = problem_of(args, AJ_LINALG_TRSM, x.batch, x.rows, x.columns);
      p.flags = when(args.flag(2), AJ_LINALG_UPPER) | when(!args.flag(3), AJ_LINALG_RIGHT) |
                when(args.flag(4), AJ_LINALG_UNIT);
      p.a = a.matrix(), p.b = x.matrix();
      Solver::run(p);
      x.commit();
    });
  }

  static void solve(Args args) {
    each(args, [&]<class T>() {
      Stack<T> x(args.result(0));
      Dense<int32_t> info(args.result(1));
      x.read(args.tensor(1));
      solve_into(args, x, info);
      if (args.flag(2)) tell_first_failed(Failed::solve, args.tensor(0), info.data(), x.batch);
    });
  }
  static void inverse(Args args) {
    each(args, [&]<class T>() {
      Stack<T> x(args.result(0));
      Dense<int32_t> info(args.result(1));
      invert_into(args, x, info);
      if (args.flag(1)) tell_first_failed(Failed::inverse, args.tensor(0), info.data(), x.batch);
    });
  }

  static void det(Args args) {
    each(args, [&]<class T>() {
      determinants<T>(args, [&](Dense<T>& out, int64_t i, const factor::Matrix<T>& lu, bool odd) {
        T product(odd ? -1 : 1);
        for (int64_t j = 0; j < lu.rows; ++j) product = product * lu(j, j);
        out[i] = product;
      });
    });
  }
  static void slogdet(Args args) {
    each(args, [&]<class T>() {
      using R = Real<T>;
      Dense<R> logs(args.result(1));
      determinants<T>(args, [&](Dense<T>& sign, int64_t i, const factor::Matrix<T>& lu, bool odd) {
        T unit(odd ? -1 : 1);
        R sum = 0;
        for (int64_t j = 0; j < lu.rows; ++j) {
          const R length = factor::size(lu(j, j));
          unit = length == 0 ? T(0) : unit * (lu(j, j) / T(length));
          sum += std::log(length);
        }
        sign[i] = unit, logs[i] = sum;
      });
      logs.commit();
    });
  }

  static void qr(Args args) {
    each(args, [&]<class T>() {
      const bool no_q = args.string(1) == "r";
      TensorView in = args.tensor(0);
      const int64_t m = in.size(-2), n = in.size(-1), k = std::min(m, n);
      Stack<T> r(args.result(1)), a = Stack<T>::of(in, true);
      std::unique_ptr<T[]> tau(new T[size_t(a.batch * k) + 1]);
      factor_qr(args, a, tau.get());
      for (int64_t i = 0; i < r.batch; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t row = 0; row < r.rows; ++row)
            r.at(i)(row, j) = row <= j && row < k ? a.at(i)(row, j) : T(0);
      r.commit();
      if (no_q) return;
      Stack<T> q(args.result(0));
      for (int64_t i = 0; i < q.batch; ++i)
        for (int64_t j = 0; j < std::min(n, q.columns); ++j)
          std::copy_n(a.at(i).column(j), m, q.at(i).column(j));
      form_q(args, q, tau.get(), k);
      q.commit();
    });
  }
  static void geqrf(Args args) {
    each(args, [&]<class T>() {
      Stack<T> a(args.result(0));
      Dense<T> tau(args.result(1));
      a.read(args.tensor(0));
      factor_qr(args, a, tau.data());
      a.commit(), tau.commit();
    });
  }
  static void householder_product(Args args) {
    each(args, [&]<class T>() {
      Stack<T> q(args.result(0));
      Dense<T> tau(args.tensor(1));
      q.read(args.tensor(0));
      form_q(args, q, tau.data(), args.tensor(1).size(-1));
      q.commit();
    });
  }

  static void eigh(Args args) {
    each(args, [&]<class T>() {
      const bool vectors = args.flag(2);
      Dense<Real<T>> values(args.result(0));
      Stack<T> a = vectors ? Stack<T>(args.result(1)) : Stack<T>(args.tensor(0), true);
      a.read(args.tensor(0));
      const bool upper = args.string(1) == "U" || args.string(1) == "u";
      auto p = problem_of(args, AJ_LINALG_HEEVD, a.batch, a.rows, a.rows);
      p.flags = when(upper, AJ_LINALG_UPPER) | when(vectors, AJ_LINALG_VECTORS);
      std::unique_ptr<int32_t[]> info(new int32_t[size_t(a.batch) + 1]());
      p.a = a.matrix(), p.info = info.get();
      p.b = {values.data(), 0, std::max<int64_t>(1, a.rows), a.rows};
      Solver::run(p);
      values.commit();
      if (vectors) a.commit();
      tell_first_failed(Failed::convergence, args.tensor(0), info.get(), a.batch);
    });
  }
  static void svd(Args args) {
    each(args, [&]<class T>() {
      const bool vectors = args.flag(2);
      Stack<T> a = Stack<T>::of(args.tensor(0), true);
      Dense<Real<T>> values(args.result(1));
      const int64_t k = std::min(a.rows, a.columns);
      auto p = problem_of(args, AJ_LINALG_GESDD, a.batch, a.rows, a.columns);
      std::unique_ptr<int32_t[]> info(new int32_t[size_t(a.batch) + 1]());
      for (int64_t i = 0; i < a.batch; ++i)
        if (!factor::all_finite(a.at(i)))
          tell_failed(Failed::svd_of_nan, element_of(args.tensor(0), i), 0);
      p.a = a.matrix(), p.info = info.get();
      p.b = {values.data(), 0, std::max<int64_t>(1, k), k};
      if (!vectors) {
        Solver::run(p);
      } else {
        Stack<T> u(args.result(0)), vh(args.result(2));
        p.flags = AJ_LINALG_VECTORS | when(args.flag(1), AJ_LINALG_FULL);
        p.c = u.matrix(), p.d = vh.matrix();
        if (k > 0) {
          Solver::run(p);
        } else {  // nothing to factor; any basis will do
          for (Stack<T>* basis : {&u, &vh})
            for (int64_t i = 0; i < basis->batch; ++i)
              for (int64_t j = 0; j < basis->columns; ++j)
                for (int64_t row = 0; row < basis->rows; ++row)
                  basis->at(i)(row, j) = T(row == j ? 1 : 0);
        }
        u.commit(), vh.commit();
      }
      values.commit();
      tell_first_failed(Failed::convergence, args.tensor(0), info.get(), a.batch);
    });
  }
  static void eig(Args args) {
    each(args, [&]<class T>() {
      using C = factor::ComplexOf<T>;
      const bool vectors = args.flag(1);
      Stack<T> a = Stack<T>::of(args.tensor(0), true);
      for (int64_t i = 0; i < a.batch; ++i)
        if (!factor::all_finite(a.at(i)))
          tell_failed(Failed::eig_of_nan, element_of(args.tensor(0), i), 0);
      Dense<C> values(args.result(0));
      auto p = problem_of(args, AJ_LINALG_GEEV, a.batch, a.rows, a.rows);
      std::unique_ptr<int32_t[]> info(new int32_t[size_t(a.batch) + 1]());
      p.a = a.matrix(), p.info = info.get();
      p.b = {values.data(), 0, std::max<int64_t>(1, a.rows), a.rows};
      if (vectors) {
        Stack<C> v(args.result(1));
        p.flags = AJ_LINALG_VECTORS;
        p.c = v.matrix();
        Solver::run(p);
        v.commit();
      } else {
        Solver::run(p);
      }
      values.commit();
      tell_first_failed(Failed::convergence, args.tensor(0), info.get(), a.batch);
    });
  }

 private:
  template <class F>
  static void each(const Args& args, F f) {
    visit<floating_complex>(args.tensor(0).dtype(), f);
  }

  // What a failed factorisation leaves is nobody's to use.
  template <class T>
  static void void_where_failed(Stack<T>& s, Dense<int32_t>& info) {
    for (int64_t i = 0; i < s.batch; ++i)
      if (info[i])
        std::fill_n(s[i], s.rows * s.columns, T(std::numeric_limits<Real<T>>::quiet_NaN()));
  }

  template <class T>
  static void factor_lu(const Args& args, Stack<T>& a, int32_t* pivots, int32_t* info) {
    auto p = problem_of(args, AJ_LINALG_GETRF, a.batch, a.rows, a.columns);
    p.a = a.matrix(), p.pivots = pivots, p.info = info;
    Solver::run(p);
  }
  template <class T>
  static void factor_qr(const Args& args, Stack<T>& a, T* tau) {
    const int64_t k = std::min(a.rows, a.columns);
    auto p = problem_of(args, AJ_LINALG_GEQRF, a.batch, a.rows, a.columns);
    p.a = a.matrix(), p.b = {tau, 0, std::max<int64_t>(1, k), k};
    Solver::run(p);
  }
  template <class T>
  static void form_q(const Args& args, Stack<T>& q, T* tau, int64_t k) {
    auto p = problem_of(args, AJ_LINALG_ORGQR, q.batch, q.rows, q.columns);
    p.k = std::min(k, q.columns);
    p.a = q.matrix(), p.b = {tau, 0, std::max<int64_t>(1, k), k};
    Solver::run(p);
  }
  // U X' = L^-1, whose upper half is zeros, and X = X' P.
  template <class T>
  static void invert_into(const Args& args, Stack<T>& x, Dense<int32_t>& info) {
    constexpr int64_t few = 64;
    Stack<T> a = Stack<T>::of(args.tensor(0), true);
    const int64_t n = a.rows, wide = std::max(few, (n + 7) / 8);
    std::unique_ptr<int32_t[]> pivots(new int32_t[size_t(a.batch * n) + 1]);
    factor_lu(args, a, pivots.get(), info.data());
    for (int64_t i = 0; i < x.batch; ++i) {
      std::fill_n(x[i], n * n, T(0));
      for (int64_t j = 0; j < n; ++j) x.at(i)(j, j) = T(1);
    }
    for (int64_t j = 0; j < n; j += wide) {
      auto p = problem_of(args, AJ_LINALG_TRSM, x.batch, n - j, std::min(wide, n - j));
      p.a = a.matrix(), p.b = x.matrix(), p.flags = AJ_LINALG_UNIT;
      p.a.data = a[0] + j * (a.ld() + 1), p.b.data = x[0] + j * (x.ld() + 1);
      Solver::run(p);
    }
    auto p = problem_of(args, AJ_LINALG_TRSM, x.batch, n, n);
    p.a = a.matrix(), p.b = x.matrix(), p.flags = AJ_LINALG_UPPER;
    Solver::run(p);
    for (int64_t i = 0; i < x.batch; ++i)
      for (int64_t j = n; j-- > 0;)
        if (const int64_t other = pivots[size_t(i * n + j)] - 1; other != j)
          std::swap_ranges(x.at(i).column(j), x.at(i).column(j) + n, x.at(i).column(other));
    void_where_failed(x, info);
    x.commit(), info.commit();
  }
  // x holds the right sides.
  template <class T>
  static void solve_into(const Args& args, Stack<T>& x, Dense<int32_t>& info) {
    Stack<T> a = Stack<T>::of(args.tensor(0), true);
    std::unique_ptr<int32_t[]> pivots(new int32_t[size_t(a.batch * a.rows) + 1]);
    factor_lu(args, a, pivots.get(), info.data());
    for (int64_t i = 0; i < x.batch; ++i)
      for (int64_t c = 0; c < x.columns; ++c) {
        T* column = x.at(i).column(c);
        for (int64_t j = 0; j < x.rows; ++j)
          std::swap(column[j], column[pivots[size_t(i * a.rows + j)] - 1]);
      }
    auto p = problem_of(args, AJ_LINALG_TRSM, x.batch, x.rows, x.columns);
    p.a = a.matrix(), p.b = x.matrix(), p.flags = AJ_LINALG_UNIT;
    Solver::run(p);
    p.flags = AJ_LINALG_UPPER;
    Solver::run(p);
    void_where_failed(x, info);
    x.commit(), info.commit();
  }
  template <class T, class F>
  static void determinants(const Args& args, F each_one) {
    Stack<T> a = Stack<T>::either_way(args.tensor(0));
    Dense<T> out(args.result(0));
    std::unique_ptr<int32_t[]> numbers(new int32_t[size_t(a.batch * (a.rows + 1)) + 1]);
    int32_t* pivots = numbers.get() + a.batch;
    factor_lu(args, a, pivots, numbers.get());
    for (int64_t i = 0; i < a.batch; ++i) {
      bool odd = false;
      for (int64_t j = 0; j < a.rows; ++j) odd ^= pivots[i * a.rows + j] != int32_t(j + 1);
      each_one(out, i, a.at(i), odd);
    }
    out.commit();
  }
};

}  // namespace kit
}  // namespace adjoin
#endif

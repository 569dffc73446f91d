// plugins/gpu/vendor/factor.cpp: kernels of linear algebra: each makes a problem of a call's
// tensors and gives it to the service of its device that thinks most of it; what lies around a
// problem is done by other ops. Nothing waits for the device but where an error is to be told at
// once.
#include <adjoin/kit/linalg.hpp>
#include <adjoin/kit/make.hpp>

#include "capture.hpp"
#include "on_stream.hpp"
#include "solver.hpp"
#include "solver_library.hpp"
#include "workspace.hpp"

namespace adjoin::vendor {
namespace {

using kit::Args;
using kit::Failed;
using kit::when;

Tensor argument(const Args& args, uint32_t i) { return Tensor::borrow(args.tensor(i).get()); }
Tensor result(const Args& args, uint32_t i) { return Tensor::borrow(args.result(i).get()); }

void* data(const Tensor& t) { return kit::MutView(t.get()).bytes(); }
Sizes batch_of(const Tensor& t) { return Sizes(t.shape().begin(), t.shape().end() - 2); }
int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
Sizes with(Sizes shape, std::initializer_list<int64_t> more) {
  shape.insert(shape.end(), more);
  return shape;
}
Tensor fresh(const Tensor& like, const Sizes& shape, DLDataType dtype) {
  return empty(shape, dtype, like.device());
}
Tensor adjoint_of(const Tensor& t) { return ops::conjugate(transpose(t, -2, -1)); }
// Matrices one after the other, each column by column.
struct Stack {
  Tensor t;
  int64_t batch, rows, columns;

  explicit Stack(Tensor given)
      : t(std::move(given)), batch(count_of(batch_of(t))), rows(t.size(-2)), columns(t.size(-1)) {}
  static Stack of_shape(const Tensor& like, const Sizes& batch, int64_t rows, int64_t columns,
                        DLDataType dtype) {
    return Stack(transpose(fresh(like, with(batch, {columns, rows}), dtype), -2, -1));
  }
  static Stack like(const Tensor& t) {
    return of_shape(t, batch_of(t), t.size(-2), t.size(-1), t.dtype());
  }
  static bool lies_so(const Tensor& t) {
    bool so =
        (t.size(-2) <= 1 || t.stride(-2) == 1) && (t.size(-1) <= 1 || t.stride(-1) == t.size(-2));
    int64_t step = t.size(-2) * t.size(-1);
    for (int64_t d = t.ndim() - 3; d >= 0 && so; step *= t.size(d--))
      so = t.size(d) == 1 || t.stride(d) == step;
    return so;
  }
  // The result itself where it lies so, else room for it.
  static Stack for_result(const Tensor& t) { return lies_so(t) ? Stack(t) : like(t); }
  static Stack copy_of(const Tensor& t) {
    Stack s = like(t);
    copy_(s.t, t);
    return s;
  }
  bool is_empty() const { return batch == 0 || rows == 0 || columns == 0; }
  aj_linalg_matrix matrix() const {
    return {data(t), 0, std::max<int64_t>(1, rows), rows * columns};
  }
};
// One column for each matrix.
aj_linalg_matrix column_of(const Tensor& t) {
  const int64_t n = t.size(-1);
  return {data(t), 0, std::max<int64_t>(1, n), n};
}

void deliver(const Tensor& to, const Tensor& made) {
  if (to.get() != made.get()) copy_(to, made);
}
// Of one dtype, without gaps: the result itself, or room for it.
Tensor dense(const Tensor& t) {
  return t.is_contiguous() ? t : fresh(t, ops::sizes_of(t), t.dtype());
}

aj_linalg_problem problem(const Args& args, int32_t routine, const Stack& a) {
  aj_linalg_problem p = {};
  p.struct_size = sizeof p;
  p.routine = routine;
  p.dtype = a.t.dtype();
  p.device = a.t.device();
  p.batch = a.batch, p.m = a.rows, p.n = a.columns;
  p.a = a.matrix();
  p.stream = args.call()->stream;
  return p;
}

aj_str slot() {
  static const std::string name = std::string("aj.linalg/") + kDevice;
  return kit::str(name);
}

// Before anything is written: a kernel that declines leaves the call to a fallback, if there is
// one.
void want_library() {
  if (SolverLibrary::find() || kit::services().count(slot()) > 1) return;
  kit::raise(AJ_UNIMPLEMENTED, "a library that factors matrices is missing on ", kDevice, ": ",
             solver_words.remedy, ", or compute with .cpu() (", solver_file().where(), "; ",
             triangle_file().where(), ")");
}
template <auto F>
void with_library(Args args) {
  want_library();
  NoGradGuard off;
  F(args);
}

void serve(const aj_linalg_problem& p) {
  const aj_services& all = kit::services();
  const aj_linalg* best = nullptr;
  int32_t most = 0;
  for (uint32_t i = 0; i < all.count(slot()); ++i) {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    kit::check(all.at(slot(), i, &def));
    auto* one = static_cast<const aj_linalg*>(def.table);
    const int32_t score = one->score(one->self, &p);
    if (score > most) best = one, most = score;
  }
  if (!best)
    kit::raise(AJ_UNIMPLEMENTED, solver_file().where(), " does not serve matrices of ", p.m, " x ",
               p.n, " and ", p.dtype, " on ", kDevice, "; compute with .cpu()");
  Workspace work(p.device, best->workspace(best->self, &p), static_cast<Stream>(p.stream));
  kit::check(best->run(best->self, &p, work.data()));
}

bool is_captured(const Args& args) { return capturing(static_cast<Stream>(args.call()->stream)); }

// Where an error is wanted the host reads the codes, and waits for them.
void want_no_capture(const Args& args, bool asked, std::string_view instead) {
  if (asked && is_captured(args))
    kit::raise(AJ_PRECONDITION, "whether there is a result is known when the graph runs, and a ",
               "captured call cannot wait for it; use ", instead, ", which gives info");
}
void check(bool asked, const Tensor& codes, bool stacked, Failed what) {
  if (!asked || codes.numel() == 0) return;
  const Tensor told = to(contiguous(codes), std::nullopt, DLDevice{kDLCPU, 0});
  const auto* info = static_cast<const int32_t*>(data(told));
  for (int64_t i = 0; i < told.numel(); ++i)
    if (info[i])
      kit::tell_failed(what, stacked ? kit::text("(batch element ", i, "): ") : std::string(),
                       info[i]);
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What a failed factorisation leaves is nobody's to use.
void void_where(const Tensor& failed, const Tensor& t, int64_t more) {
  Sizes shape = ops::sizes_of(failed);
  for (int64_t i = 0; i < more; ++i) shape.push_back(1);
  masked_fill_(t, reshape(failed, shape), kNan);
}

void cholesky(Args args) {
  const bool upper = args.flag(1), asked = args.flag(2);
  want_no_capture(args, asked, "cholesky_ex");
  const Tensor a = argument(args, 0), to = result(args, 0), to_info = result(args, 1);
  Stack l = Stack::for_result(to);
  copy_(l.t, a);
  Tensor info = dense(to_info);
  if (l.is_empty()) {
    zero_(info);
  } else {
    auto p = problem(args, AJ_LINALG_POTRF, l);
    p.flags = when(upper, AJ_LINALG_UPPER);
    p.info = static_cast<int32_t*>(data(info));
    serve(p);
    upper ? triu_(l.t) : tril_(l.t);
    void_where(ne(info, 0), l.t, 2);
  }
  deliver(to, l.t), deliver(to_info, info);
  check(asked, info, a.ndim() > 2, Failed::cholesky);
}

// L and U in the place of a, the exchanges of rows.
void factor_lu(const Args& args, const Stack& a, const Tensor& pivots, const Tensor& info) {
  if (a.is_empty()) return (void)zero_(info);
  auto p = problem(args, AJ_LINALG_GETRF, a);
  p.pivots = static_cast<int32_t*>(data(pivots)), p.info = static_cast<int32_t*>(data(info));
  serve(p);
}

void lu(Args args) {
  kit::want_pivots(args.flag(1));
  const bool asked = args.flag(2);
  want_no_capture(args, asked, "lu_factor_ex");
  const Tensor from = argument(args, 0), to = result(args, 0);
  Stack a = Stack::for_result(to);
  copy_(a.t, from);
  Tensor pivots = dense(result(args, 1)), info = dense(result(args, 2));
  factor_lu(args, a, pivots, info);
  deliver(to, a.t), deliver(result(args, 1), pivots), deliver(result(args, 2), info);
  check(asked, info, from.ndim() > 2, Failed::lu);
}

struct Factored {
  Stack lu;
  Tensor pivots, info;
};
Factored factored(const Args& args, const Tensor& a, const Tensor* info = nullptr) {
  const Sizes batch = batch_of(a);
  Factored f = {Stack::copy_of(a), fresh(a, with(batch, {a.size(-1)}), int32),
                info ? dense(*info) : fresh(a, batch, int32)};
  factor_lu(args, f.lu, f.pivots, f.info);
  return f;
}

void solve_triangle(const Args& args, const Stack& a, const Stack& b, uint32_t flags,
                    bool transposed = false) {
  if (b.is_empty()) return;
  auto p = problem(args, AJ_LINALG_TRSM, a);
  p.trans = transposed;
  p.flags = flags, p.batch = b.batch, p.m = b.rows, p.n = b.columns;
  p.b = b.matrix();
  serve(p);
}

void solve_triangular(Args args) {
  const Tensor given = argument(args, 0), turned = transpose(given, -2, -1), to = result(args, 0);
  const bool by_rows = !Stack::lies_so(given) && Stack::lies_so(turned);
  const Stack a = by_rows                 ? Stack(turned)
                  : Stack::lies_so(given) ? Stack(given)
                                          : Stack::copy_of(given);
  const Stack x = Stack::for_result(to);
  const bool shares = x.t.get() == to.get() && to.numel() && data(to) == data(a.t);
  const Stack kept = shares ? Stack::copy_of(a.t) : a;
  copy_(x.t, argument(args, 1));
  solve_triangle(args, kept, x,
                 when(args.flag(2) != by_rows, AJ_LINALG_UPPER) |
                     when(!args.flag(3), AJ_LINALG_RIGHT) | when(args.flag(4), AJ_LINALG_UNIT),
                 by_rows);
  deliver(to, x.t);
}

// x: the right sides, in the order that the pivots say.
void solve_by(const Args& args, const Factored& f, const Stack& x, const Tensor& to,
              const Tensor& to_info) {
  solve_triangle(args, f.lu, x, AJ_LINALG_UNIT);
  solve_triangle(args, f.lu, x, AJ_LINALG_UPPER);
  if (!x.is_empty()) void_where(ne(f.info, 0), x.t, 2);
  deliver(to, x.t), deliver(to_info, f.info);
}
Tensor order_of(const Factored& f) { return pivot_order(f.pivots - 1, f.lu.rows); }

void solve(Args args) {
  const bool asked = args.flag(2);
  want_no_capture(args, asked, "solve_ex");
  const Tensor a = argument(args, 0), b = argument(args, 1), to = result(args, 0),
               to_info = result(args, 1);
  const Factored f = factored(args, a, &to_info);
  const Tensor rows = b.numel() ? gather(b, -2, expand(unsqueeze(order_of(f), -1), b.shape())) : b;
  const Stack x = Stack::for_result(to);
  copy_(x.t, rows);
  solve_by(args, f, x, to, to_info);
  check(asked, f.info, a.ndim() > 2, Failed::solve);
}

void inverse(Args args) {
  const bool asked = args.flag(1);
  want_no_capture(args, asked, "inv_ex");
  const Tensor a = argument(args, 0), to = result(args, 0), to_info = result(args, 1);
  const Factored f = factored(args, a, &to_info);
  const Stack x = Stack::for_result(to);
  if (!x.is_empty()) copy_(x.t, eq(unsqueeze(order_of(f), -1), ops::counting(a, a.size(-1))));
  solve_by(args, f, x, to, to_info);
  check(asked, f.info, a.ndim() > 2, Failed::inverse);
}

// Each exchange of two rows turns the sign.
Tensor sign_of(const Factored& f) {
  const int64_t n = f.lu.rows;
  Tensor exchanged = ne(f.pivots, arange(1, n + 1, 1, int32, f.pivots.device()));
  return 1 - remainder(sum(exchanged, {-1}), 2) * 2;
}

void det(Args args) {
  const Factored f = factored(args, argument(args, 0));
  copy_(result(args, 0), prod(diagonal(f.lu.t, 0, -2, -1), -1) * sign_of(f));
}
void slogdet(Args args) {
  const Factored f = factored(args, argument(args, 0));
  const Tensor d = diagonal(f.lu.t, 0, -2, -1);
  copy_(result(args, 0), prod(sgn(d), -1) * sign_of(f));
  copy_(result(args, 1), sum(log(abs(d)), {-1}));
}

void factor_qr(const Args& args, const Stack& a, const Tensor& tau) {
  if (a.is_empty()) return;
  auto p = problem(args, AJ_LINALG_GEQRF, a);
  p.b = column_of(tau);
  serve(p);
}
// q holds k vectors of reflections.
void form_q(const Args& args, const Stack& q, const Tensor& tau, int64_t k) {
  if (q.is_empty()) return;
  if (k == 0) return (void)copy_(q.t, eye(q.rows, q.columns, q.t.dtype(), q.t.device()));
  auto p = problem(args, AJ_LINALG_ORGQR, q);
  p.k = k;
  p.b = column_of(tau);
  serve(p);
}

void geqrf(Args args) {
  const Tensor to = result(args, 0), to_tau = result(args, 1);
  const Stack a = Stack::for_result(to);
  copy_(a.t, argument(args, 0));
  const Tensor tau = dense(to_tau);
  factor_qr(args, a, tau);
  deliver(to, a.t), deliver(to_tau, tau);
}

void qr(Args args) {
  const Tensor from = argument(args, 0);
  const Stack a = Stack::copy_of(from);
  const int64_t k = std::min(a.rows, a.columns);
  const Tensor tau = fresh(from, with(batch_of(from), {k}), from.dtype()), r = result(args, 1);
  factor_qr(args, a, tau);
  const int64_t rows = std::min(r.size(-2), a.rows);
  copy_(r, triu(narrow(a.t, -2, 0, rows)));
  if (args.string(1) == "r") return;
  const Tensor to = result(args, 0);
  const Stack q = Stack::for_result(to);
  const int64_t columns = std::min(a.columns, q.columns);
  copy_(narrow(q.t, -1, 0, columns), narrow(a.t, -1, 0, columns));
  form_q(args, q, tau, k);
  deliver(to, q.t);
}

void householder_product(Args args) {
  const Tensor to = result(args, 0), tau = contiguous(argument(args, 1));
  const Stack q = Stack::for_result(to);
  copy_(q.t, argument(args, 0));
  form_q(args, q, tau, std::min(tau.size(-1), q.columns));
  deliver(to, q.t);
}

// Of a library that may not come to an end over such: which matrices hold NaN or infinity; they are
// made zero.
Tensor without_nan(const Stack& a, const Tensor& looked_at) {
  Tensor bad = logical_not(all(isfinite(looked_at), {-2, -1}));
  masked_fill_(a.t, unsqueeze(unsqueeze(bad, -1), -1), 0);
  return bad;
}
// A captured call cannot tell: its results are NaN.
void did_converge(const Args& args, const Tensor& info, bool stacked) {
  check(!is_captured(args), info, stacked, Failed::convergence);
}

void eigh(Args args) {
  const Tensor from = argument(args, 0), to = result(args, 0);
  const bool upper = args.string(1) == "U" || args.string(1) == "u", vectors = args.flag(2);
  const Tensor to_vectors = vectors ? result(args, 1) : Tensor();
  const Stack a = vectors ? Stack::for_result(to_vectors) : Stack::like(from);
  copy_(a.t, from);
  const Tensor values = dense(to), info = fresh(from, batch_of(from), int32);
  if (!a.is_empty()) {
    const Tensor bad = without_nan(a, upper ? triu(from) : tril(from));
    auto p = problem(args, AJ_LINALG_HEEVD, a);
    p.flags = when(upper, AJ_LINALG_UPPER) | when(vectors, AJ_LINALG_VECTORS);
    p.b = column_of(values);
    p.info = static_cast<int32_t*>(data(info));
    serve(p);
    const Tensor failed = logical_or(bad, ne(info, 0));
    void_where(failed, values, 1);
    if (vectors) void_where(failed, a.t, 2);
    did_converge(args, info, from.ndim() > 2);
  }
  deliver(to, values);
  if (vectors) deliver(to_vectors, a.t);
}

// The libraries want no fewer rows than columns: of others the adjoint is factored.
void svd(Args args) {
  const Tensor from = argument(args, 0), to = result(args, 1);
  const bool full = args.flag(1), vectors = args.flag(2), wide = from.size(-2) < from.size(-1);
  const Tensor to_u = vectors ? result(args, 0) : Tensor(),
               to_vh = vectors ? result(args, 2) : Tensor();
  if (to.numel() == 0) {  // nothing to factor; any basis will do
    for (const Tensor& basis : {to_u, to_vh})
      if (basis.defined() && basis.numel())
        copy_(basis, eye(basis.size(-2), basis.size(-1), basis.dtype(), basis.device()));
    return;
  }
  const Stack a = Stack::copy_of(wide ? adjoint_of(from) : from);
  const Sizes batch = batch_of(from);
  const Tensor values = dense(to), info = fresh(from, batch, int32), bad = without_nan(a, from);
  check(!is_captured(args), adjoin::to(bad, int32), from.ndim() > 2, Failed::svd_of_nan);
  auto p = problem(args, AJ_LINALG_GESDD, a);
  p.b = column_of(values);
  p.info = static_cast<int32_t*>(data(info));
  std::optional<Stack> u, vh;
  if (vectors) {
    p.flags = AJ_LINALG_VECTORS | when(full, AJ_LINALG_FULL);
    u = wide ? Stack::of_shape(from, batch, a.rows, full ? a.rows : a.columns, from.dtype())
             : Stack::for_result(to_u);
    vh = wide ? Stack::of_shape(from, batch, a.columns, a.columns, from.dtype())
              : Stack::for_result(to_vh);
    p.c = u->matrix(), p.d = vh->matrix();
  }
  serve(p);
  const Tensor failed = logical_or(bad, ne(info, 0));
  void_where(failed, values, 1);
  deliver(to, values);
  if (vectors) {
    void_where(failed, u->t, 2), void_where(failed, vh->t, 2);
    deliver(to_u, wide ? adjoint_of(vh->t) : u->t);
    deliver(to_vh, wide ? adjoint_of(u->t) : vh->t);
  }
  did_converge(args, info, from.ndim() > 2);
}

// Of real numbers, too, eigenvalues are complex: their complex copies are factored.
void eig(Args args) {
  if (is_captured(args))
    kit::raise(AJ_PRECONDITION, "the library works on the host, too, so it cannot be captured; ",
               "eigh, for symmetric matrices, can");
  const Tensor from = argument(args, 0), out = result(args, 0);
  const bool vectors = args.flag(1);
  const Stack a = Stack::copy_of(to(from, out.dtype()));
  const Tensor values = dense(out), info = fresh(from, batch_of(from), int32);
  std::optional<Stack> v;
  if (vectors) v = Stack::for_result(result(args, 1));
  if (!a.is_empty()) {
    const Tensor bad = without_nan(a, from);
    check(true, to(bad, int32), from.ndim() > 2, Failed::eig_of_nan);
    auto p = problem(args, AJ_LINALG_GEEV, a);
    p.flags = when(vectors, AJ_LINALG_VECTORS);
    p.b = column_of(values);
    if (v) p.c = v->matrix();
    p.info = static_cast<int32_t*>(data(info));
    serve(p);
    check(true, info, from.ndim() > 2, Failed::convergence);
  }
  deliver(out, values);
  if (v) deliver(result(args, 1), v->t);
}

template <auto F>
constexpr kit::Spec kFactoring = kit::custom<with_library<F>, kit::floating_complex>;

}  // namespace

// At a priority of its own, so it does not announce itself.
const kit::Kernel factor_kernels[] = {
    {"_::eig_stack", kFactoring<eig>},
    {"_::eigh_stack", kFactoring<eigh>},
    {"_::solve_stack", kFactoring<solve>},
    {"_::solve_triangular_stack", kFactoring<solve_triangular>},
    {"_::svd_stack", kFactoring<svd>},
    {"geqrf", kFactoring<geqrf>},
    {"linalg::cholesky_ex", kFactoring<cholesky>},
    {"linalg::det", kFactoring<det>},
    {"linalg::householder_product", kFactoring<householder_product>},
    {"linalg::inv_ex", kFactoring<inverse>},
    {"linalg::lu_factor_ex", kFactoring<lu>},
    {"linalg::qr", kFactoring<qr>},
    {"linalg::slogdet", kFactoring<slogdet>},
    {nullptr, {}},
};

}  // namespace adjoin::vendor

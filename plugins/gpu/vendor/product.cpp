// plugins/gpu/vendor/product.cpp: from tensors to the problem that a vendor's BLAS understands.
#include "product.hpp"

#include <adjoin/kit/call.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>

#include "status.hpp"

namespace adjoin::vendor {
namespace {

using namespace kit;

// A matrix of a tensor's last two dimensions, row by row or, turned, column by column.
struct Matrix {
  const char* data;
  int64_t ld, batch;
  int32_t turned;
};

bool read_matrix(TensorView t, Matrix* out) {
  int64_t rows = t.size(-2), columns = t.size(-1), rs = t.stride(-2), cs = t.stride(-1);
  out->data = t.bytes();
  out->batch = t.ndim() == 3 ? t.stride(0) : 0;
  if ((cs == 1 || columns <= 1) && (rs >= columns || rows <= 1)) {
    out->ld = std::max<int64_t>(rows > 1 ? rs : columns, 1);
    out->turned = 0;
    return true;
  }
  if ((rs == 1 || rows <= 1) && (cs >= rows || columns <= 1)) {
    out->ld = std::max<int64_t>(columns > 1 ? cs : rows, 1);
    out->turned = 1;
    return true;
  }
  return false;
}

// One matrix of `columns`: all dimensions but the last are its rows, where they lie one step apart.
// A tensor of less dimensions, as linear makes with a vector, has one column.
bool read_rows(TensorView t, int64_t columns, bool has_columns, Matrix* out) {
  *out = {t.bytes(), columns, 0, 0};
  if (has_columns && columns > 1 && t.stride(-1) != 1) return false;
  int64_t rows = 1;
  for (int64_t d = t.ndim() - (has_columns ? 2 : 1); d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (rows == 1) out->ld = t.stride(d);
    if (t.stride(d) != out->ld * rows) return false;
    rows *= t.size(d);
  }
  return out->ld >= columns;
}

// A factor of linear: a matrix, or rows of any number of dimensions.
bool read_factor(TensorView t, Matrix* out) {
  return t.ndim() == 2 ? read_matrix(t, out) : read_rows(t, t.size(-1), true, out);
}

bool tensor_in(const aj_value& v) { return v.tag == AJ_TENSOR; }
TensorView view_in(const aj_value& v) { return TensorView(v.v.tensor); }

bool is_real(DLDataType d) { return d.lanes == 1 && (d.code == kDLFloat || d.code == kDLBfloat); }

// Two matrices or stacks, and where their product goes: of one dtype, as the library reads them. It
// does not promise zeros where there is nothing to add.
bool serves(TensorView a, TensorView b, TensorView out) {
  Matrix m;
  if (!same(a.dtype(), b.dtype()) || a.ndim() < 2 || a.ndim() != b.ndim() || a.size(-1) == 0)
    return false;
  if (!read_matrix(a, &m) || !read_matrix(b, &m)) return false;
  if (out && (!same(out.dtype(), a.dtype()) || out.ndim() != a.ndim() || !read_matrix(out, &m) ||
              m.turned))
    return false;
  return multiplies(a.dtype());
}

int32_t can_multiply(void*, const aj_call* call) {
  if (call->nargs < 2 || !tensor_in(call->args[0]) || !tensor_in(call->args[1])) return 0;
  bool given = call->nrets && tensor_in(call->rets[0]);
  return serves(view_in(call->args[0]), view_in(call->args[1]),
                given ? view_in(call->rets[0]) : TensorView());
}

// addmm and baddbmm.
int32_t can_add(void*, const aj_call* call) {
  if (call->nargs < 3) return 0;
  for (uint32_t i = 0; i < 3; ++i)
    if (!tensor_in(call->args[i])) return 0;
  TensorView added = view_in(call->args[0]), a = view_in(call->args[1]);
  bool given = call->nrets && tensor_in(call->rets[0]);
  return is_real(a.dtype()) && same(added.dtype(), a.dtype()) &&
         serves(a, view_in(call->args[2]), given ? view_in(call->rets[0]) : TensorView());
}

// The columns of linear's result; its weight may be one row.
int64_t width_of(TensorView w) { return w.ndim() == 2 ? w.size(0) : 1; }

int32_t can_be_linear(void*, const aj_call* call) {
  if (call->nargs < 2 || !tensor_in(call->args[0]) || !tensor_in(call->args[1])) return 0;
  TensorView x = view_in(call->args[0]), w = view_in(call->args[1]);
  Matrix m;
  if (!is_real(x.dtype()) || !same(x.dtype(), w.dtype()) || x.ndim() < 1 || w.ndim() < 1 ||
      w.ndim() > 2 || w.size(-1) == 0)
    return 0;
  if (call->nargs > 2 && tensor_in(call->args[2]) &&
      !same(view_in(call->args[2]).dtype(), x.dtype()))
    return 0;
  if (!read_factor(x, &m) || !read_factor(w, &m)) return 0;
  if (call->nrets && tensor_in(call->rets[0])) {
    TensorView out = view_in(call->rets[0]);
    if (!same(out.dtype(), x.dtype()) || !read_rows(out, width_of(w), w.ndim() == 2, &m)) return 0;
  }
  return multiplies(x.dtype());
}

aj_gemm problem(const aj_call* call, const Matrix& a, const Matrix& b, const Matrix& c,
                DLDataType dtype, int64_t m, int64_t n, int64_t k) {
  aj_gemm g = {};
  g.struct_size = sizeof g;
  if (call->flags & AJ_CALL_DETERMINISTIC) g.flags = AJ_GEMM_DETERMINISTIC;
  g.dtype = dtype;
  g.device = call->device;
  g.trans_a = a.turned, g.trans_b = b.turned;
  g.batch = 1, g.m = m, g.n = n, g.k = k;
  g.lda = a.ld, g.ldb = b.ld, g.ldc = c.ld;
  g.stride_a = a.batch, g.stride_b = b.batch, g.stride_c = c.batch;
  g.a = a.data, g.b = b.data, g.c = const_cast<char*>(c.data);
  g.alpha = 1;
  g.stream = call->stream;
  return g;
}

// Of matrices or stacks of them.
aj_gemm problem(const aj_call* call, TensorView a, TensorView b, MutView out) {
  Matrix x, y, z;
  if (!read_matrix(a, &x) || !read_matrix(b, &y) || !read_matrix(out, &z) || z.turned)
    raise(AJ_INTERNAL, "the library was chosen for matrices that it cannot read");
  aj_gemm g = problem(call, x, y, z, out.dtype(), out.size(-2), out.size(-1), a.size(-1));
  if (out.ndim() == 3) g.batch = out.size(0);
  return g;
}

// mm and bmm.
void product(Args args) {
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  check(multiply(problem(args.call(), args.tensor(0), args.tensor(1), out)));
}

bool lies_elsewhere(const aj_call* call, TensorView t) {  // a number may lie on the host
  return t.device().device_type != call->device.device_type;
}

// As out's rows, one for all of them.
bool is_row(const aj_call* call, TensorView t, int64_t n) {
  return t.numel() == n && t.ndim() && t.size(-1) == n && (n == 1 || t.stride(-1) == 1) &&
         !lies_elsewhere(call, t);
}

// The core copies what the library cannot read as it lies: out then is what the product is added
// to.
void copy_into(MutView out, TensorView from) {
  static constinit Op op("copy_");
  NoGradGuard off;
  const Tensor to = Tensor::borrow(out.get()), source = Tensor::borrow(from.get());
  const aj_value args[] = {value(to), value(source), value(false)};
  run_into(op.get(), args, 3, to);
}

void multiply_and_add(aj_gemm g, const aj_call* call, MutView out, TensorView added, double beta) {
  Addend add;
  Matrix m;
  bool row = g.batch == 1 && is_row(call, added, g.n);
  if (row && beta == 1 && g.m > 1 && adds_row(g.dtype)) {
    add.row = added.bytes();
  } else if (row && beta != 0 && g.m == 1) {
    g.beta = beta;
    add.matrix = added.bytes(), add.ld = g.n;
  } else if (beta != 0) {  // what is multiplied by zero may be uninitialised
    g.beta = beta;
    bool matrices =
        added.ndim() == 2 ? g.batch == 1 : added.ndim() == 3 && added.size(0) == g.batch;
    bool readable = matrices && added.size(-2) == g.m && added.size(-1) == g.n &&
                    read_matrix(added, &m) && !m.turned && (g.batch == 1 || m.batch != 0);
    if (readable)
      add.matrix = m.data, add.ld = m.ld, add.stride = m.batch;
    else
      copy_into(out, added);
  }
  check(multiply(g, add));
}

// addmm and baddbmm.
void product_added(Args args) {
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  aj_gemm g = problem(args.call(), args.tensor(1), args.tensor(2), out);
  g.alpha = args.real(4);
  multiply_and_add(g, args.call(), out, args.tensor(0), args.real(3));
}

void linear(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  if (out.numel() == 0) return;
  int64_t n = width_of(w), k = w.size(-1);
  Matrix a, b, c;
  if (!read_factor(x, &a) || !read_factor(w, &b) || !read_rows(out, n, w.ndim() == 2, &c))
    raise(AJ_INTERNAL, "the library was chosen for matrices that it cannot read");
  b.turned = !b.turned;
  aj_gemm g = problem(args.call(), a, b, c, out.dtype(), out.numel() / n, n, k);
  if (!bias) return check(multiply(g));
  multiply_and_add(g, args.call(), out, bias, 1);
}

aj_status* service_gemm(void*, const aj_gemm* g) {
  if (aj_status* s = ready()) return s;
  return multiply(*g);
}
int32_t service_score(void*, const aj_gemm* g) {
  return g->dtype.lanes == 1 && g->k > 0 && multiplies(g->dtype) ? 100 : 0;
}
aj_str service_path(void*) {
  static const std::string path = product_library();
  return str(path);
}

constexpr Spec kProduct = {&plain_kernel<product>, 0, 0, can_multiply};
constexpr Spec kAdded = {&plain_kernel<product_added>, 0, 0, can_add};

}  // namespace

const aj_blas blas_table = {
    .struct_size = sizeof(aj_blas),
    .minor = 0,
    .name = aj_str{kBlasName, sizeof kBlasName - 1},
    .self = nullptr,
    .score = service_score,
    .gemm = service_gemm,
    .path = service_path,
    .lapack = nullptr,
};

// At a priority of its own, so it does not announce itself.
const kit::Kernel product_kernels[] = {
    {"mm", kProduct},
    {"bmm", kProduct},
    {"addmm", kAdded},
    {"baddbmm", kAdded},
    {"nn::linear", {&plain_kernel<linear>, 0, 0, can_be_linear}},
    {nullptr, {}},
};

}  // namespace adjoin::vendor

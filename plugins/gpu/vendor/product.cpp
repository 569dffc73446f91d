// plugins/gpu/vendor/product.cpp: from tensors to the problem that a vendor's BLAS understands.
#include "product.hpp"

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

bool tensor_in(const aj_value& v) { return v.tag == AJ_TENSOR; }

int32_t can_multiply(void*, const aj_call* call) {
  if (call->nargs < 2 || !tensor_in(call->args[0]) || !tensor_in(call->args[1])) return 0;
  TensorView a(call->args[0].v.tensor), b(call->args[1].v.tensor);
  Matrix m;
  bool same = a.dtype().code == b.dtype().code && a.dtype().bits == b.dtype().bits;
  if (!same || a.ndim() < 2 || b.ndim() < 2 || !read_matrix(a, &m) || !read_matrix(b, &m)) return 0;
  if (a.size(-1) == 0) return 0;  // nothing to add: the libraries do not promise zeros
  if (call->nrets && tensor_in(call->rets[0])) {
    TensorView out(call->rets[0].v.tensor);
    if (out.dtype().code != a.dtype().code || out.dtype().bits != a.dtype().bits) return 0;
    if (out.ndim() < 2 || !read_matrix(out, &m) || m.turned) return 0;
  }
  return multiplies(a.dtype());
}

// mm and bmm.
void product(Args args) {
  TensorView a = args.tensor(0), b = args.tensor(1);
  MutView out = args.result(0);
  Matrix x, y, z;
  if (!read_matrix(a, &x) || !read_matrix(b, &y) || !read_matrix(out, &z) || z.turned)
    raise(AJ_INTERNAL, "the library was chosen for matrices that it cannot read");
  if (out.numel() == 0) return;
  aj_gemm g = {};
  g.struct_size = sizeof g;
  if (args.call()->flags & AJ_CALL_DETERMINISTIC) g.flags = AJ_GEMM_DETERMINISTIC;
  g.dtype = out.dtype();
  g.device = args.call()->device;
  g.trans_a = x.turned, g.trans_b = y.turned;
  g.batch = out.ndim() == 3 ? out.size(0) : 1;
  g.m = out.size(-2), g.n = out.size(-1), g.k = a.size(-1);
  g.lda = x.ld, g.ldb = y.ld, g.ldc = z.ld;
  g.stride_a = x.batch, g.stride_b = y.batch, g.stride_c = z.batch;
  g.a = x.data, g.b = y.data, g.c = const_cast<char*>(z.data);
  g.alpha = 1;
  g.stream = args.call()->stream;
  check(multiply(g));
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
    {nullptr, {}},
};

}  // namespace adjoin::vendor

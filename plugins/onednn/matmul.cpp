// plugins/onednn/matmul.cpp: matrix products of float32 and bfloat16, on the calling thread.
#include "matmul.hpp"

#include <dlfcn.h>

#include <adjoin/kit/dtype.hpp>

#include "primitive.hpp"

namespace adjoin::onednn {
namespace {

using namespace kit;

bool is_bfloat16(DLDataType d) { return d.code == kDLBfloat && d.bits == 16; }
bool is_float32(DLDataType d) { return d.code == kDLFloat && d.bits == 32; }

int32_t score(void*, const aj_gemm* g) {
  bool half = is_bfloat16(g->dtype);
  if (g->dtype.lanes != 1 || (!half && !is_float32(g->dtype))) return 0;
  if (g->alpha != 1 || (g->beta != 0 && g->beta != 1) || g->trans_a > 1 || g->trans_b > 1) return 0;
  // Rows and columns alone are the business of matrix-vector kernels, small ones of direct code.
  if (g->k < 1 || g->m < 2 || g->n < 2 || g->m * g->n * g->k < 64 * 64 * 64) return 0;
  const Library* library = Library::find();
  if (!library || (half && !library->bfloat16)) return 0;
  return half || std::min(g->m, g->n) >= 64 ? 110 : 90;
}

dnnl_memory_desc_t matrix(const aj_gemm& g, int64_t rows, int64_t columns, int64_t ld, bool turned,
                          int64_t batch_stride) {
  dnnl_memory_desc_t d;
  dnnl_data_type_t type = is_bfloat16(g.dtype) ? dnnl_bf16 : dnnl_f32;
  int64_t row = turned ? 1 : ld, column = turned ? ld : 1;
  dnnl_dims_t sizes = {rows, columns}, strides = {row, column};
  if (g.batch > 1) {
    sizes[0] = g.batch, sizes[1] = rows, sizes[2] = columns;
    strides[0] = batch_stride, strides[1] = row, strides[2] = column;
  }
  must(dnnl().memory_desc_init_by_strides(&d, g.batch > 1 ? 3 : 2, sizes, type, strides),
       "a matrix");
  return d;
}

std::unique_ptr<Primitive> make(const aj_gemm& g) {
  dnnl_memory_desc_t a = matrix(g, g.m, g.k, g.lda, g.trans_a, g.stride_a),
                     b = matrix(g, g.k, g.n, g.ldb, g.trans_b, g.stride_b),
                     c = matrix(g, g.m, g.n, g.ldc, false, g.stride_c);
  dnnl_matmul_desc_t op;
  must(dnnl().matmul_desc_init(&op, &a, &b, nullptr, &c), "a product");
  Attributes attributes;
  if (g.beta == 1) attributes.sum(1);
  return std::make_unique<Primitive>(
      &op, attributes, std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
}

aj_status* gemm(void*, const aj_gemm* g) {
  return guard("matmul", [&] {
    Alone alone;
    Key key = {1,    g->dtype.code, g->trans_a, g->trans_b, g->m,     g->n,
               g->k, g->lda,        g->ldb,     g->ldc,     g->batch, g->beta == 1};
    if (g->batch > 1) key.add(g->stride_a), key.add(g->stride_b), key.add(g->stride_c);
    remembered(key, [&] { return make(*g); }).run({g->a, g->b, g->c});
  });
}

aj_str path(void*) {
  static const std::string found = [] {
    Dl_info where;
    const Library* library = Library::find();
    return library && dladdr(reinterpret_cast<void*>(library->engine_create), &where) &&
                   where.dli_fname
               ? std::string(where.dli_fname)
               : std::string();
  }();
  return str(found);
}

}  // namespace

const aj_blas matmul = {
    .struct_size = sizeof(aj_blas),
    .minor = 0,
    .name = AJ_STR_LIT("onednn"),
    .self = nullptr,
    .score = score,
    .gemm = gemm,
    .path = path,
    .lapack = nullptr,
};

}  // namespace adjoin::onednn

// tests/plugins/paper_card/rocblas.cpp: the names of rocBLAS that plugins/hip opens, over loops. It
// refuses sizes of 0, layouts that do not fit, and types that differ.
#include <cstdio>

#include "products.hpp"

using namespace paper;

namespace {

enum { kGood = 0, kInvalidSize = 4, kNotImplemented = 2, kFailed = 6 };  // rocblas_status
struct Handle {
  Stream* stream = nullptr;
};

int type_of(int datatype) {  // rocblas_datatype
  switch (datatype) {
    case 150:
      return kF16;
    case 151:
      return kF32;
    case 152:
      return kF64;
    case 154:
      return kC32;
    case 155:
      return kC64;
    case 168:
      return kBF16;
    default:
      return -1;
  }
}

}  // namespace

extern "C" {

int rocblas_create_handle(Handle** out) {
  if (int wrong = ordered(__func__)) return wrong;
  return *out = new Handle, kGood;
}
int rocblas_set_stream(Handle* h, Stream* s) { return h->stream = s, kGood; }
const char* rocblas_status_to_string(int status) {
  return status == kInvalidSize ? "rocblas_status_invalid_size" : "rocblas_status_of_paper";
}
int rocblas_get_version_string(char* out, size_t n) {
  return std::snprintf(out, n, "5.0.0"), kGood;
}
int rocblas_gemm_strided_batched_ex(Handle* h, int turn_a, int turn_b, int m, int n, int k,
                                    const void* alpha, const void* a, int a_type, int lda,
                                    int64_t stride_a, const void* b, int b_type, int ldb,
                                    int64_t stride_b, const void* beta, const void* c, int c_type,
                                    int ldc, int64_t stride_c, void* d, int d_type, int ldd,
                                    int64_t stride_d, int batch, int, int, int32_t, uint32_t) {
  if (int wrong = ordered(__func__)) return wrong;
  if (a_type != b_type || a_type != c_type || a_type != d_type) return kNotImplemented;
  constexpr int kPlain = 111;  // rocblas_operation
  Product p;
  p.turn_a = turn_a - kPlain, p.turn_b = turn_b - kPlain;
  int type = type_of(a_type);
  auto rows = uint64_t(m), columns = uint64_t(n), inner = uint64_t(k);
  Layout la{type, p.turn_a ? inner : rows, p.turn_a ? rows : inner, lda, batch, stride_a},
      lb{type, p.turn_b ? columns : inner, p.turn_b ? inner : columns, ldb, batch, stride_b},
      lc{type, rows, columns, ldc, batch, stride_c}, ld{type, rows, columns, ldd, batch, stride_d};
  if (!fits(p, la, lb, ld) || lc.ld < int64_t(rows)) return kInvalidSize;
  int queued = queue_product(h->stream, p, alpha, a, la, b, lb, beta, c, lc, d, ld, [] {});
  return queued < 0 ? kNotImplemented : queued ? kFailed : kGood;
}
}

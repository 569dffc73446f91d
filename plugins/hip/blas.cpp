// plugins/hip/blas.cpp: matrix products by hipBLASLt and rocBLAS, opened when the first one asks.
// Prototypes and numbers are those of its C interface, the same since ROCm 3.5; no header of AMD's
// is needed.
#include <array>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>

#include "../gpu/vendor/blas_lt.hpp"
#include "../gpu/vendor/fourier_library.hpp"
#include "../gpu/vendor/libraries.hpp"
#include "../gpu/vendor/on_stream.hpp"
#include "../gpu/vendor/product.hpp"
#include "../gpu/vendor/report.hpp"
#include "../gpu/vendor/solver_library.hpp"
#include "../gpu/vendor/status.hpp"

namespace adjoin::vendor {
namespace {

enum : int { kPlain = 111, kTransposed = 112, kConjugated = 113, kStandard = 0 };
enum : int { kF16 = 150, kF32 = 151, kF64 = 152, kC32 = 154, kC64 = 155, kBF16 = 168 };
using Handle = void*;

struct Blas {
  SharedLibrary file{"rocBLAS",
                     "ADJOIN_ROCBLAS",
                     {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0",
                      "/opt/rocm/lib/librocblas.so"},
                     {"_rocm_sdk_libraries_*/lib", "torch/lib"}};
  int (*create_handle)(Handle*);
  int (*set_stream)(Handle, Stream);
  const char* (*status_to_string)(int);
  int (*product)(Handle, int, int, int, int, int, const void*, const void*, int, int, int64_t,
                 const void*, int, int, int64_t, const void*, const void*, int, int, int64_t, void*,
                 int, int, int64_t, int, int, int, int32_t, uint32_t);
  int (*version)(char*, size_t);

  template <class F>
  bool bind(const char* name, F* to) {
    if (file.bind(name, to)) return true;
    file.close_for(std::string("it has no ") + name);
    return false;
  }
  Blas() {
    bool good = file.open() && bind("rocblas_create_handle", &create_handle) &&
                bind("rocblas_set_stream", &set_stream) &&
                bind("rocblas_status_to_string", &status_to_string) &&
                bind("rocblas_gemm_strided_batched_ex", &product) &&
                bind("rocblas_get_version_string", &version);
    char text[64] = "";
    if (good && version(text, sizeof text) == 0) file.set_version(text);
  }
};
Blas& blas() {
  static auto* one = new Blas;  // never destroyed: threads may still multiply at exit
  return *one;
}

int type_of(DLDataType d) {
  if (d.lanes != 1) return 0;
  if (d.code == kDLBfloat) return d.bits == 16 ? kBF16 : 0;
  if (d.code == kDLFloat)
    return d.bits == 16 ? kF16 : d.bits == 32 ? kF32 : d.bits == 64 ? kF64 : 0;
  if (d.code == kDLComplex) return d.bits == 64 ? kC32 : d.bits == 128 ? kC64 : 0;
  return 0;
}

void must(int status, const char* doing) {
  if (status == 0) return;
  raise_if_lost(doing);
  kit::raise(AJ_INTERNAL, "hip: rocBLAS: ", doing, ": ", blas().status_to_string(status), " (",
             status, "), found as ", blas().file.where());
}

// A handle works on one stream at a time.
Handle handle_of(int32_t device, void* stream) {
  static auto* all = new std::map<std::pair<int32_t, void*>, Handle>;
  Handle& handle = (*all)[{device, stream}];
  if (!handle) {
    must(blas().create_handle(&handle), "its handle");
    must(blas().set_stream(handle, stream), "its stream");
  }
  return handle;
}

void run(const aj_gemm& g, const Addend& add, int32_t device) {
  static std::mutex lock;
  std::lock_guard held(lock);
  int type = type_of(g.dtype), compute = type == kF16 || type == kBF16 ? kF32 : type;
  const void* from = add.matrix ? add.matrix : g.c;
  int64_t ld = add.matrix ? add.ld : g.ldc, stride = add.matrix ? add.stride : g.stride_c;
  for (int64_t n : {g.m, g.n, g.k, g.lda, g.ldb, g.ldc, ld, g.batch})
    if (n > INT_MAX)
      kit::raise(AJ_UNIMPLEMENTED, "hip: rocBLAS counts to ", INT_MAX, "; the product has ", n);
  auto turn = [](int32_t how) { return how == 0 ? kPlain : how == 1 ? kTransposed : kConjugated; };
  double wide[2][2] = {{g.alpha, 0}, {g.beta, 0}};
  float narrow[2][2] = {{float(g.alpha), 0}, {float(g.beta), 0}};
  bool is_wide = compute == kF64 || compute == kC64;
  const void *alpha = is_wide ? static_cast<void*>(wide[0]) : narrow[0],
             *beta = is_wide ? static_cast<void*>(wide[1]) : narrow[1];
  // The library counts columns first: C' = B' A'.
  must(blas().product(handle_of(device, g.stream), turn(g.trans_b), turn(g.trans_a), int(g.n),
                      int(g.m), int(g.k), alpha, g.b, type, int(g.ldb), g.stride_b, g.a, type,
                      int(g.lda), g.stride_a, beta, from, type, int(ld), stride, g.c, type,
                      int(g.ldc), g.stride_c, int(g.batch), compute, kStandard, 0, 0),
       "a product");
}

}  // namespace

bool multiplies(DLDataType dtype) {
  return lt_multiplies(dtype) || (type_of(dtype) && blas().file.usable());
}

bool adds_row(DLDataType dtype) { return lt_multiplies(dtype); }

namespace {

// A row for all, where no algorithm adds one: the product is added to it.
void spread(const void* row, const aj_gemm& g) {
  const OnStream there(g.device, g.stream);
  const Tensor to = over(g.c, g.device, g.dtype, {g.m, g.n}, {g.ldc, 1});
  copy_(to, over(const_cast<void*>(row), g.device, g.dtype, {g.m, g.n}, {0, 1}));
}

}  // namespace

// hipBLASLt first, which has the units for halves and adds a row. The algorithms that it and
// rocBLAS choose depend on the problem alone.
aj_status* multiply(const aj_gemm& g, const Addend& add) {
  if (aj_status* s = ready()) return s;
  On here(g.device.device_id);
  if (here.failed()) return status_of(here.result(), "gemm");
  return kit::guard("", [&] {
    if (lt_multiply(g, add, {})) return;
    if (!type_of(g.dtype) || !blas().file.usable())
      kit::raise(AJ_UNIMPLEMENTED, "hip: no library has a product of ", g.dtype, ": ",
                 lt_file().where(), "; ", blas().file.where());
    if (!add.row) return run(g, add, g.device.device_id);
    spread(add.row, g);
    aj_gemm onto = g;
    onto.beta = 1;
    run(onto, {}, g.device.device_id);
  });
}

std::string product_library() { return LtLibrary::find() ? lt_file().path() : blas().file.path(); }

std::string describe_libraries() {
  return "library " + runtime_where() + "\nlibrary " + lt_file().where() + "\nlibrary " +
         blas().file.where() + "\n" + describe_solvers() + describe_fourier() +
         blas().file.missing("products are computed by slow kernels of our own",
                             "apt-get install rocblas, a package of AMD's") +
         lt_file().missing("products of halves are rocBLAS's, and a bias is added apart",
                           "apt-get install hipblaslt, a package of AMD's");
}

}  // namespace adjoin::vendor

// plugins/cuda/eigen.cpp: eigenvalues of matrices that need not be symmetric, which cuSOLVER has
// since CUDA 12.6, for complex numbers here: of real ones their complex copies are taken.
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <memory>

#include "../gpu/vendor/solver_library.hpp"
#include "prototypes.hpp"

namespace adjoin::vendor {
namespace {

using Size = int (*)(Handle, void*, int, int, int64_t, int, const void*, int64_t, int, const void*,
                     int, const void*, int64_t, int, const void*, int64_t, int, size_t*, size_t*);
using Run = int (*)(Handle, void*, int, int, int64_t, int, void*, int64_t, int, void*, int, void*,
                    int64_t, int, void*, int64_t, int, void*, size_t, void*, size_t, int*);
#if CUSOLVER_VERSION >= 11701  // older headers have no such routine
static_assert(agree<Size, decltype(&cusolverDnXgeev_bufferSize)>);
static_assert(agree<Run, decltype(&cusolverDnXgeev)>);
#endif

struct Eigen {
  Size size = nullptr;
  Run run = nullptr;
  void* parameters = nullptr;

  Eigen() {
    int (*make)(void**) = nullptr;
    const SharedLibrary& file = solver_file();
    const bool all = file.bind("cusolverDnXgeev_bufferSize", &size) &&
                     file.bind("cusolverDnCreateParams", &make) &&
                     file.bind("cusolverDnXgeev", &run);
    if (!all || make(&parameters) != 0) run = nullptr;
  }
  static const Eigen& find() {
    static auto* one = new Eigen;  // never destroyed: threads may still compute at exit
    return *one;
  }
};

void must(int status) {
  if (status == 0) return;
  const char* says = solver_says(status);
  kit::raise(lacks_memory(status, true) ? AJ_OUT_OF_MEMORY : AJ_INTERNAL,
             "cuda: cuSOLVER: geev: ", says ? says : "an unknown error", " (", status,
             "), found as ", solver_file().where());
}

void* at(const aj_linalg_matrix& m, int64_t i, DLDataType dtype) {
  if (!m.data) return nullptr;
  return static_cast<char*>(m.data) + m.offset + i * m.stride * (dtype.bits / 8);
}

// Of one matrix.
struct Job {
  const aj_linalg_problem& p;
  const Eigen& to = Eigen::find();
  int type = p.dtype.bits == 64 ? CUDA_C_32F : CUDA_C_64F;
  int mode = p.flags & AJ_LINALG_VECTORS ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  int64_t ld = mode == CUSOLVER_EIG_MODE_VECTOR ? p.c.ld : p.n;

  void ask(Handle handle, size_t* there, size_t* here) const {
    must(to.size(handle, to.parameters, CUSOLVER_EIG_MODE_NOVECTOR, mode, p.n, type,
                 at(p.a, 0, p.dtype), p.a.ld, type, at(p.b, 0, p.dtype), type, nullptr, p.n, type,
                 at(p.c, 0, p.dtype), ld, type, there, here));
  }
  void run(Handle handle, int64_t i, void* work, size_t there, void* host, size_t here) const {
    must(to.run(handle, to.parameters, CUSOLVER_EIG_MODE_NOVECTOR, mode, p.n, type,
                at(p.a, i, p.dtype), p.a.ld, type, at(p.b, i, p.dtype), type, nullptr, p.n, type,
                at(p.c, i, p.dtype), ld, type, work, there, host, here, p.info + i));
  }
};

}  // namespace

int32_t scores_eigen(const aj_linalg_problem& p) {
  return p.dtype.code == kDLComplex && Eigen::find().run ? 100 : 0;
}
uint64_t eigen_workspace(const aj_linalg_problem& p, Handle handle) {
  size_t there = 0, here = 0;
  Job{p}.ask(handle, &there, &here);
  return there;
}
// It works on the host, too: when its memory there ends, the work is done.
void run_eigen(const aj_linalg_problem& p, Handle handle, void* work) {
  const Job job{p};
  size_t there = 0, here = 0;
  job.ask(handle, &there, &here);
  const std::unique_ptr<char[]> host(new char[here + 1]);
  for (int64_t i = 0; i < p.batch; ++i) job.run(handle, i, work, there, host.get(), here);
  const Result result = runtime().StreamSynchronize(static_cast<Stream>(p.stream));
  if (result != kSuccess) kit::check(status_of(result, "eig"));
}

}  // namespace adjoin::vendor

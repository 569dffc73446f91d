// plugins/cuda/libraries.cpp: NVIDIA's libraries that this plugin uses: which version was found
// where, and what brings one that is missing.
#include "../gpu/vendor/blas_lt.hpp"
#include "../gpu/vendor/fourier_library.hpp"
#include "../gpu/vendor/report.hpp"
#include "../gpu/vendor/solver_library.hpp"
#include "dnn.hpp"
#include "driver.hpp"
#include "runtime.hpp"

namespace adjoin::vendor {

std::string describe_libraries() {
  return kit::text("library ", driver_where(), "\nlibrary ", lt_file().where(), "\nlibrary ",
                   dnn_file().where(), "\n", describe_solvers(), describe_fourier(),
                   missing_driver(),
                   lt_file().missing("products are computed by slow kernels of our own",
                                     "pip install nvidia-cublas-cu12"),
                   dnn_file().missing("convolutions are computed by slow kernels of our own",
                                      "pip install nvidia-cudnn-cu12"));
}

}  // namespace adjoin::vendor

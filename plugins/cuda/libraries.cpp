// plugins/cuda/libraries.cpp: NVIDIA's libraries that this plugin uses: which version was found
// where, and what brings one that is missing.
#include "../gpu/vendor/report.hpp"
#include "blas_library.hpp"
#include "dnn.hpp"
#include "driver.hpp"
#include "runtime.hpp"

namespace adjoin::vendor {

std::string describe_libraries() {
  return kit::text("library ", driver_where(), "\nlibrary ", blas_file().where(), "\nlibrary ",
                   dnn_file().where(), "\n", missing_driver(),
                   blas_file().missing("products are computed by slow kernels of our own",
                                       "pip install nvidia-cublas-cu12"),
                   dnn_file().missing("convolutions are computed by slow kernels of our own",
                                      "pip install nvidia-cudnn-cu12"));
}

}  // namespace adjoin::vendor

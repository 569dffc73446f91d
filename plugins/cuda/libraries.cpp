// plugins/cuda/libraries.cpp: NVIDIA's libraries that this plugin uses: which version was found
// where.
#include "../gpu/vendor/report.hpp"
#include "blas_library.hpp"
#include "dnn.hpp"
#include "runtime.hpp"

namespace adjoin::vendor {

std::string describe_libraries() {
  return kit::text("library ", driver_where(), "\nlibrary ", blas_file().where(), "\nlibrary ",
                   dnn_file().where(), "\n");
}

}  // namespace adjoin::vendor

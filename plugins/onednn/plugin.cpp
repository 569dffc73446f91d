// plugins/onednn/plugin.cpp: a second provider of the processor's products and convolutions. Loaded
// when one of them is first asked for; it opens oneDNN when that has a chance to be the fastest.
#include <adjoin/kit/library.hpp>
#include <adjoin/kit/plugin.hpp>

#include "convolution.hpp"
#include "matmul.hpp"
#include "report.hpp"

AJ_PLUGIN(.name = "onednn", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides =
              "kernel:cpu/convolution;kernel:cpu/convolution_backward;service:aj.blas/cpu") {
  using namespace adjoin::onednn;
  adjoin::kit::bind_libraries(plugin.env());
  plugin.service("aj.blas/cpu", "onednn", &matmul, 50);
  plugin.service("aj.report/onednn", "onednn", &report, 0);
  plugin.kernels("cpu", convolution_kernels, 50);
}

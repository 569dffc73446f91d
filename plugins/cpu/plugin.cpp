// plugins/cpu/plugin.cpp: the processor as a device, and BLAS as a service; a plugin like any
// other.
#include <adjoin/kit/library.hpp>
#include <adjoin/kit/plugin.hpp>

#include "bag.hpp"
#include "device.hpp"
#include "gemm.hpp"
#include "isa.hpp"
#include "report.hpp"
#include "tables.hpp"
#include "tuner.hpp"
#include "vision.hpp"

AJ_PLUGIN(.name = "cpu", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "device:cpu;service:aj.blas/cpu;service:aj.tuner/cpu") {
  using namespace adjoin::cpu;
  using adjoin::kit::bind_libraries;
  if (isa() == Isa::none)
    throw adjoin::kit::Error(
        AJ_UNAVAILABLE, "",
        "cpu: vector kernels want a processor with SSE4.2 or later; the backend "
        "'reference' runs on any");
  plugin.device(device);
  plugin.service("aj.autocast/cpu", "cpu", &autocast_lists, 0);
  for (const auto* table :
       {unary_kernels,    exp_kernels,        math_kernels,    special_kernels,     binary_kernels,
        integer_kernels,  compare_kernels,    ternary_kernels, copy_kernels,        reduce_kernels,
        scan_kernels,     random_kernels,     product_kernels, convolution_kernels, pool_kernels,
        pool_max_kernels, batch_norm_kernels, norm_kernels,    softmax_kernels,     index_kernels,
        scatter_kernels,  cat_kernels,        sort_kernels,    attention_kernels})
    plugin.kernels("cpu", table);
  for (const auto* table :
       {optimizer_kernels, rnn_kernels, backward_kernels, grid_kernels, pad_kernels, resample_kernels,
        windows_kernels, special_function_kernels, special_vector_kernels, order_kernels,
        scatter_reduce_kernels, distance_kernels, pieces_kernels, bag_kernels, constant_pad_kernels,
        window_maxima_kernels, flip_kernels, masked_put_kernels})
    plugin.kernels("cpu", table);
  bind_libraries(plugin.env());
  plugin.service("aj.blas/cpu", "library", library_blas(""), 100);
  // Those serve only when they are chosen by name.
  for (const char* name : kLibraries) plugin.service("aj.blas/cpu", name, library_blas(name), -100);
  plugin.service("aj.blas/cpu", "own", &own_blas, 0);
  plugin.service("aj.report/cpu", "cpu", &report, 0);
  plugin.service("aj.tuner/cpu", "cpu", &tuner, 0);
}

// plugins/cpu/plugin.cpp: the processor as a device, and BLAS as a service; a plugin like any
// other.
#include <adjoin/kit/library.hpp>
#include <adjoin/kit/plugin.hpp>

#include "cpu/product/gemm.hpp"
#include "cpu/product/providers.hpp"
#include "cpu/tune/tuner.hpp"
#include "device.hpp"
#include "report.hpp"
#include "vector/isa.hpp"

AJ_PLUGIN(.name = "cpu", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "device:cpu;service:aj.blas/cpu;service:aj.tuner/cpu") {
  using namespace adjoin::cpu;
  using adjoin::kit::bind_libraries;
  if (isa() == Isa::none)
    throw adjoin::kit::Error(
        AJ_UNAVAILABLE, "",
        "this build has no vector code for this processor, or for what ADJOIN_CPU_ISA allows; "
        "a whole build wants SSE4.2 or later, the backend 'reference' runs on any processor");
  plugin.device(device);
  plugin.service("aj.autocast/cpu", "cpu", &autocast_lists, 0);
  plugin.kernels("cpu");
  bind_libraries(plugin.env());
  plugin.service("aj.blas/cpu", "library", found_library(), 100);
  // Those serve only when they are chosen by name.
  for (const char* name : kLibraries) plugin.service("aj.blas/cpu", name, library_blas(name), -100);
  plugin.service("aj.blas/cpu", "own", &own_blas, 0);
  plugin.service("aj.report/cpu", "cpu", &report, 0);
  plugin.service("aj.tuner/cpu", "cpu", &tuner, 0);
}

// plugins/cuda/fourier_library.cpp: cuFFT: where it is looked for, and a comparison of the
// prototypes that the plugin calls it by with NVIDIA's header.
#include "../gpu/vendor/fourier_library.hpp"

#include <cufft.h>

#include "driver.hpp"
#include "prototypes.hpp"

namespace adjoin::vendor {

#define AJ_COMPARE_(name, parameters) \
  static_assert(agree<decltype(FourierLibrary::name), decltype(&cufft##name)>);
AJ_FOURIER_FUNCTIONS_(AJ_COMPARE_)
#undef AJ_COMPARE_

const FourierWords fourier_words = {
    .name = "cufft", .prefix = "cufft", .remedy = "pip install nvidia-cufft-cu12"};

SharedLibrary& fourier_file_to_open() {
  static auto* one = new SharedLibrary(
      "cuFFT", "ADJOIN_CUFFT",
      driver_serves(13000) ? std::vector<std::string>{"libcufft.so.12", "libcufft.so.11"}
                           : std::vector<std::string>{"libcufft.so.11"},
      {"nvidia/*/lib"});
  return *one;
}

}  // namespace adjoin::vendor

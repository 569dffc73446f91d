// plugins/hip/fourier_library.cpp: hipFFT: where it is looked for.
#include "../gpu/vendor/fourier_library.hpp"

namespace adjoin::vendor {

const FourierWords fourier_words = {
    .name = "hipfft", .prefix = "hipfft", .remedy = "apt-get install hipfft, a package of AMD's"};

SharedLibrary& fourier_file_to_open() {
  static auto* one =
      new SharedLibrary("hipFFT", "ADJOIN_HIPFFT", {"libhipfft.so.0", "/opt/rocm/lib/libhipfft.so"},
                        {"_rocm_sdk_libraries_*/lib", "torch/lib"});
  return *one;
}

}  // namespace adjoin::vendor

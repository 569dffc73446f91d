// plugins/gpu/vendor/fourier_library.hpp: the library of Fourier transforms, opened when first
// asked for: cuFFT, or hipFFT, which has the same functions under other names. The prototypes are
// our own; plugins/cuda compares them with NVIDIA's header.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_FOURIER_LIBRARY_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_FOURIER_LIBRARY_HPP
#include <type_traits>

#include "libraries.hpp"
#include "status.hpp"

namespace adjoin::vendor {

// cuFFT names a plan by a number, hipFFT by an address.
using FourierHandle = std::conditional_t<std::string_view(kDevice) == "cuda", int, void*>;
using Sizes64 = long long*;

// F(name, parameters): in the library behind the vendor's prefix.
#define AJ_FOURIER_FUNCTIONS_(F)                                                          \
  F(Create, (FourierHandle*))                                                             \
  F(Destroy, (FourierHandle))                                                             \
  F(SetAutoAllocation, (FourierHandle, int))                                              \
  F(MakePlanMany64, (FourierHandle, int, Sizes64, Sizes64, long long, long long, Sizes64, \
                     long long, long long, int, long long, size_t*))                      \
  F(SetStream, (FourierHandle, Stream))                                                   \
  F(SetWorkArea, (FourierHandle, void*))                                                  \
  F(ExecC2C, (FourierHandle, void*, void*, int))                                          \
  F(ExecZ2Z, (FourierHandle, void*, void*, int))                                          \
  F(ExecR2C, (FourierHandle, void*, void*))                                               \
  F(ExecD2Z, (FourierHandle, void*, void*))                                               \
  F(ExecC2R, (FourierHandle, void*, void*))                                               \
  F(ExecZ2D, (FourierHandle, void*, void*))                                               \
  F(GetVersion, (int*))

struct FourierLibrary {
#define AJ_POINTER_(name, parameters) int(*name) parameters;
  AJ_FOURIER_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  static const FourierLibrary* find();  // null if there is none that can be used
};
const SharedLibrary& fourier_file();
std::string describe_fourier();  // lines for the report; opens it

// What differs between the vendors, the plugin's own.
struct FourierWords {
  const char *name, *prefix;
  const char* remedy;
};
extern const FourierWords fourier_words;
SharedLibrary& fourier_file_to_open();
const char* fourier_says(int status);

}  // namespace adjoin::vendor
#endif

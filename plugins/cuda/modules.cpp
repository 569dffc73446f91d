// plugins/cuda/modules.cpp: what nvcc's objects call to register and launch their kernels
// (plugins/gpu/vendor/modules.hpp says why the names are defined here).
#include "../gpu/vendor/modules.hpp"

extern "C" {

using namespace adjoin::vendor;  // NOLINT: the names below are the compiler's

void** __cudaRegisterFatBinary(const void* data) {
  return static_cast<void**>(const_cast<void*>(data));
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}  // the plugin stays as long as the process

void __cudaRegisterFunction(void** wrapper, const char* host_function, char*, const char* name, int,
                            void*, void*, void*, void*, int*) {
  const void* from = wrapper;
  register_kernel(host_function, static_cast<const Wrapper*>(from), name);
}

// Of launches as `kernel<<<...>>>()`, of which there are none.
Result __cudaPopCallConfiguration(Size*, Size*, size_t*, Stream*) { return kNoSuchFunction; }
Result __cudaGetKernel(void**, const void*) { return kNoSuchFunction; }
Result __cudaLaunchKernel(void*, Size, Size, void**, size_t, Stream) { return kNoSuchFunction; }

Result cudaLaunchKernel(const void* host_function, Size grid, Size block, void** arguments,
                        size_t shared, Stream stream) {
  return launch_registered(host_function, grid, block, arguments, shared, stream);
}
}

// plugins/hip/modules.cpp: what hipcc's objects call to register and launch their kernels
// (plugins/gpu/vendor/modules.hpp says why the names are defined here).
#include "../gpu/vendor/modules.hpp"

extern "C" {

using namespace adjoin::vendor;  // NOLINT: the names below are the compiler's

void** __hipRegisterFatBinary(const void* data) {
  return static_cast<void**>(const_cast<void*>(data));
}

void __hipUnregisterFatBinary(void**) {}  // the plugin stays as long as the process

void __hipRegisterFunction(void** wrapper, const void* host_function, char*, const char* name,
                           unsigned, void*, void*, void*, void*, int*) {
  const void* from = wrapper;
  register_kernel(host_function, static_cast<const Wrapper*>(from), name);
}

// Of launches as `kernel<<<...>>>()`, of which there are none.
Result __hipPopCallConfiguration(Size*, Size*, size_t*, Stream*) { return kNoSuchFunction; }

Result hipLaunchKernel(const void* host_function, Size grid, Size block, void** arguments,
                       size_t shared, Stream stream) {
  return launch_registered(host_function, grid, block, arguments, shared, stream);
}
}

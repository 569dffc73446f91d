// plugins/cuda/blas_library.cpp: where cuBLASLt was found, and which version it is.
#include "blas_library.hpp"

#include "driver.hpp"

namespace adjoin::vendor {
namespace {

// The newest that the driver serves.
std::vector<std::string> sonames() {
  if (driver_serves(13000)) return {"libcublasLt.so.13", "libcublasLt.so.12"};
  return {"libcublasLt.so.12"};
}

struct Opened {
  SharedLibrary file{"cuBLASLt", "ADJOIN_CUBLASLT", sonames(), {"nvidia/*/lib"}};
  BlasLt table = {};
  bool usable = false;

  Opened() {
    if (!file.open()) return;
#define AJ_BIND_(name)                                                                         \
  if (!(table.name = reinterpret_cast<decltype(table.name)>(file.symbol("cublasLt" #name)))) { \
    file.close_for("it has no cublasLt" #name);                                                \
    return;                                                                                    \
  }
    AJ_CUBLASLT_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
    size_t v = table.GetVersion();  // 130100 is 13.1.0; until 12 it was 120103
    file.set_version(kit::text(v / 10000, ".", v / 100 % 100, ".", v % 100));
    usable = true;
  }
};
Opened& opened() {
  static auto* one = new Opened;  // never destroyed: threads may still multiply at exit
  return *one;
}

}  // namespace

const BlasLt* BlasLt::find() { return opened().usable ? &opened().table : nullptr; }
const SharedLibrary& blas_file() { return opened().file; }

}  // namespace adjoin::vendor

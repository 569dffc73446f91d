// plugins/gpu/vendor/fourier_library.cpp: opens the library of Fourier transforms. Both vendors
// number what went wrong alike.
#include "fourier_library.hpp"

namespace adjoin::vendor {
namespace {

struct Opened {
  FourierLibrary table = {};
  bool usable = false;

  Opened() {
    SharedLibrary& file = fourier_file_to_open();
    if (!file.open()) return;
    const std::string prefix = fourier_words.prefix;
#define AJ_BIND_(name, parameters)                         \
  if (!file.bind((prefix + #name).c_str(), &table.name)) { \
    file.close_for("it has no " + prefix + #name);         \
    return;                                                \
  }
    AJ_FOURIER_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
    int v = 0;
    if (table.GetVersion(&v) == 0) file.set_version(version_of(v));
    usable = true;
  }
  static std::string version_of(int v) {  // 12004 is 12.0.4
    return kit::text(v / 1000, ".", v % 1000 / 100, ".", v % 100);
  }
};

}  // namespace

const FourierLibrary* FourierLibrary::find() {
  static auto* one = new Opened;  // never destroyed: threads may still compute at exit
  return one->usable ? &one->table : nullptr;
}
const SharedLibrary& fourier_file() { return fourier_file_to_open(); }

std::string describe_fourier() {
  (void)FourierLibrary::find();
  return kit::text(
      "library ", fourier_file().where(), "\n",
      fourier_file().missing("Fourier transforms are products of matrices", fourier_words.remedy));
}

const char* fourier_says(int status) {
  constexpr const char* says[] = {nullptr,
                                  "the plan is none",
                                  "memory was refused",
                                  "the type is not served",
                                  "an argument is invalid",
                                  "an internal error",
                                  "a kernel has failed",
                                  "it is not initialized",
                                  "a size is invalid",
                                  "the memory is not aligned"};
  return status > 0 && status < int(std::size(says)) ? says[status] : nullptr;
}

}  // namespace adjoin::vendor

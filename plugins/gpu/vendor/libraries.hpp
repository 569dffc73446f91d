// plugins/gpu/vendor/libraries.hpp: a vendor's libraries, opened at run time when first asked for.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_LIBRARIES_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_LIBRARIES_HPP
#include <adjoin/abi/service.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace adjoin::vendor {

// One library. Searched: the path in `variable`, the loader's own places by each soname, then the
// folders `inside` (as "nvidia/*/lib") of every Python that this process may mean.
class SharedLibrary {
 public:
  SharedLibrary(std::string name, std::string variable, std::vector<std::string> sonames,
                std::vector<std::string> inside)
      : name_(std::move(name)),
        variable_(std::move(variable)),
        sonames_(std::move(sonames)),
        inside_(std::move(inside)) {}

  bool open();  // once; what happened then is told by where()
  void* symbol(const char* name) const;
  template <class F>
  bool bind(const char* name, F* to) const {  // false: there is none, and *to is null
    return (*to = reinterpret_cast<F>(symbol(name))) != nullptr;
  }
  void close_for(std::string why);  // found, and of no use
  bool usable() const { return handle_ != nullptr; }
  void set_version(std::string text) { version_ = std::move(text); }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  // "cuBLASLt 13.1.0: /usr/lib/libcublasLt.so.13", or "cuBLASLt: not found: ..."
  std::string where() const;
  // A line for the report where it is not usable: what is done without it, and the remedy. Else "".
  std::string missing(std::string_view without, std::string_view remedy) const;

 private:
  void* try_file(const std::string& file, bool checked = false);
  void look_in_packages();
  std::string name_, variable_;
  std::vector<std::string> sonames_, inside_;
  std::string version_, path_, tried_;
  void* handle_ = nullptr;
  bool done_ = false;
};

// For a library that has failed: where that is because the current device is lost, raises what the
// device says.
void raise_if_lost(std::string_view doing);

}  // namespace adjoin::vendor
#endif

// core/plugin/lock_file.hpp: what a process was made of, by name and digest, as text.
//
//   libadjoin SHA256
//   plugin cpu SHA256
//   library libopenblas.so.0 SHA256 /usr/lib/x86_64-linux-gnu/libopenblas.so.0
//   features avx avx2 fma
//
// '#' begins a comment. A file without a line of libadjoin or of features says nothing about them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace adjoin::plugin {

struct LockFile {
  struct Library {
    std::string digest, path;
  };
  using Names = std::set<std::string, std::less<>>;

  std::string libadjoin;
  std::map<std::string, std::string, std::less<>> plugins;
  std::map<std::string, Library, std::less<>> libraries;
  bool names_features = false;
  Names features;

  std::string read(const std::string& path);  // what is wrong, or an empty string
  std::string text() const;
  // How this libadjoin and this processor differ, a line each.
  std::string host_differences() const;
};

// The instruction sets of this processor that kernels are chosen by.
LockFile::Names processor_features();
std::string sha256_of_path(const std::string& path);  // empty if it cannot be read

}  // namespace adjoin::plugin

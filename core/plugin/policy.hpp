// core/plugin/policy.hpp: which plugins the user wants, from ADJOIN_PLUGINS.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/plugin/lock_file.hpp"

namespace adjoin::plugin {

// "" all; "none"; "only:NAME,NAME"; "lock:FILE", see lock_file.hpp. A text that is none of these
// allows nothing: who writes a policy wants to be safe.
class Policy {
 public:
  static Policy parse(std::string_view text);
  static Policy from_environment();

  // Why a plugin may not be loaded, or an empty string. `fd` is its file; `asked` tells that the
  // user named the file, or that it is a part of libadjoin.
  std::string refuses(std::string_view name, int fd, bool asked) const;

  // Why a library may not be opened, or an empty string; `path` becomes the one to open.
  std::string refuses_library(std::string* path) const;
  // The same for what is in the process already.
  std::string refuses_mapped(const std::string& path) const;

 private:
  enum class Kind { kAll, kNone, kOnly, kLock };

  Kind kind_ = Kind::kAll;
  std::string text_, broken_;
  std::set<std::string, std::less<>> names_;
  std::shared_ptr<const LockFile> lock_;
};

}  // namespace adjoin::plugin

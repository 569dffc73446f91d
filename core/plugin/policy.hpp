// core/plugin/policy.hpp: which plugins the user wants, from ADJOIN_PLUGINS.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace adjoin::plugin {

// "" all; "none"; "only:NAME,NAME"; "lock:FILE", a file of lines NAME SHA256 where '#' begins a
// comment. A text that is none of these allows nothing: who writes a policy wants to be safe.
class Policy {
 public:
  static Policy parse(std::string_view text);
  static Policy from_environment();

  // Why a plugin may not be loaded, or an empty string. `fd` is its file; `asked` tells that the
  // user named the file.
  std::string refuses(std::string_view name, int fd, bool asked) const;

 private:
  enum class Kind { kAll, kNone, kOnly, kLock };

  void read_lock(const std::string& path);

  Kind kind_ = Kind::kAll;
  std::string text_, broken_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, std::string, std::less<>> digests_;
};

}  // namespace adjoin::plugin

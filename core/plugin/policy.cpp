// core/plugin/policy.cpp: which plugins the user wants, from ADJOIN_PLUGINS.
#include "core/plugin/policy.hpp"

#include <cstdlib>

#include "core/plugin/note.hpp"
#include "core/plugin/sha256.hpp"

namespace adjoin::plugin {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string differs(const std::string& digest, const std::string& locked) {
  return "its sha256 is " + (digest.empty() ? "unknown, it cannot be read" : digest) +
         ", the lock file says " + locked;
}

}  // namespace

Policy Policy::from_environment() {
  const char* text = secure_getenv("ADJOIN_PLUGINS");
  return parse(text ? text : "");
}

Policy Policy::parse(std::string_view text) {
  Policy policy;
  policy.text_ = text;
  if (text.empty() || text == "all") return policy;
  if (text == "none") {
    policy.kind_ = Kind::kNone;
  } else if (text.starts_with("only:")) {
    policy.kind_ = Kind::kOnly;
    for (std::string_view name : split(text.substr(5), ',')) policy.names_.emplace(name);
  } else if (text.starts_with("lock:")) {
    policy.kind_ = Kind::kLock;
    auto file = std::make_shared<LockFile>();
    policy.broken_ = file->read(std::string(text.substr(5)));
    if (policy.broken_.empty()) {
      std::string lines = file->host_differences();
      policy.broken_ = lines.substr(0, lines.find('\n'));
    }
    policy.lock_ = std::move(file);
  } else {
    policy.kind_ = Kind::kNone;
    policy.broken_ =
        "ADJOIN_PLUGINS is '" + policy.text_ + "', wanted all, none, only:NAME,NAME or lock:FILE";
  }
  return policy;
}

std::string Policy::refuses(std::string_view name, int fd, bool asked) const {
  if (!broken_.empty()) return broken_;
  if (kind_ == Kind::kNone) return "ADJOIN_PLUGINS is none";
  if (kind_ == Kind::kOnly && !asked && names_.find(name) == names_.end())
    return "ADJOIN_PLUGINS is '" + text_ + "'";
  if (kind_ != Kind::kLock) return {};
  auto locked = lock_->plugins.find(name);
  if (locked == lock_->plugins.end()) return "not in the lock file that ADJOIN_PLUGINS names";
  std::string digest = sha256_of_file(fd);
  return digest == locked->second ? std::string() : differs(digest, locked->second);
}

std::string Policy::refuses_library(std::string* path) const {
  if (kind_ != Kind::kLock) return {};
  auto locked = lock_->libraries.find(base_name(*path));
  if (locked == lock_->libraries.end()) return "not in the lock file that ADJOIN_PLUGINS names";
  // A bare name is found by the linker where it pleases: what was locked is opened by its path.
  if (path->find('/') == std::string::npos) *path = locked->second.path;
  std::string digest = sha256_of_path(*path);
  if (digest == locked->second.digest) return {};
  return "'" + *path + "': " + differs(digest, locked->second.digest);
}

std::string Policy::refuses_mapped(const std::string& path) const {
  if (kind_ != Kind::kLock) return {};
  auto locked = lock_->libraries.find(base_name(path));
  if (locked == lock_->libraries.end())
    return "'" + path + "' is not in the lock file that ADJOIN_PLUGINS names";
  std::string digest = sha256_of_path(path);
  if (digest == locked->second.digest) return {};
  return "'" + path + "': " + differs(digest, locked->second.digest);
}

}  // namespace adjoin::plugin

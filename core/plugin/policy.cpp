// core/plugin/policy.cpp: which plugins the user wants, from ADJOIN_PLUGINS.
#include "core/plugin/policy.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/plugin/note.hpp"
#include "core/plugin/sha256.hpp"

namespace adjoin::plugin {

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
    policy.read_lock(std::string(text.substr(5)));
  } else {
    policy.kind_ = Kind::kNone;
    policy.broken_ =
        "ADJOIN_PLUGINS is '" + policy.text_ + "', wanted all, none, only:NAME,NAME or lock:FILE";
  }
  return policy;
}

void Policy::read_lock(const std::string& path) {
  std::ifstream file(path);
  if (!file) broken_ = "the lock file '" + path + "' cannot be read";
  std::string line;
  for (int n = 1; broken_.empty() && std::getline(file, line); ++n) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, digest, more;
    if (!(words >> name)) continue;
    words >> digest;
    bool hex =
        digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hex || words >> more || !digests_.emplace(name, digest).second)
      broken_ = "the lock file '" + path + "', line " + std::to_string(n) +
                ": wanted NAME SHA256, each name once";
  }
}

std::string Policy::refuses(std::string_view name, int fd, bool asked) const {
  if (!broken_.empty()) return broken_;
  if (kind_ == Kind::kNone) return "ADJOIN_PLUGINS is none";
  if (kind_ == Kind::kOnly && !asked && names_.find(name) == names_.end())
    return "ADJOIN_PLUGINS is '" + text_ + "'";
  if (kind_ != Kind::kLock) return {};
  auto locked = digests_.find(name);
  if (locked == digests_.end()) return "not in the lock file that ADJOIN_PLUGINS names";
  std::string digest = sha256_of_file(fd);
  if (digest == locked->second) return {};
  return "its sha256 is " + digest + ", the lock file says " + locked->second;
}

}  // namespace adjoin::plugin

// core/plugin/lock_file.cpp: reads and writes lock files, and compares one with the process.
#include "core/plugin/lock_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "core/plugin/folders.hpp"
#include "core/plugin/sha256.hpp"

namespace adjoin::plugin {
namespace {

bool is_digest(const std::string& word) {
  return word.size() == 64 && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Is it a line as the head of lock_file.hpp shows them? An empty one is.
bool take_line(LockFile* to, const std::string& line) {
  std::vector<std::string> w = words_of(line);
  if (w.empty()) return true;
  if (w[0] == "features") {
    to->names_features = true;
    to->features.insert(w.begin() + 1, w.end());
    return true;
  }
  if (w[0] == "libadjoin" && w.size() == 2 && is_digest(w[1]) && to->libadjoin.empty()) {
    to->libadjoin = w[1];
    return true;
  }
  if (w[0] == "plugin" && w.size() == 3 && is_digest(w[2]))
    return to->plugins.emplace(w[1], w[2]).second;
  if (w[0] != "library" || w.size() < 4 || !is_digest(w[2])) return false;
  // A path may hold blanks, and '#': it is the rest of the line as it stands.
  size_t at = line.find(w[2]) + w[2].size();
  std::string path = line.substr(line.find_first_not_of(" \t", at));
  if (path.front() != '/') return false;
  return to->libraries.emplace(w[1], LockFile::Library{w[2], path}).second;
}

void missing(std::string* lines, const LockFile::Names& from, const LockFile::Names& in,
             const char* what) {
  std::string list;
  for (const std::string& one : from)
    if (!in.contains(one)) list += (list.empty() ? "" : ", ") + one;
  if (!list.empty()) *lines += what + list + "\n";
}

}  // namespace

std::string LockFile::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "the lock file '" + path + "' cannot be read";
  std::string line;
  for (int n = 1; std::getline(file, line); ++n)
    if (!take_line(this, line))
      return "the lock file '" + path + "', line " + std::to_string(n) +
             ": wanted plugin NAME SHA256, library NAME SHA256 PATH, libadjoin SHA256 or "
             "features NAME..., each name once";
  if (file.bad()) return "the lock file '" + path + "' cannot be read to its end";
  return {};
}

std::string LockFile::text() const {
  std::string lines =
      "# what an adjoin process is made of; ADJOIN_PLUGINS=lock:THIS_FILE holds to it\n";
  if (!libadjoin.empty()) lines += "libadjoin " + libadjoin + "\n";
  for (const auto& [name, digest] : plugins) lines += "plugin " + name + " " + digest + "\n";
  for (const auto& [name, one] : libraries)
    lines += "library " + name + " " + one.digest + " " + one.path + "\n";
  if (names_features) lines += "features";
  for (const std::string& one : features) lines += " " + one;
  return lines + (names_features ? "\n" : "");
}

std::string LockFile::host_differences() const {
  std::string lines;
  if (!libadjoin.empty()) {
    std::string digest = sha256_of_path(libadjoin_path());
    if (digest != libadjoin)
      lines += "libadjoin: its sha256 is " + digest + ", the lock file says " + libadjoin + "\n";
  }
  if (!names_features) return lines;
  Names here = processor_features();
  missing(&lines, features, here, "processor: it lacks what the lock file names: ");
  missing(&lines, here, features, "processor: it has what the lock file does not name: ");
  return lines;
}

LockFile::Names processor_features() {
  static const char* const kBegins[] = {"sse",   "ssse", "pni",  "avx",  "fma",  "f16c", "bmi",
                                        "amx",   "sha",  "aes",  "vaes", "gfni", "vpcl", "popcnt",
                                        "asimd", "sve",  "bf16", "i8mm", "sme",  "fphp"};
  LockFile::Names names;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    for (const std::string& word : words_of(line.substr(line.find(':') + 1)))
      for (const char* begin : kBegins)
        if (word.starts_with(begin)) names.insert(word);
    break;
  }
  return names;
}

std::string sha256_of_path(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string digest = sha256_of_file(fd);
  close(fd);
  return digest;
}

}  // namespace adjoin::plugin

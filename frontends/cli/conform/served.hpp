// frontends/cli/conform/served.hpp: the child process that runs the groups, as its parent sees it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace adjoin::cli::conform {

class Served {
 public:
  // words: of the command `adjoin conform --serve FD`, behind these.
  explicit Served(const std::vector<std::string>& words);
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served();

  // The next line; false when there are none any more, or not within the time.
  bool line(std::string& out, double seconds);
  // Waits for it, or ends it with its own children; says how it ended, "" if well.
  std::string end();
  bool late() const { return late_; }  // no line came in time

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  bool late_ = false;
  std::string buffer_;
};

}  // namespace adjoin::cli::conform

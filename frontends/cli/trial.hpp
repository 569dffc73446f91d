// frontends/cli/trial.hpp: loads a plugin in a child process, so that whatever it does is survived
// and told.
#pragma once

#include <string>

#include "cli.hpp"

namespace adjoin::cli {

struct Trial {
  bool ok = false;
  std::string what;   // what it registered, or how it went wrong
  std::string fault;  // why it does not serve as its note says though it loads; empty: it does
};

Trial try_in_child(const std::string& path, double timeout_seconds);

// The child's half: `adjoin plugins try-load FILE FD` writes its result to the file descriptor.
inline constexpr const char* kTrialCommand = "try-load";
int run_trial(const Words& words);

}  // namespace adjoin::cli

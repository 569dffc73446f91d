// frontends/cli/orphan.hpp: a child process ends when the one that made it does, however that
// ended.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace adjoin::cli {

// In the child, at once after fork(); `parent` is what getpid() said before. It outlives exec.
inline void end_with(pid_t parent, int signal = SIGKILL) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) _exit(1);  // it had ended before the line above
}

}  // namespace adjoin::cli

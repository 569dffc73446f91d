// extensions/distributed/launch.hpp: `adjoin launch`: a program in several processes.
#pragma once

#include <string>
#include <vector>

namespace adjoin::distributed {

struct LaunchOptions {
  int processes = 1, nodes = 1, node_rank = -1, restarts = 0, shutdown_seconds = 10;
  bool standalone = false, is_module = false, plain_program = false, prefix = false, help = false;
  std::string master = "", run_id = "none", role = "default", log_folder;
  int master_port = 0;
  std::vector<std::string> program;  // with its arguments
};

// torchrun's words; raises what is wrong with them.
LaunchOptions parse_launch(const std::vector<std::string>& words);
extern const char kLaunchHelp[];
int launch(const std::vector<std::string>& words);

}  // namespace adjoin::distributed

// frontends/cli/launch.hpp: a command of the extension for groups of processes.
#pragma once

#include "cli.hpp"

namespace adjoin::cli {

int explain_hang_command(const Words& words);

}  // namespace adjoin::cli

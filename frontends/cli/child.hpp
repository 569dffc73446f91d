// frontends/cli/child.hpp: runs the user's program with a variable that makes libadjoin in it write
// a file.
#pragma once

#include <string>

#include "cli.hpp"

namespace adjoin::cli {

struct Child {
  int code = 0;         // as a shell tells it: 128 + N for a signal
  std::string written;  // the file's text
};

// NAME.py is run by python3.
Child run_child(const Words& command, const char* variable);

// {1234567, "B"} -> "1.2 MB".
std::string short_number(double value, const char* unit);

}  // namespace adjoin::cli

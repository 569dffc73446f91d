// frontends/cli/child.cpp: runs the user's program with a variable that makes libadjoin in it write
// a file.
#include "child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "orphan.hpp"

namespace adjoin::cli {
namespace {

[[noreturn]] void become(const Words& command) {
  std::vector<char*> words;
  std::string python = "python3";
  if (command[0].ends_with(".py")) words.push_back(python.data());
  for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::cerr << "adjoin: " << words[0] << " cannot be run\n";
  _exit(127);
}

}  // namespace

Child run_child(const Words& command, const char* variable) {
  std::string path = std::filesystem::temp_directory_path() / "adjoin-XXXXXX";
  int fd = mkstemp(path.data());
  if (fd < 0) throw std::runtime_error("no temporary file can be made in " + path);
  close(fd);
  std::cout.flush();
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    end_with(parent, SIGTERM);
    setenv(variable, path.c_str(), 1);
    become(command);
  }
  int status = 0;
  bool ran = child > 0 && waitpid(child, &status, 0) == child;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  if (!ran) throw std::runtime_error(command[0] + " cannot be started");
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, text.str()};
}

std::string short_number(double value, const char* unit) {
  static const char* const prefixes[] = {"", "k", "M", "G", "T"};
  static const char* const times[] = {"ns", "us", "ms", "s"};
  bool time = std::string_view(unit) == "ns";
  int i = 0;
  for (; value >= 999.5 && i < (time ? 3 : 4); ++i) value /= 1000;
  char out[32];
  std::snprintf(out, sizeof out, value < 10 && i ? "%.1f %s%s" : "%.0f %s%s", value,
                time ? times[i] : prefixes[i], time ? "" : unit);
  return out;
}

}  // namespace adjoin::cli

// frontends/cli/in_python.cpp: commands that a module of the Python package carries out: `adjoin
// run`, `adjoin opcheck`, `adjoin graph convert | time | diff | picture`.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli.hpp"

namespace adjoin::cli {
namespace fs = std::filesystem;

// An installation that is not a package of Python's has it beside the library.
void add_package_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&aj_get_interface), &info) || !info.dli_fname) return;
  fs::path folder = fs::canonical(info.dli_fname).parent_path() / "adjoin/python";
  if (!fs::exists(folder / "adjoin/__init__.py")) return;
  const char* before = secure_getenv("PYTHONPATH");
  std::string path = folder.string() + (before && *before ? ":" + std::string(before) : "");
  setenv("PYTHONPATH", path.c_str(), 1);
}

namespace {

// Becomes Python, which runs a module of the package.
[[noreturn]] void become(const char* module, const std::string& command, const Words& words) {
  add_package_folder();
  const char* told = secure_getenv("ADJOIN_PYTHON");
  std::vector<const char*> line = {told && *told ? told : "python3", "-m", module};
  for (const std::string& word : words) line.push_back(word.c_str());
  line.push_back(nullptr);
  execvp(line[0], const_cast<char**>(line.data()));
  throw std::runtime_error(command + ": cannot run " + line[0] + ": " + std::strerror(errno) +
                           "; it works through Python: apt-get install python3, or name one in "
                           "ADJOIN_PYTHON");
}

}  // namespace

int opcheck_command(const Words& words) { become("adjoin.testing.opcheck", "opcheck", words); }
int look_command(const Words& words) { become("adjoin.jit._look", "graph", words); }
int convert_command(const Words& words) { become("adjoin.jit._convert", "graph convert", words); }
int run_command(const Words& words) {
  if (is_program(words)) return run_program_command(words);
  become("adjoin.torch", "run", words);
}

}  // namespace adjoin::cli

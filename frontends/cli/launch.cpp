// frontends/cli/launch.cpp: `adjoin launch`: a program in several processes; `adjoin explain-hang`:
// where they stand. Both are the extension's for groups of processes.
#include "launch.hpp"

#include <adjoin/abi/distributed.h>

namespace adjoin::cli {
namespace {

using Command = aj_status* (*aj_distributed::*)(const aj_str*, uint32_t, int32_t*);

int run(const char* name, Command command, const Words& words) {
  auto* table = static_cast<const aj_distributed*>(aj_get_interface("x.distributed", AJ_ABI_MAJOR));
  if (!table)
    throw std::runtime_error(
        std::string(name) +
        ": libaj_distributed.so is not found; it stands beside the plugins of libadjoin "
        "(adjoin plugins list tells what was found)");
  add_package_folder();
  std::vector<aj_str> given;
  for (const std::string& word : words) given.push_back(borrow(word));
  int32_t code = 0;
  aj_status* s = (table->*command)(given.data(), uint32_t(given.size()), &code);
  if (s && core().status_code(s) == AJ_INVALID_ARGUMENT) {
    std::string said = text(core().status_message(s));
    core().status_free(s);
    throw UsageError(said);
  }
  check(s);
  return code;
}

}  // namespace

int launch_command(const Words& words) { return run("launch", &aj_distributed::launch, words); }
int explain_hang_command(const Words& words) {
  return run("explain-hang", &aj_distributed::explain_hang, words);
}

}  // namespace adjoin::cli

// frontends/cli/main.cpp: the command `adjoin`: chooses the part that does the work.
#include <iostream>

#include "launch.hpp"

namespace adjoin::cli {
namespace {

constexpr const char* kHelp =
    "usage: adjoin COMMAND [options]\n"
    "\n"
    "  adjoin bindgen --lang L      writes functions of lua or rust for every op\n"
    "  adjoin plugins list          every plugin that was found, and what was decided about it\n"
    "  adjoin plugins check FILE    reads a plugin's note, tries it in a child process, says a "
    "verdict\n"
    "  adjoin plugins why NAME      why a plugin or a device does or does not serve\n"
    "  adjoin conform FILE          drives a device plugin through everything the contract asks\n"
    "  adjoin new-backend NAME      writes a device plugin to start from\n"
    "  adjoin new-op NAME           writes an op with kernel, derivative and test to start from\n"
    "  adjoin graph show FILE       the text of a captured program; check says whether it is "
    "sound\n"
    "  adjoin graph time FILE       how long it takes; picture draws it, diff A B compares two\n"
    "  adjoin graph convert A B     between .onnx, PyTorch's .pt and .pt2, and .aj\n"
    "  adjoin run PROGRAM           runs a Python program whose `import torch` is Adjoin\n"
    "  adjoin run MODEL.aj          runs a captured program without Python\n"
    "  adjoin launch PROGRAM        runs it in several processes, with torchrun's options\n"
    "  adjoin explain-hang          says of such a job that hangs where each process stands\n"
    "  adjoin opcheck FILE|OP       does an op keep what its schema promises?\n"
    "  adjoin ops [NAME]            the ops, or everything about one\n"
    "  adjoin doctor                what is installed and found here, what is wrong, what to do\n"
    "  adjoin explain SCRIPT        runs a program and tells who served its ops, and why\n"
    "  adjoin lock [FILE]           writes down plugins, libraries and features by digest\n"
    "  adjoin verify [FILE]         what differs here from a lock file\n"
    "  adjoin blas compare          speed and error of everybody who multiplies matrices\n"
    "  adjoin config                flags and folders for who builds a plugin\n"
    "  adjoin tune                  measures who computes which matrix product fastest, and keeps "
    "it\n"
    "\n"
    "  --version  prints the version and ends; --help after any command tells more; --json prints "
    "for programs\n";

struct Command {
  const char* name;
  int (*run)(const Words&);
};
constexpr Command kCommands[] = {{"bindgen", bindgen_command},
                                 {"blas", blas_command},
                                 {"config", config_command},
                                 {"conform", conform_command},
                                 {"doctor", doctor_command},
                                 {"explain", explain_command},
                                 {"explain-hang", explain_hang_command},
                                 {"graph", graph_command},
                                 {"launch", launch_command},
                                 {"lock", lock_command},
                                 {"new-backend", new_backend_command},
                                 {"new-op", new_op_command},
                                 {"opcheck", opcheck_command},
                                 {"ops", ops_command},
                                 {"plugins", plugins_command},
                                 {"run", run_command},
                                 {"tune", tune_command},
                                 {"verify", verify_command}};

int run(const Words& words) {
  if (words.empty()) throw UsageError("which command?\n" + std::string(kHelp));
  const std::string& first = words.front();
  if (first == "--help" || first == "-h" || first == "help") {
    std::cout << kHelp;
    return 0;
  }
  Words rest(words.begin() + 1, words.end());
  if (first == "--version") return config_command({"--version"});
  for (const Command& command : kCommands)
    if (first == command.name) return command.run(rest);
  Words names;
  for (const Command& c : kCommands) names.push_back(c.name);
  throw UsageError("there is no command '" + first + "'" + hint(first, names) + "\n" + kHelp);
}

}  // namespace
}  // namespace adjoin::cli

int main(int argc, char** argv) {
  try {
    int code = adjoin::cli::run({argv + 1, argv + argc});
    std::cout.flush();
    return std::cout ? code : 1;
  } catch (const adjoin::cli::UsageError& e) {
    std::cerr << "adjoin: " << e.what() << '\n';
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "adjoin: " << e.what() << '\n';
    return 1;
  }
}

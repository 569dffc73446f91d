// frontends/cli/conform/conform.cpp: `adjoin conform`: drives a device plugin through all that the
// contract asks of it.
#include <climits>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "../cli.hpp"
#include "comm.hpp"
#include "report.hpp"

namespace adjoin::cli::conform {
namespace {

constexpr double kQuickSeconds = 18;  // the device's own checks and loading come on top

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("conform: cannot write " + path);
}

std::string real_path(const std::string& path) {
  char full[PATH_MAX];
  if (!realpath(path.c_str(), full)) throw std::runtime_error("conform: there is no file " + path);
  return full;
}

// The device that the note promises, or whose kernels it brings.
std::string device_in(const aj_plugin_info& info) {
  for (const char* what : {"device:", "kernel:"})
    for (std::string one : split(text(info.provides), ';'))
      if (one.starts_with(what)) {
        one = one.substr(7);
        return one.substr(0, one.find('/'));
      }
  throw std::runtime_error("conform: " + text(info.path) +
                           " provides no device and no kernels: its note says '" +
                           text(info.provides) + "'");
}

Settings settings_of(const Arguments& args, Report& report) {
  if (!args.has("file")) throw args.misuse("which file?");
  Settings s;
  s.file = real_path(args.get<Words>("file").front());
  aj_plugin_info info = {};
  info.struct_size = sizeof info;
  check(plugins().inspect(borrow(s.file), &info));
  if (info.state == AJ_PLUGIN_REFUSED || info.state == AJ_PLUGIN_FAILED)
    throw std::runtime_error("conform: " + s.file + ": " + text(info.reason));
  s.plugin = text(info.name);
  report.version = text(info.version), report.vendor = text(info.vendor);
  s.device_name = args.has("device") ? args.get<std::string>("device") : device_in(info);
  s.mode = args.get<std::string>("mode");
  bool known = false;
  for (const char* mode : {"all", "test", "grad", "device", "perf", "support"})
    known |= s.mode == mode;
  if (!known)
    throw args.misuse("there is no mode '" + s.mode +
                      "'; all, test, grad, device, perf, support are known");
  if (args.has("op")) s.ops = args.get<Words>("op");
  if (args.has("dtype")) s.dtypes = args.get<Words>("dtype");
  s.full = args.has("full");
  if (args.has("quick")) s.quick = kQuickSeconds;
  if (args.has("largest"))
    s.largest = args.get<int64_t>("largest");
  else if (s.quick > 0)
    s.largest = 5'000;
  s.seed = args.has("seed") ? args.get<uint64_t>("seed") : std::random_device()() % 1'000'000;
  return s;
}

Words for_child(const Settings& s) {
  Words words = {s.file,
                 "--mode",
                 s.mode,
                 "--device",
                 s.device_name,
                 "--seed",
                 std::to_string(s.seed),
                 "--largest",
                 std::to_string(s.largest)};
  for (const std::string& op : s.ops) words.insert(words.end(), {"--op", op});
  for (const std::string& dtype : s.dtypes) words.insert(words.end(), {"--dtype", dtype});
  if (s.full) words.push_back("--full");
  if (s.quick > 0) words.push_back("--quick");
  return words;
}

int command(const Words& given) {
  Arguments args(
      "adjoin conform FILE.so [--quick] [--mode MODE] [--op NAME]... [--dtype NAME]... [--html "
      "FILE]\n       adjoin conform --comm ENGINE|FILE.so    an engine for collectives between "
      "processes",
      "Drives a device plugin through memory, copies, streams and events, threads, fork, "
      "and every op beside the\nreference backend, in child processes: a crash or a hang is a "
      "verdict. Modes: all (the default), of which test\n(values, layouts, sizes), grad (first "
      "and second derivatives), device (no ops) are parts; perf, support.\nFailures are told at "
      "once. Of a part it says what was checked and what was not; `conforms` is said of all "
      "alone.\nExit code 0: nothing failed; 1: something did, or nothing was checked; 2: wrong "
      "use.\n\n"
      "A case is passed, failed, `refused alike` (the reference refuses it too), `unsupported` "
      "(the device says that it\nlacks it), `not compared` (the reference lacks it: ops of the "
      "plugin's own) or skipped with a reason.");
  args.add()("mode", options::value<std::string>()->default_value("all"), "what to do");
  args.add()("op", options::value<Words>(), "only this op; may be repeated");
  args.add()("dtype", options::value<Words>(), "only this dtype; may be repeated");
  args.add()("device", options::value<std::string>(), "default: the one that the note names");
  args.add()("seed", options::value<uint64_t>(), "of the choice of samples and of their numbers");
  args.add()(
      "quick",
      "about 20 seconds: the device, then as many groups of op and dtype, chosen by the seed, "
      "as the time suffices for; says how many were left out");
  args.add()("full", "every sample instead of a choice by the seed");
  args.add()("largest", options::value<int64_t>(),
             "elements that a tensor has at most where a size is large (50000; 5000 with --quick)");
  args.add()(
      "timeout", options::value<double>()->default_value(60),
      "seconds for one case; less for the next ones after each that takes longer; after 5 in a "
      "row, or 10, the rest is given up");
  args.add()("json", options::value<std::string>(), "writes everything to this file; - prints it");
  args.add()("junit", options::value<std::string>(), "writes a JUnit report to this file");
  args.add()("html", options::value<std::string>(),
             "writes a certificate of one page to this file");
  args.positional("file", 1);
  bool child = given.size() > 5 && given[0] == "--serve";
  if (!args.parse(child ? Words(given.begin() + 5, given.end()) : given)) return 0;
  Report facts;
  Settings settings = settings_of(args, facts);
  if (child)
    return serve(settings, {std::stoi(given[1]), std::stoul(given[2]),
                            given[3] == "-" ? -1 : std::stod(given[3]), split(given[4], ',')});
  bool bare = args.has("json") && args.get<std::string>("json") == "-";  // stdout is JSON alone
  Report report = run_plan(settings, for_child(settings), args.get<double>("timeout"),
                           bare ? std::cerr : std::cout);
  report.version = facts.version, report.vendor = facts.vendor;
  if (bare)
    std::cout << report_json(report) << '\n';
  else
    print_report(report);
  if (args.has("json") && args.get<std::string>("json") != "-")
    write_file(args.get<std::string>("json"), report_json(report) + "\n");
  if (args.has("junit")) write_file(args.get<std::string>("junit"), report_junit(report));
  if (args.has("html")) write_file(args.get<std::string>("html"), certificate(report));
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace adjoin::cli::conform

int adjoin::cli::conform_command(const Words& given) {
  for (const std::string& word : given)
    if (word == "--comm" || word.starts_with("--comm=")) return conform::conform_comm(given);
  return conform::command(given);
}

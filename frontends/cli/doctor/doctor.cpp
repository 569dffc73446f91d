// frontends/cli/doctor/doctor.cpp: `adjoin doctor`: looks at everything that makes Adjoin fast or
// fail here, and says what to do.
#include "doctor.hpp"

#include <dlfcn.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

extern char** environ;

namespace adjoin::cli {
namespace doctor {

std::string libadjoin_file() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&aj_get_interface), &info) || !info.dli_fname)
    return "";
  std::error_code none;
  return std::filesystem::canonical(info.dli_fname, none).string();
}

std::string first_line(const std::string& file) {
  std::ifstream from(file);
  std::string line;
  std::getline(from, line);
  return line;
}

std::string size_text(double bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int i = 0;
  for (; bytes >= 1024 && i < 4; ++i) bytes /= 1024;
  char out[32];
  std::snprintf(out, sizeof out, bytes < 10 && i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
  return out;
}

namespace {

bool is_size(const std::string& value) {
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  static const char* const units[] = {"",    "b", "k",  "kb", "ki",  "kib", "m",  "mb", "mi",
                                      "mib", "g", "gb", "gi", "gib", "t",   "tb", "ti", "tib"};
  while (*end == ' ') ++end;
  auto same = [&](const char* unit) { return strcasecmp(unit, end) == 0; };
  return end != value.c_str() && number > 0 && std::any_of(units, std::end(units), same);
}

bool is_level(const std::string& value) {
  static const char* const levels[] = {"error", "warning", "info", "trace"};
  return value.empty() || std::find(levels, std::end(levels), value) != std::end(levels);
}

// Values that libadjoin cannot read and leaves out.
void look_at_variable(Findings& out, const std::string& entry) {
  size_t is = entry.find('=');
  std::string name = entry.substr(0, is), value = entry.substr(is + 1);
  bool whole = value.find_first_not_of("0123456789") == value.npos;
  if (name == "ADJOIN_NUM_THREADS" && !(whole && (value.empty() || std::atoi(value.c_str()) > 0)))
    out.complaint("variable", entry + " is no number of threads and is ignored",
                  "unset ADJOIN_NUM_THREADS, or set it to a whole number above 0");
  else if (name == "ADJOIN_LOG" && !is_level(value))
    out.complaint("variable", entry + " is no level of messages and is ignored",
                  "unset ADJOIN_LOG, or set it to error, warning, info or trace");
  else if (name == "ADJOIN_MEMORY_LIMIT" && !is_size(value))
    out.complaint("variable", entry + " is no size and is ignored",
                  "unset ADJOIN_MEMORY_LIMIT, or set it to bytes, 500MB or 4GiB");
  else
    out.fine("variable", entry);
}

}  // namespace

void look_at_installation(Findings out) {
  namespace fs = std::filesystem;
  uint32_t abi = aj_abi_version();
  out.fine("adjoin", std::string(ADJOIN_VERSION) + ", contract " + std::to_string(abi >> 16) + "." +
                         std::to_string(abi & 0xffff));
  std::string library = libadjoin_file();
  out.fine("libadjoin", library);
  fs::path at = fs::path(library).parent_path();
  bool headers = false;
  for (int up = 0; up < 3 && !headers; ++up) {
    at = at.parent_path();
    headers = fs::exists(at / "include/adjoin/abi/base.h");
  }
  if (headers)
    out.fine("headers", (at / "include").string());
  else
    out.note("headers", "none above " + library + ": no plugin can be built here",
             "install the headers beside the library: meson install, or the wheel");
  std::string version;
  if (capture({"c++", "--version"}, 5, &version))
    out.fine("compiler", version.substr(0, version.find('\n')));
  else
    out.note("compiler", "no c++ in PATH: Adjoin runs, but no plugin or extension can be built",
             "apt-get install g++");
  for (char** e = environ; *e; ++e) {
    std::string entry = *e;
    if (entry.starts_with("ADJOIN_") && !entry.starts_with("ADJOIN_PYTHON=") &&
        !entry.starts_with("ADJOIN_PREFIX="))
      look_at_variable(out, entry);
    if (entry.starts_with("LD_PRELOAD=") && entry.size() > 11)
      out.note("variable", entry + ": goes before every library here");
  }
}

namespace {

std::vector<Finding> examine(const std::string& pid) {
  std::vector<Finding> all;
  look_at_installation(Findings(&all, "installation"));
  look_at_plugins(Findings(&all, "plugins"));
  look_at_libraries(Findings(&all, "libraries"));
  look_at_copies(Findings(&all, "libraries"), "/proc/self/maps");
  if (!pid.empty()) look_at_copies(Findings(&all, "process " + pid), "/proc/" + pid + "/maps");
  look_at_processor(Findings(&all, "processor"));
  look_at_gpus(Findings(&all, "processor"));
  look_at_memory(Findings(&all, "memory"));
  look_at_caches(Findings(&all, "caches"));
  look_at_python(Findings(&all, "Python"));
  return all;
}

void print(const std::vector<Finding>& all) {
  size_t width = 0;
  for (const Finding& f : all) width = std::max(width, f.name.size());
  std::string section;
  for (const Finding& f : all) {
    if (f.section != section) std::cout << f.section << '\n';
    section = f.section;
    const char* mark = f.state == State::complaint ? "!" : f.state == State::note ? "-" : " ";
    std::cout << mark << ' ' << f.name << std::string(width - f.name.size() + 2, ' ') << f.text
              << '\n';
    if (!f.remedy.empty()) std::cout << std::string(width + 4, ' ') << "-> " << f.remedy << '\n';
  }
}

void print_json(const std::vector<Finding>& all, bool ok) {
  std::vector<std::string> items;
  for (const Finding& f : all) {
    const char* state = f.state == State::complaint ? "complaint"
                        : f.state == State::note    ? "note"
                                                    : "fine";
    items.push_back(json({{"section", quote(f.section)},
                          {"name", quote(f.name)},
                          {"state", quote(state)},
                          {"text", quote(f.text)},
                          {"remedy", quote(f.remedy)}}));
  }
  std::cout << json({{"ok", ok ? "true" : "false"}, {"findings", json_list(items)}}) << '\n';
}

}  // namespace
}  // namespace doctor

int doctor_command(const Words& words) {
  Arguments args("adjoin doctor [--pid N] [--json]",
                 "Looks at what is installed, plugins (each is tried in a child first), libraries, "
                 "processor, memory,\ncaches and the Python package. '!' is a complaint, '-' a "
                 "note, '->' what to do. Exit code 0: no complaint.");
  args.add()("pid", options::value<int>()->value_name("N"),
             "looks at the BLAS and OpenMP libraries of that process too");
  args.add()("json", "prints JSON");
  if (!args.parse(words)) return 0;
  std::string pid = args.has("pid") ? std::to_string(args.get<int>("pid")) : "";
  std::vector<doctor::Finding> all = doctor::examine(pid);
  auto count = [&](doctor::State state) {
    return std::count_if(all.begin(), all.end(), [&](auto& f) { return f.state == state; });
  };
  auto complaints = count(doctor::State::complaint);
  if (args.has("json")) {
    doctor::print_json(all, complaints == 0);
  } else {
    doctor::print(all);
    std::cout << (complaints == 0   ? "no complaint"
                  : complaints == 1 ? "1 complaint"
                                    : std::to_string(complaints) + " complaints")
              << '\n';
  }
  return complaints ? 1 : 0;
}

}  // namespace adjoin::cli

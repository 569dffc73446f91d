// frontends/cli/doctor/plugins.cpp: every plugin that was found: tried in a child, then loaded, and
// asked what it has to tell.
#include <adjoin/abi/report.h>

#include <cstdlib>
#include <filesystem>

#include "../trial.hpp"
#include "doctor.hpp"

namespace adjoin::cli::doctor {
namespace {

constexpr double kSeconds = 20;  // that loading may take

const aj_services* services() {
  return static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
}

// What a plugin tells of itself; what it misses begins with "missing: ", and ends with what to do
// after the last ';'.
void add_report(Findings& out, const std::string& name) {
  aj_service_def def = {};
  def.struct_size = sizeof def;
  std::string slot = "aj.report/" + name;
  if (!services() || services()->count(borrow(slot)) == 0) return;
  check(services()->at(borrow(slot), 0, &def));
  auto* report = static_cast<const aj_report*>(def.table);
  aj_object* told = nullptr;
  if (!AJ_HAS_FN(report, aj_report, lines)) return;
  if (aj_status* bad = report->lines(report->self, &told)) {
    out.note("", text(core().status_message(bad)));
    core().status_free(bad);
    return;
  }
  for (const std::string& line : split(take(told), '\n')) {
    size_t end = line.rfind("; ");
    if (!line.starts_with("missing: "))
      out.fine("", line);
    else if (end == line.npos)
      out.note("", line);
    else
      out.note("", line.substr(0, end), line.substr(end + 2));
  }
}

void load(Findings& out, const aj_plugin_info& p) {
  std::string name = text(p.name), label = text(p.version) + ": ", path = text(p.path);
  Trial trial = try_in_child(path, kSeconds);
  if (!trial.ok)
    return out.complaint(name, label + trial.what + " (" + path + ")",
                         "remove the file, or leave it out: ADJOIN_PLUGINS=only:NAME,...");
  if (aj_status* bad = aj_load_plugin(path.c_str())) {
    std::string why = text(core().status_message(bad));
    core().status_free(bad);
    return out.complaint(name, label + why, "adjoin plugins why " + name);
  }
  const std::string nothing = "registers 0 ops";  // kernels and services: told by the others
  std::string what = trial.what.starts_with(nothing + ", ") ? trial.what.substr(nothing.size() + 2)
                     : trial.what == nothing                ? "loads"
                                                            : trial.what;
  out.fine(name, label + what);
  add_report(out, name);
}

void judge(Findings& out, const aj_plugin_info& p) {
  std::string name =
      text(p.name).empty() ? std::filesystem::path(text(p.path)).filename().string() : text(p.name);
  std::string what = std::string(state_name(p.state)) + ": " + text(p.reason);
  switch (p.state) {
    case AJ_PLUGIN_FOUND:
      return load(out, p);
    case AJ_PLUGIN_LOADED:
      out.fine(name, text(p.version) + ": loaded");
      return add_report(out, name);
    case AJ_PLUGIN_SHADOWED:
    case AJ_PLUGIN_DISABLED:
      return out.note(name, what + " (" + text(p.path) + ")");
    default:
      break;
  }
  if (text(p.reason).find("ADJOIN_PLUGINS") != std::string::npos)  // the user wants it so
    return out.note(name, what);
  std::string how = p.state == AJ_PLUGIN_REFUSED && p.version.len == 0
                        ? "adjoin plugins check " + text(p.path)
                        : "adjoin plugins why " + name;
  out.complaint(name, what + " (" + text(p.path) + ")", how);
}

}  // namespace

void look_at_plugins(Findings out) {
  namespace fs = std::filesystem;
  std::string list = secure_getenv("ADJOIN_PLUGIN_PATH") ? secure_getenv("ADJOIN_PLUGIN_PATH") : "";
  for (const std::string& folder : split(list, ':'))
    if (std::error_code none; !fs::is_directory(folder, none))
      out.complaint("ADJOIN_PLUGIN_PATH", "'" + folder + "' is no folder",
                    "take it out of ADJOIN_PLUGIN_PATH");
  // Loading one may load others that it requires: the state is asked anew each time.
  size_t n = list_plugins().size();
  for (size_t i = 0; i < n; ++i) judge(out, list_plugins()[i]);
  int32_t cpu = 0;
  aj_status* none = core().device_find(borrow("cpu"), &cpu);
  if (none)
    out.complaint("device cpu", text(core().status_message(none)), "adjoin plugins why cpu");
  core().status_free(none);
}

}  // namespace adjoin::cli::doctor

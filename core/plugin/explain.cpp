// core/plugin/explain.cpp: why a plugin serves or does not, in words.
#include <adjoin/abi/report.h>

#include <algorithm>

#include "core/device/device.hpp"
#include "core/guest/caught.hpp"
#include "core/op/registry.hpp"
#include "core/op/tables.hpp"
#include "core/plugin/catalog.hpp"
#include "core/plugin/libraries.hpp"
#include "core/service/services.hpp"

namespace adjoin::plugin {
namespace {

std::string name_of(std::string_view what) { return std::string(what.substr(what.find(':') + 1)); }

std::string verdict(const Catalog& list, const Candidate* c) {
  if (const Candidate* other = list.shadowing(c)) return "shadowed by " + other->path;
  std::string text = state_name(c->state);
  return c->reason().empty() ? text : text + ": " + c->reason();
}

std::string loaded_names(const Catalog& list) {
  std::string text;
  for (const Candidate* c : list.all())
    if (c->state == AJ_PLUGIN_LOADED)
      text += (text.empty() ? "" : ", ") + c->name + " " + c->note.version;
  return text.empty() ? "nothing" : text;
}

std::string searched(const Catalog& list) {
  std::string text;
  for (const Folder& f : list.folders())
    text += (text.empty() ? "" : ", ") + describe(f) +
            (f.problem.empty() ? "" : " (" + f.problem + ")");
  return text.empty() ? "no folder" : text;
}

// A file that was refused may be meant though its note, if it has one, does not say so: its own
// name does.
std::vector<Candidate*> concerned(const Catalog& list, std::string_view what) {
  std::vector<Candidate*> found = list.offering(what);
  for (Candidate* c : list.named(name_of(what)))
    if (c->state == AJ_PLUGIN_REFUSED && std::find(found.begin(), found.end(), c) == found.end())
      found.push_back(c);
  return found;
}

// What a loaded plugin tells of itself, indented.
std::string report_of(const Candidate* c) {
  std::string slot = "aj.report/" + c->name, lines;
  aj_service_def d = {};
  d.struct_size = sizeof d;
  if (aj_status* none = service_peek(str(slot), &d)) return free_status(none), lines;
  auto* report = static_cast<const aj_report*>(d.table);
  aj_object* told = nullptr;
  if (!AJ_HAS_FN(report, aj_report, lines)) return lines;
  if (aj_status* s =
          caught(report->lines, "report", [&] { return report->lines(report->self, &told); })) {
    lines = s->message;
    free_status(s);
  } else {
    lines = view(core_table.string_get(told));
    core_table.release(told);
  }
  std::string text;
  for (std::string_view line : split(lines, '\n')) text += "  " + std::string(line) + "\n";
  return text;
}

}  // namespace

const char* state_name(int32_t state) {
  switch (state) {
    case AJ_PLUGIN_FOUND:
      return "found";
    case AJ_PLUGIN_LOADED:
      return "loaded";
    case AJ_PLUGIN_REFUSED:
      return "refused";
    case AJ_PLUGIN_FAILED:
      return "failed";
    case AJ_PLUGIN_SHADOWED:
      return "shadowed";
    case AJ_PLUGIN_DISABLED:
      return "disabled";
    default:
      return "unknown";
  }
}

std::string why_nobody(const Catalog& list, std::string_view what) {
  std::string text;
  for (const Candidate* c : concerned(list, what)) {
    if (c->state == AJ_PLUGIN_LOADED) continue;
    std::string state = c->busy ? std::string("is being ") + c->busy : verdict(list, c);
    text += (text.empty() ? "plugin " : "; plugin ") + c->label() + ": " + state;
  }
  if (!text.empty()) return text;
  return "no plugin provides '" + name_of(what) + "'; loaded: " + loaded_names(list) +
         "; searched: " + searched(list);
}

std::string explain(const Catalog& list, std::string_view what) {
  std::vector<Candidate*> found;
  for (Candidate* c : list.all()) {
    bool offers = false;
    if (c->has_note)
      for (std::string_view one : split(c->note.provides, ';'))
        offers |= one == what || name_of(one) == what;
    if (offers || c->name == what || c->name == name_of(what)) found.push_back(c);
  }
  std::string text;
  for (const Candidate* c : found) {
    text += "plugin " + c->label() + ": " + verdict(list, c) + "\n";
    if (c->has_note && *c->note.provides)
      text += std::string("  provides ") + c->note.provides + "\n";
    if (c->has_note && *c->note.requires_)
      text += std::string("  requires ") + c->note.requires_ + "\n";
    if (c->state == AJ_PLUGIN_LOADED) text += report_of(c);
    if (c->inits)
      text += provider_summary(c->name) + device_summary(c->name) + service_summary(c->name);
    if (c->inits)
      for (const auto& [file, plugin] : noted_files())
        if (plugin == c->name) text += "  brought the library " + file + "\n";
  }
  if (found.empty()) text += "no plugin is called '" + std::string(what) + "' or provides it\n";
  text += "loaded: " + loaded_names(list) + "\n";
  for (const Folder& f : list.folders()) {
    auto here = [&](const Candidate* c) { return c->folder == f.path; };
    auto all = list.all();
    auto count = std::count_if(all.begin(), all.end(), here);
    text += "searched " + describe(f) + ": " +
            (f.problem.empty() ? std::to_string(count) + (count == 1 ? " plugin" : " plugins")
                               : f.problem) +
            "\n";
  }
  if (found.empty())
    text += "to add a folder: ADJOIN_PLUGIN_PATH=FOLDER; to load a file: load_plugin(FILE)\n";
  return text;
}

}  // namespace adjoin::plugin

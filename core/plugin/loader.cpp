// core/plugin/loader.cpp: finds and loads what is asked for; two of libadjoin's symbols and the
// interface "aj.plugins".
#include "core/plugin/loader.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <vector>

#include "core/base/status.hpp"
#include "core/device/device.hpp"
#include "core/op/tables.hpp"
#include "core/op/trace.hpp"
#include "core/plugin/catalog.hpp"
#include "core/plugin/init.hpp"
#include "core/plugin/libraries.hpp"
#include "core/plugin/load_lock.hpp"
#include "core/plugin/manage.hpp"
#include "core/plugin/trust.hpp"

namespace adjoin {
namespace {

using plugin::Candidate;
using plugin::catalog;
using plugin::load_lock;
using plugin::Locked;

const aj_core& core_table() {
  return *static_cast<const aj_core*>(core_query("aj.core", AJ_ABI_MAJOR));
}

// No exception of ours may leave through a table.
template <class F>
aj_status* guarded(F body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return fail(AJ_INTERNAL, "plugins: ", e.what());
  }
}

aj_plugin_info info_of(const Candidate& c, const Candidate* shadow) {
  aj_plugin_info info = {};
  info.state = static_cast<uint32_t>(shadow ? AJ_PLUGIN_SHADOWED : c.state);
  info.name = str(plugin::intern(c.name));
  info.path = str(plugin::intern(c.path));
  info.reason = str(
      shadow ? plugin::intern("the same name stands earlier in the search path: " + shadow->path)
             : c.reason());
  if (!c.has_note) return info;
  info.version = str(plugin::intern(c.note.version));
  info.vendor = str(plugin::intern(c.note.vendor));
  info.license = str(plugin::intern(c.note.license));
  info.provides = str(plugin::intern(c.note.provides));
  info.abi_major = c.note.abi_major;
  info.minor_min = c.note.minor_min;
  info.minor_built = c.note.minor_built;
  info.build_flags = c.note.build_flags;
  info.ops = str(plugin::intern(c.ops));
  return info;
}

aj_status* inspect(aj_str path, aj_plugin_info* io) {
  return guarded([&]() -> aj_status* {
    if (!io || io->struct_size < AJ_END_OF(aj_plugin_info, ops))
      return fail(AJ_INVALID_ARGUMENT,
                  "aj_plugins.inspect: aj_plugin_info.struct_size is too small");
    Candidate c;
    std::string given(view(path)), real = plugin::real_path(given);
    c.path = real.empty() ? given : real;
    c.folder = c.path.substr(0, c.path.rfind('/'));
    c.origin = plugin::Origin::kAsked;
    plugin::examine(&c, plugin::Policy::from_environment());
    aj_plugin_info info = info_of(c, nullptr);
    info.struct_size = io->struct_size;
    std::memcpy(io, &info, std::min<size_t>(io->struct_size, sizeof info));
    return nullptr;
  });
}

aj_status* why(aj_str what, aj_object** out) {
  return guarded([&] {
    Locked lock(load_lock());
    return core_table().string_new(str(explain(catalog(), view(what))), out);
  });
}

aj_status* search_path(aj_object** out) {
  return guarded([&] {
    Locked lock(load_lock());
    std::string lines;
    for (const plugin::Folder& f : catalog().folders()) lines += f.path + "\n";
    return core_table().string_new(str(lines), out);
  });
}

aj_status* add_folder(aj_str path) {
  return guarded([&]() -> aj_status* {
    std::string folder(view(path));
    if (folder.empty() || folder.front() != '/')
      return fail(AJ_INVALID_ARGUMENT, "plugins: the folder '", folder,
                  "' is not an absolute path");
    Locked lock(load_lock());
    catalog().discover();
    catalog().add_folder({folder, plugin::Origin::kFrontend, {}});
    return nullptr;
  });
}

aj_status* lint(aj_str path, aj_object** out) {
  return guarded([&] {
    plugin::ElfFile file;
    std::string lines = file.open(std::string(view(path)));
    if (lines.empty()) {
      plugin::SymbolReport report = plugin::check_symbols(file);
      if (!report.fatal.empty()) lines += report.fatal + "\n";
      if (size_t n = report.exports.size())
        lines += "exports " + std::to_string(n) + (n == 1 ? " symbol" : " symbols") +
                 " of its own, " + report.exports.front() + (n == 1 ? "" : " the first") +
                 "; hide them: link with $(adjoin config --ldflags)\n";
      for (const std::string& s : report.imports)
        lines += "needs the symbol " + s + "; use the tables that init receives\n";
      if (size_t n = report.unique.size())
        lines += "has " + std::to_string(n) + (n == 1 ? " unique symbol, " : " unique symbols, ") +
                 report.unique.front() + (n == 1 ? "" : " the first") +
                 ", and cannot be unmapped: compile with -fno-gnu-unique\n";
    } else {
      lines += "\n";
    }
    return core_table().string_new(str(lines), out);
  });
}

aj_status* device_table(DLDevice id, const aj_device_vtbl** out) {
  Device* d = nullptr;
  AJ_TRY(device_open(id, &d));
  *out = &d->vtbl;
  return nullptr;
}

constexpr aj_plugins kTable = {.struct_size = sizeof(aj_plugins),
                               .minor = AJ_ABI_MINOR,
                               .inspect = inspect,
                               .why = why,
                               .disable = plugin::disable,
                               .search_path = search_path,
                               .add_folder = add_folder,
                               .lint = lint,
                               .device_table = device_table,
                               .enable = plugin::enable,
                               .unload = plugin::unload,
                               .lock = plugin::lock,
                               .verify = plugin::verify,
                               .library_open = plugin::library_open,
                               .trace = trace_ops};

void warn_if_others_may_write(const Candidate& c) {
  std::string who = plugin::who_else_may_write(c.path);
  if (!who.empty())
    core_table().log(1, str("plugins"), str(text("loading ", c.label(), " although ", who)));
}

// A file that takes the name of an installed plugin keeps that from loading: it must provide as
// much.
aj_status* check_name(Candidate* c) {
  if (c->state != AJ_PLUGIN_FOUND) return nullptr;
  for (const Candidate* other : catalog().named(c->name))
    if (other != c && other->state == AJ_PLUGIN_FOUND)
      for (std::string_view what : plugin::split(other->note.provides, ';'))
        if (!plugin::provides(c->note, what)) {
          c->set(AJ_PLUGIN_REFUSED,
                 text("the installed plugin ", other->label(), " has that name and provides '",
                      what, "', which this file does not; give it another name"));
          return fail(AJ_ALREADY_EXISTS, "plugin ", c->label(), ": ", c->reason());
        }
  return nullptr;
}

aj_status* load_asked(const char* path) {
  if (!path || !*path) return fail(AJ_INVALID_ARGUMENT, "aj_load_plugin: the path is empty");
  Locked lock(load_lock());
  catalog().discover();
  Candidate* c = catalog().add_asked(path);
  if (c->state == AJ_PLUGIN_LOADED) return nullptr;
  for (const Candidate* other : catalog().named(c->name))
    if (other != c && other->state == AJ_PLUGIN_LOADED)
      return fail(AJ_ALREADY_EXISTS, "plugin ", c->label(), ": ", other->label(),
                  " is loaded already");
  if (aj_status* bad = check_name(c)) return bad;
  if (c->state == AJ_PLUGIN_FOUND) warn_if_others_may_write(*c);
  return plugin::load(c);
}

// Wants load_lock() to be held. Is one of them there now?
bool load_all(std::string_view what) {
  catalog().discover();
  bool loaded = false;
  for (Candidate* c : catalog().offering(what)) {
    if (c->busy || catalog().shadowing(c)) continue;
    if (c->state == AJ_PLUGIN_FOUND) free_status(plugin::load(c));
    loaded |= c->state == AJ_PLUGIN_LOADED;
  }
  return loaded;
}

}  // namespace

void discover_plugins() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire)) return;
  aj_status* ignored = guarded([]() -> aj_status* {
    Locked lock(load_lock());
    catalog().discover();
    return nullptr;
  });
  free_status(ignored);
  done.store(true, std::memory_order_release);
}

aj_status* load_provider_of(std::string_view what) {
  return guarded([&]() -> aj_status* {
    Locked lock(load_lock());
    if (load_all(what)) return nullptr;
    return fail(AJ_NOT_FOUND, why_nobody(catalog(), what));
  });
}

void load_extensions(std::string_view what) {
  free_status(guarded([&]() -> aj_status* {
    Locked lock(load_lock());
    load_all(what);
    return nullptr;
  }));
}

bool plugin_offers(std::string_view what) {
  discover_plugins();
  Locked lock(load_lock());
  return !catalog().offering(what).empty();
}

std::string why_not(std::string_view what) {
  Locked lock(load_lock());
  return why_nobody(catalog(), what);
}

std::string plugin_label(std::string_view name) {
  Locked lock(load_lock());
  for (const Candidate* c : catalog().named(name))
    if (c->state == AJ_PLUGIN_LOADED || c->busy) return c->label();
  return std::string(name);
}

std::string plugin_verdict(std::string_view name) {
  Locked lock(load_lock());
  const Candidate* found = nullptr;
  for (const Candidate* c : catalog().named(name))
    if (!found || c->inits) found = c;
  if (!found) return text("plugin '", name, "' is not known");
  return text("plugin ", found->label(), ": ", plugin::state_name(found->state), ": ",
              found->reason());
}

const aj_plugins* plugins_table() { return &kTable; }

}  // namespace adjoin

extern "C" aj_status* aj_load_plugin(const char* path) {
  adjoin::start();
  return adjoin::guarded([&] { return adjoin::load_asked(path); });
}

extern "C" aj_status* aj_list_plugins(int32_t (*visit)(void* self, const aj_plugin_info* info),
                                      void* self) {
  return adjoin::guarded([&]() -> aj_status* {
    std::vector<aj_plugin_info> infos;
    {
      adjoin::Locked lock(adjoin::load_lock());
      adjoin::catalog().discover();
      for (const adjoin::Candidate* c : adjoin::catalog().all())
        infos.push_back(adjoin::info_of(*c, adjoin::catalog().shadowing(c)));
    }
    for (aj_plugin_info& info : infos) {
      info.struct_size = sizeof info;
      if (visit(self, &info) != 0) break;
    }
    return nullptr;
  });
}

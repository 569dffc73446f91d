// core/plugin/manage.cpp: disabling, enabling and unloading plugins while tensors live; lock files.
//
// A disabled plugin's kernels, ops and services are not chosen any more; its code stays mapped, so
// tensors of its device keep their memory and tapes their derivatives. Unmapping is for plugins
// that left nothing behind: whatever may still point into one keeps it mapped, and is told.
#include "core/plugin/manage.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/device/device.hpp"
#include "core/guest/frontend.hpp"
#include "core/guest/object.hpp"
#include "core/op/registry.hpp"
#include "core/plugin/entry.hpp"
#include "core/plugin/init.hpp"
#include "core/plugin/libraries.hpp"
#include "core/service/services.hpp"
#include "core/thread/quiet.hpp"

namespace adjoin::plugin {
namespace {

aj_status* unknown(aj_str name) {
  return fail(AJ_NOT_FOUND, "plugins: no plugin is called '", name,
              "'; `adjoin plugins list` shows who is there");
}

aj_status* disable_one(Candidate* c) {
  if (c->busy) return fail(AJ_PRECONDITION, "plugins: ", c->label(), " is being ", c->busy);
  aj_status* bad = nullptr;
  if (c->state == AJ_PLUGIN_LOADED) {
    AJ_TRY(disable_provider(c->name));
    service_remove(c->name);
    devices_end(c->name);
    types_end(c->name);
    frontends_end(c->name);
    bad = drain(c);
  }
  if (c->state == AJ_PLUGIN_LOADED || c->state == AJ_PLUGIN_FOUND)
    c->set(AJ_PLUGIN_DISABLED, "disabled by request" + (bad ? "; " + bad->message : ""));
  return bad ? prefix(bad, text("plugin ", c->label(), ": it is disabled, but ")) : nullptr;
}

// What may still point into its code or its data; empty: nothing.
std::string keeps_mapped(const Candidate& c) {
  if (!c.drain)
    return "it exports no aj_plugin_drain_v1, which would promise that nothing of it is left";
  if (!c.drained) return "its drain has not promised that nothing of it runs";
  if (std::string tied = provider_ties(c.name); !tied.empty()) return tied;
  if (std::string device = provider_device_open(c.name); !device.empty())
    return "its device '" + device + "' is open, and stays so until the process ends";
  if (std::string given = service_given(c.name); !given.empty())
    return "its service " + given + " was handed out";
  return pins_text(c.pins);
}

// Others have the lock meanwhile: calls that look for their kernels now come to their end.
std::string wait_for_calls(Candidate* c) {
  struct Busy {
    Candidate* c;
    ~Busy() { c->busy = nullptr; }
  } busy{c};
  c->busy = "unloaded";
  Unlocked meanwhile;
  return wait_until_quiet();
}

std::string unload_one(Candidate* c) {
  if (!c->handle) return {};
  std::string kept = keeps_mapped(*c);
  if (kept.empty()) {  // no call that begins from here on finds its functions
    retire_definitions(c->name);
    kept = wait_for_calls(c);
    if (kept.empty()) kept = pins_text(c->pins);  // what calls have made meanwhile
  }
  if (!kept.empty()) {
    c->set(AJ_PLUGIN_DISABLED, "disabled by request; it stays mapped: " + kept);
    return kept;
  }
  kept = unmap(c);
  c->set(AJ_PLUGIN_DISABLED, "unloaded by request" + (kept.empty() ? "" : "; " + kept));
  return kept;
}

std::string differs(const std::string& what, const std::string& digest, const std::string& locked) {
  if (digest == locked) return {};
  return what + ": its sha256 is " + (digest.empty() ? "unknown, it cannot be read" : digest) +
         ", the lock file says " + locked + "\n";
}

// The plugin of that name that would be loaded, by the digest that its file has now.
std::string plugin_differs(const std::string& name, const std::string& locked) {
  const Candidate* found = nullptr;
  for (const Candidate* c : catalog().named(name))
    if (!found && c->has_note && c->state != AJ_PLUGIN_REFUSED) found = c;
  if (!found) return "plugin " + name + ": not installed\n";
  return differs("plugin " + found->label(), sha256_of_path(found->path), locked);
}

LockFile lock_of_now() {
  LockFile file;
  file.libadjoin = sha256_of_path(libadjoin_path());
  for (const Candidate* c : catalog().all())
    if (c->state == AJ_PLUGIN_LOADED) file.plugins[c->name] = sha256_of_path(c->path);
  for (const auto& [path, plugin] : noted_files())
    file.libraries[path.substr(path.rfind('/') + 1)] = {sha256_of_path(path), path};
  file.names_features = true;
  file.features = processor_features();
  return file;
}

}  // namespace

aj_status* disable(aj_str name) {
  return guarded("disable", [&]() -> aj_status* {
    std::vector<Candidate*> found = catalog().named(view(name));
    if (found.empty()) return unknown(name);
    for (Candidate* c : found) AJ_TRY(disable_one(c));
    return nullptr;
  });
}

aj_status* enable(aj_str name) {
  return guarded("enable", [&]() -> aj_status* {
    std::vector<Candidate*> found = catalog().named(view(name));
    if (found.empty()) return unknown(name);
    for (Candidate* c : found) {
      if (c->state == AJ_PLUGIN_LOADED) return nullptr;
      if (c->state != AJ_PLUGIN_DISABLED) continue;
      catalog().examine_again(c);
      if (c->state != AJ_PLUGIN_FOUND)
        return fail(AJ_PERMISSION, "plugins: ", c->label(), " stays ", state_name(c->state), ": ",
                    c->reason());
      // One that was never loaded waits until it is needed.
      if (c->inits) return load(c);
    }
    return nullptr;
  });
}

aj_status* unload(aj_str name, aj_object** out) {
  *out = nullptr;
  return guarded("unload", [&]() -> aj_status* {
    std::vector<Candidate*> found = catalog().named(view(name));
    if (found.empty()) return unknown(name);
    std::string kept;
    for (Candidate* c : found) {
      if (c->state == AJ_PLUGIN_SHADOWED) continue;  // replaced: tapes may need it
      AJ_TRY(disable_one(c));
      if (c->handle && !c->drained) AJ_TRY(drain(c));
      if (std::string why = unload_one(c); !why.empty()) kept = why;
    }
    return string_new(str(kept), out);
  });
}

aj_status* lock(aj_object** out) {
  *out = nullptr;
  return guarded("lock", [&] { return string_new(str(lock_of_now().text()), out); });
}

void lock_from_environment() {
  static const char* path;
  static pid_t owner;
  path = secure_getenv("ADJOIN_LOCK");
  if (!path || !*path) return;
  owner = getpid();
  std::atexit([] {
    if (getpid() != owner) return;  // a child of the program that was asked about
    free_status(guarded("lock", []() -> aj_status* {
      std::ofstream(path) << lock_of_now().text();
      return nullptr;
    }));
  });
}

aj_status* verify(aj_str path, aj_object** out) {
  *out = nullptr;
  return guarded("verify", [&]() -> aj_status* {
    LockFile file;
    std::string bad = file.read(std::string(view(path)));
    if (!bad.empty()) return fail(AJ_INVALID_ARGUMENT, "plugins: verify: ", bad);
    std::string lines = file.host_differences();
    for (const auto& [name, digest] : file.plugins) lines += plugin_differs(name, digest);
    for (const auto& [name, one] : file.libraries)
      lines +=
          differs("library " + name + " (" + one.path + ")", sha256_of_path(one.path), one.digest);
    return string_new(str(lines), out);
  });
}

}  // namespace adjoin::plugin

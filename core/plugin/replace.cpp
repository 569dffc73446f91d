// core/plugin/replace.cpp: a plugin's newer file in the place of the loaded one, and definitions
// without a file.
#include "core/plugin/replace.hpp"

#include <mutex>

#include "core/base/log.hpp"
#include "core/guest/object.hpp"
#include "core/op/registry_state.hpp"
#include "core/plugin/entry.hpp"
#include "core/plugin/init.hpp"
#include "core/plugin/trust.hpp"

namespace adjoin::plugin {
namespace {

// While it lives, the registry lets a plugin of that name define again what it has defined.
class Replacing {
 public:
  explicit Replacing(const std::string& name) { set(name); }
  ~Replacing() { set({}); }
  Replacing(const Replacing&) = delete;

 private:
  static void set(std::string name) {
    std::unique_lock guard(registry().lock);
    registry().replacing = std::move(name);
  }
};

Candidate* loaded_under(const std::string& name) {
  for (Candidate* c : catalog().named(name))
    if (c->state == AJ_PLUGIN_LOADED) return c;
  return nullptr;
}

aj_status* take_over(Candidate* c, Candidate* old) {
  for (std::string_view what : {"device:", "service:", "dtype:"})
    if (std::string_view(old->note.provides).find(what) != std::string_view::npos)
      return fail(AJ_UNIMPLEMENTED, "plugin ", c->label(), ": ", old->label(),
                  " is loaded and provides '", std::string_view(old->note.provides),
                  "'; only ops, kernels and keys change hands while they are used");
  {
    Replacing scope(c->name);
    AJ_TRY(load(c));
  }
  old->set(AJ_PLUGIN_SHADOWED, "replaced by " + c->path);
  if (!old->drain) return nullptr;
  if (aj_status* bad = old->drain()) {
    log_message(1, "plugins", old->label() + ": its drain failed: " + bad->message);
    free_status(bad);
  }
  return nullptr;
}

aj_status* replace(aj_str path, aj_object** out_name) {
  *out_name = nullptr;
  return guarded("replace", [&]() -> aj_status* {
    if (!path.len) return fail(AJ_INVALID_ARGUMENT, "plugins: replace: the path is empty");
    Candidate* c = catalog().add_asked(std::string(view(path)));
    Candidate* old = loaded_under(c->name);
    if (c->state == AJ_PLUGIN_FAILED || c->state == AJ_PLUGIN_SHADOWED) c->set(AJ_PLUGIN_FOUND, {});
    if (c->state == AJ_PLUGIN_FOUND)
      if (std::string who = who_else_may_write(c->path); !who.empty())
        log_message(1, "plugins", "loading " + c->label() + " although " + who);
    if (old && old != c) {
      AJ_TRY(take_over(c, old));
    } else {
      AJ_TRY(load(c));
    }
    return string_new(str(c->name), out_name);
  });
}

aj_status* define(aj_str name, aj_status* (*init)(void* self, const aj_plugin_env* env),
                  void* self) {
  return guarded("define", [&]() -> aj_status* {
    std::string provider(view(name));
    if (provider.empty() || !init)
      return fail(AJ_INVALID_ARGUMENT, "plugins: define: a name and a function are needed");
    if (!catalog().named(provider).empty())
      return fail(AJ_ALREADY_EXISTS, "plugins: define: there is a plugin called '", name,
                  "'; take another name");
    Replacing scope(provider);
    return run_init(provider, {}, {}, [&](const aj_plugin_env* env) { return init(self, env); });
  });
}

constexpr aj_x_plugins kTable = {.struct_size = sizeof(aj_x_plugins),
                                 .minor = AJ_ABI_MINOR,
                                 .replace = replace,
                                 .define = define};

}  // namespace

const aj_x_plugins* experimental_table() { return &kTable; }

}  // namespace adjoin::plugin

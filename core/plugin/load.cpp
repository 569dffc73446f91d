// core/plugin/load.cpp: runs a plugin's first code: dlopen and init.
#include "core/plugin/load.hpp"

#include <cxxabi.h>
#include <unwind.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>

#include "core/dispatch/registry.hpp"
#include "core/interfaces.hpp"
#include "core/plugin/guard.hpp"
#include "core/plugin/libraries.hpp"
#include "core/plugin/present.hpp"
#include "core/plugin/requires.hpp"
#include "core/status.hpp"

namespace adjoin::plugin {
namespace {

using Library = boost::dll::shared_library;
namespace load_mode = boost::dll::load_mode;

const void* query_for_plugin(const char* name, uint32_t major) {
  return present(name, core_query(name, major));
}

// ADJOIN_OPTIONS_NAME, with lines that end at ';' or at a line's end.
std::string user_options(const std::string& name) {
  std::string variable = "ADJOIN_OPTIONS_";
  for (char c : name)
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const char* value = secure_getenv(variable.c_str());
  std::string options = value ? value : "";
  std::replace(options.begin(), options.end(), ';', '\n');
  return options;
}

// A plugin that carries its own libgcc unwinds through our frames with both its copy and the
// process's. The latter aborts unless it has been used before: any use will do.
void wake_unwinder() {
  _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

// A C++ exception out of init is a defect of the plugin that can still be reported; a thread's
// cancellation is none.
using Init = std::function<aj_status*(const aj_plugin_env*)>;

aj_status* call_init(const Init& init, const aj_plugin_env* env) {
  try {
    return init(env);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    return fail(AJ_INTERNAL, "its init threw an exception: ", e.what());
  } catch (...) {
    return fail(AJ_INTERNAL, "its init threw something that is no std::exception");
  }
}

// Left open to the end of the process, unless it is asked for: Library's destructor would dlclose
// while threads and objects of the plugin may live.
std::map<void*, Library>& libraries() {
  static auto* all = new std::map<void*, Library>;
  return *all;
}

// What dlerror said, out of Boost's sentence around it.
std::string_view reason_in(std::string_view what) {
  constexpr std::string_view before = "dlerror system message: ";
  size_t begin = what.find(before), end = what.rfind(')');
  if (begin == what.npos || end == what.npos || end < begin + before.size()) return what;
  return what.substr(begin + before.size(), end - begin - before.size());
}

aj_status* open_library(const Candidate& c, void** out_handle) {
  try {
    Library library(c.path, load_mode::rtld_now | load_mode::rtld_local);
    *out_handle = library.native();
    libraries().try_emplace(*out_handle, std::move(library));
    return nullptr;
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    return fail(AJ_UNAVAILABLE, "cannot be loaded: ", reason_in(e.what()));
  } catch (...) {
    return fail(AJ_UNAVAILABLE, "cannot be loaded: its constructors threw an exception");
  }
}

aj_status* open_and_init(Candidate* c) {
  InitGuard guard(c->label());
  wake_unwinder();
  std::set<std::string> before = mapped_files();
  void* handle = nullptr;
  AJ_TRY(open_library(*c, &handle));
  AJ_TRY(note_new_files(before, c->path, c->name));
  const void* note = dlsym(handle, "aj_plugin_note_v1");
  if (!note || std::memcmp(note, &c->note, sizeof c->note) != 0)
    return fail(AJ_PRECONDITION, "the note that it exports is not the one in its file");
  auto init = reinterpret_cast<aj_plugin_init_fn>(dlsym(handle, "aj_plugin_init_v1"));
  if (!init) return fail(AJ_PRECONDITION, "does not export aj_plugin_init_v1");
  AJ_TRY(run_init(c->name, c->path, user_options(c->name), init));
  c->handle = handle;
  ++c->inits;
  c->drain = reinterpret_cast<aj_plugin_drain_fn>(dlsym(handle, "aj_plugin_drain_v1"));
  return nullptr;
}

aj_status* load_required(const Candidate& c) {
  for (std::string_view name : required_plugins(c.note)) {
    bool loaded = false;
    std::string why = "which is not installed";
    for (Candidate* other : catalog().named(name)) {
      if (loaded || catalog().shadowing(other)) continue;
      aj_status* bad = load(other);
      loaded = bad == nullptr;
      if (bad) why = "but " + bad->message;
      free_status(bad);
    }
    if (!loaded) return fail(AJ_PRECONDITION, "needs plugin '", name, "', ", why);
  }
  return nullptr;
}

}  // namespace

aj_status* run_init(const std::string& provider, const std::string& path,
                    const std::string& options, const Init& init) {
  aj_registrar transaction(provider);
  aj_plugin_env env = {};
  env.struct_size = sizeof env;
  env.minor = this_host().minor;
  env.core = static_cast<const aj_core*>(query_for_plugin("aj.core", AJ_ABI_MAJOR));
  env.query = query_for_plugin;
  env.registrar = &transaction;
  env.def_device = def_device;
  env.def_service = def_service;
  env.path = str(path);
  env.options = str(options);
  AJ_TRY(call_init(init, static_cast<const aj_plugin_env*>(present("env", &env))));
  return transaction.commit();
}

void unmap(Candidate* c) {
  libraries().erase(c->handle);
  c->handle = nullptr;
  c->drain = nullptr;
}

aj_status* load(Candidate* c) {
  if (c->state == AJ_PLUGIN_LOADED) return nullptr;
  if (c->initialising)
    return fail(AJ_PRECONDITION, "plugin ", c->label(), ": is being initialised and needs itself");
  if (c->state != AJ_PLUGIN_FOUND)
    return fail(AJ_UNAVAILABLE, "plugin ", c->label(), ": ", state_name(c->state), ": ",
                c->reason());
  c->initialising = true;
  aj_status* bad = load_required(*c);
  if (!bad) bad = open_and_init(c);
  c->initialising = false;
  if (!bad) {
    c->set(AJ_PLUGIN_LOADED, "");
    return nullptr;
  }
  c->set(AJ_PLUGIN_FAILED, bad->message);
  return prefix(bad, text("plugin ", c->label(), ": "));
}

}  // namespace adjoin::plugin

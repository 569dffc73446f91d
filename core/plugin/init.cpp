// core/plugin/init.cpp: runs a plugin's first code: dlopen and init.
#include "core/plugin/init.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>

#include "core/base/plain.hpp"
#include "core/base/status.hpp"
#include "core/guest/caught.hpp"
#include "core/op/call.hpp"
#include "core/op/registry.hpp"
#include "core/op/tables.hpp"
#include "core/plugin/init_guard.hpp"
#include "core/plugin/libraries.hpp"
#include "core/plugin/present.hpp"
#include "core/plugin/requires.hpp"
#include "core/plugin/watch.hpp"

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
  for (char c : name) variable += c == '-' ? '_' : upper(c);
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

template <class F>
aj_status* caught(const char* what, F call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    return fail(AJ_INTERNAL, "its ", what, " threw an exception: ", e.what());
  } catch (...) {
    return fail(AJ_INTERNAL, "its ", what, " threw something that is no std::exception");
  }
}

template <class F>
aj_status* returned_by_plugin(aj_status* s, F* function) {
  return look_at_returned(s, reinterpret_cast<const void*>(function)), s;
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

// Does somebody have the file mapped? It stays as it is.
void* mapped_already(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
  if (handle) dlclose(handle);
  return handle;
}

// Its init would run a second time on one copy of its variables, with the tables of either.
aj_status* check_alone(const Candidate& c) {
  void* there = mapped_already(c.path);
  if (!there || libraries().contains(there)) return nullptr;
  for (const std::string& file : mapped_files())
    if (file.substr(file.rfind('/') + 1).starts_with("libadjoin.so") &&
        real_path(file) != libadjoin_path())
      return fail(AJ_ALREADY_EXISTS, "a second libadjoin of this process, ", file,
                  ", has loaded this file; a plugin serves one of them");
  return nullptr;
}

aj_status* open_library(const Candidate& c, void** out_handle) {
  AJ_TRY(check_alone(c));
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

// A file beside libadjoin may have ops of any name that its section says.
bool promises(const Candidate& c, const std::string& op) {
  return c.is_pack() && names_op(c.ops, op);
}

// Whoever asks for an op finds its plugin by what the file says of it.
aj_status* check_promised(const Candidate& c, const aj_registrar& made) {
  for (const aj_op* op : made.ops) {
    const Schema& s = op->schema;
    if (promises(c, s.name)) continue;
    if (s.space.empty() && find_op(s.name)) continue;  // refused as what is there already
    if (s.space.empty())
      return fail(AJ_INVALID_ARGUMENT, "its op '", s.name,
                  "' has no space; such names are libadjoin's own, a plugin's are SPACE::", s.name);
    if (!provides(c.note, "ops:" + s.space) && !names_op(c.ops, s.name))
      return fail(AJ_INVALID_ARGUMENT, "its op '", s.name,
                  "' is none that its note promises, which provides '",
                  std::string_view(c.note.provides), "'; add ops:", s.space,
                  " there, or name the op by AJ_PLUGIN_OPS");
  }
  return nullptr;
}

// What is defined for an op of another plugin's waits until that is loaded; of the plugin's own
// spaces every op is there now.
aj_status* check_named(const Candidate& c, const aj_registrar& made, const char* what,
                       const std::string& op) {
  size_t colon = op.find("::");
  auto is_it = [&](const aj_op* o) { return o->schema.name == op; };
  if (colon == op.npos || !provides(c.note, "ops:" + op.substr(0, colon)) ||
      std::any_of(made.ops.begin(), made.ops.end(), is_it) || find_op(op))
    return nullptr;
  return fail(AJ_NOT_FOUND, "its ", what, " for '", op, "' is for an op that nobody defines");
}

aj_status* check_definitions(const Candidate& c, const aj_registrar& made) {
  AJ_TRY(check_promised(c, made));
  for (const auto& k : made.kernels) AJ_TRY(check_named(c, made, "kernel", k.op));
  for (const auto& v : made.vjps) AJ_TRY(check_named(c, made, "derivative", v.op));
  return nullptr;
}

aj_status* open_and_init(Candidate* c) {
  InitGuard guard(c->label(), "loaded", "initialising");
  wake_unwinder();
  std::set<std::string> before = mapped_files();
  void* handle = nullptr;
  AJ_TRY(open_library(*c, &handle));
  AJ_TRY(note_new_files(before, c->path, c->name));
  const void* note = dlsym(handle, "aj_plugin_note_v1");
  c->pins = pins_begin(c->pins, note, intern(c->name).c_str(), intern(c->label()).c_str());
  if (!note ||
      std::memcmp(note, &c->note, std::min<size_t>(c->note.struct_size, sizeof c->note)) != 0)
    return fail(AJ_PRECONDITION, "the note that it exports is not the one in its file");
  auto init = reinterpret_cast<aj_plugin_init_fn>(dlsym(handle, "aj_plugin_init_v1"));
  if (!init) return fail(AJ_PRECONDITION, "does not export aj_plugin_init_v1");
  AJ_TRY(run_init(c->name, c->path, user_options(c->name),
                  [&](const aj_plugin_env* env) -> aj_status* {
                    AJ_TRY(returned_by_plugin(init(env), init));
                    return check_definitions(*c, *env->registrar);
                  }));
  if (c->origin != Origin::kOwn) watch_kernels();
  c->handle = handle;
  c->drained = false;
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
  AJ_TRY(caught("init",
                [&] { return init(static_cast<const aj_plugin_env*>(present("env", &env))); }));
  return transaction.commit();
}

aj_status* drain(Candidate* c) {
  if (!c->drain) return nullptr;
  InitGuard guard(c->label(), "drained", "draining");
  aj_status* bad = caught("drain", [&] { return returned_by_plugin(c->drain(), c->drain); });
  c->drained = !bad;
  return bad ? prefix(bad, "its drain failed: ") : nullptr;
}

std::string unmap(Candidate* c) {
  pins_end(c->pins);
  libraries().erase(c->handle);
  c->handle = nullptr;
  c->drain = nullptr;
  if (!mapped_already(c->path)) return {};
  return "the system's loader keeps it mapped: it has unique symbols, or somebody else has opened "
         "it";
}

aj_status* load(Candidate* c) {
  if (c->state == AJ_PLUGIN_LOADED) return nullptr;
  if (c->busy)
    return fail(AJ_PRECONDITION, "plugin ", c->label(), ": is being ", c->busy,
                c->handle ? "" : " and needs itself");
  if (c->state != AJ_PLUGIN_FOUND)
    return fail(AJ_UNAVAILABLE, "plugin ", c->label(), ": ", state_name(c->state), ": ",
                c->reason());
  c->busy = "initialised";
  aj_status* bad = load_required(*c);
  if (!bad) bad = open_and_init(c);
  c->busy = nullptr;
  if (!bad) {
    c->set(AJ_PLUGIN_LOADED, "");
    return nullptr;
  }
  c->set(AJ_PLUGIN_FAILED, bad->message);
  return prefix(bad, text("plugin ", c->label(), ": "));
}

}  // namespace adjoin::plugin

// adjoin/kit/plugin.hpp: a plugin's note and init, and the registration of ops, kernels and
// derivatives from lambdas.
//
// AJ_PLUGIN(.name = "squash", .version = "0.1.0", .provides = "ops:acme") {
// plugin.op(...).kernel(...).vjp(...); } Nothing is registered before the braces end, and then all
// of it or nothing.
#ifndef ADJOIN_KIT_PLUGIN_HPP
#define ADJOIN_KIT_PLUGIN_HPP
#include <adjoin/abi/plugin.h>

#include <adjoin/kit/adapt.hpp>
#include <adjoin/kit/loops.hpp>
#include <deque>

namespace adjoin {
namespace AJ_HIDDEN kit {

struct NoteText {
  const char *name, *version = "0", *vendor = "", *license = "", *provides = "", *requires_ = "";
};

// At compile time: the note is read from the file, so nothing may have to run.
consteval aj_plugin_note make_note(const NoteText& t) {
  aj_plugin_note n = {};
  auto copy = [](char* to, size_t room, const char* from) {
    for (size_t i = 0; from[i]; ++i) {
      if (i + 1 >= room) throw "a text of the plugin's note is too long";
      to[i] = from[i];
    }
  };
  copy(n.magic, sizeof n.magic, AJ_PLUGIN_MAGIC);
  n.struct_size = sizeof n;
  n.abi_major = AJ_ABI_MAJOR;
  n.minor_min = ADJOIN_TARGET_MINOR;
  n.minor_built = AJ_ABI_MINOR;
  n.build_flags = AJ_BUILD_FLAGS_;
  copy(n.name, sizeof n.name, t.name);
  copy(n.version, sizeof n.version, t.version);
  copy(n.vendor, sizeof n.vendor, t.vendor);
  copy(n.license, sizeof n.license, t.license);
  copy(n.provides, sizeof n.provides, t.provides);
  copy(n.requires_, sizeof n.requires_, t.requires_);
  return n;
}

// For infer: every result has the shape and dtype of one argument.
template <uint32_t Argument = 0>
aj_status* like(void*, aj_call* call) {
  return guard(call, [&] {
    TensorView t = Args(call).tensor(Argument);
    for (uint32_t i = 0; i < call->nrets; ++i)
      check(dispatch().declare(call, i, t.dtype(), int32_t(t.ndim()), t.shape().data(), nullptr));
  });
}

class OpBuilder {
 public:
  OpBuilder(const char* schema, const char* doc) : schema_(schema) {
    def_.struct_size = sizeof def_;
    def_.schema = str(schema);
    def_.doc = str(doc);
  }
  OpBuilder& kind(const char* text) { return def_.kind = str(text), *this; }
  OpBuilder& tags(const char* text) { return def_.tags = str(text), *this; }
  OpBuilder& test(const char* json) { return def_.test = str(json), *this; }
  OpBuilder& flags(uint32_t bits) { return def_.flags |= bits, *this; }
  OpBuilder& infer(aj_status* (*fn)(void*, aj_call*)) { return def_.infer = fn, *this; }
  OpBuilder& body(aj_kernel_fn fn) { return def_.body = fn, *this; }

  OpBuilder& kernel(const char* key, Spec spec, int32_t priority = 0) {
    aj_kernel_def k = {};
    k.struct_size = sizeof k;
    k.flags = spec.flags;
    k.op = str(name());
    k.key = str(key);
    k.built_schema = str(schema_);
    k.dtypes = spec.dtypes;
    k.priority = priority;
    k.fn = spec.fn;
    k.can_run = spec.can_run;
    kernels_.push_back(k);
    return *this;
  }
  // [](TensorView x, int64_t k, Mut<TensorView> out) { ... }: arguments in the schema's order,
  // results last.
  template <class L>
  OpBuilder& kernel(const char* key, L lambda, int32_t priority = 0) {
    match<L>(schema_, "kernel");
    return kernel(key, Spec{&adapted_kernel<L>, 0, 0}, priority), (void)lambda, *this;
  }
  // [](Tensor g, Saved x, double by) { ... return gradient; }: see adapt.hpp.
  template <class L>
  OpBuilder& vjp(L lambda) {
    match<L>(schema_, "vjp");
    vjp_.struct_size = sizeof vjp_;
    vjp_.flags = AJ_VJP_MATERIALIZE;
    vjp_.op = str(name());
    vjp_.save = saves<L>.data();
    vjp_.nsave = saves<L>.size();
    vjp_.vjp = &adapted_vjp<L>;
    return (void)lambda, *this;
  }

 private:
  friend class Registrar;
  std::string_view name() const { return schema_.substr(0, schema_.find('(')); }
  std::string_view schema_;
  aj_op_def def_ = {};
  aj_vjp_def vjp_ = {};
  std::deque<aj_kernel_def> kernels_;
};

class Registrar {
 public:
  explicit Registrar(const aj_plugin_env* env) : env_(env) {}
  const aj_plugin_env* env() const { return env_; }

  OpBuilder& op(const char* schema, const char* doc) { return ops_.emplace_back(schema, doc); }
  Registrar& device(const aj_device_vtbl& table) {
    check(env_->def_device(env_->registrar, &table));
    return *this;
  }
  // table ends with a row that names no op.
  Registrar& kernels(const char* key, const Kernel* table, int32_t priority = 0) {
    for (; table->op; ++table) {
      const Kernel& row = *table;
      aj_kernel_def k = {};
      k.struct_size = sizeof k;
      k.flags = row.spec.flags;
      k.op = str(row.op);
      k.key = str(key);
      k.dtypes = row.spec.dtypes;
      k.priority = priority;
      k.fn = row.spec.fn;
      k.can_run = row.spec.can_run;
      check(dispatch().def_kernel(env_->registrar, &k));
    }
    return *this;
  }
  // Those of all tables that announce themselves (AJ_KERNELS).
  Registrar& kernels(const char* key) {
    for (const Kernel** table = announced_first; table < announced_end; ++table)
      kernels(key, *table);
    return *this;
  }
  Registrar& service(const char* slot, const char* name, const void* table, int32_t priority) {
    aj_service_def d = {sizeof d, priority, str(slot), str(name), table};
    check(env_->def_service(env_->registrar, &d));
    return *this;
  }
  void done() {
    for (OpBuilder& b : ops_) {
      check(dispatch().def_op(env_->registrar, &b.def_));
      for (const aj_kernel_def& k : b.kernels_) check(dispatch().def_kernel(env_->registrar, &k));
      if (b.vjp_.vjp) check(autograd().def_vjp(env_->registrar, &b.vjp_));
    }
  }

 private:
  const aj_plugin_env* env_;
  std::deque<OpBuilder> ops_;
};

inline aj_status* define_plugin(const aj_plugin_env* from, const char* name,
                                void (*fill)(Registrar&)) {
  if (!from->core || !from->query) return nullptr;
  bind(from->query);
  if (!env.core) env.core = from->core;
  return guard(name, [&] {
    plugin_path = view_of(from->path);
    Registrar registrar(from);
    fill(registrar);
    registrar.done();
  });
}

}  // namespace kit
}  // namespace adjoin

#define AJ_PLUGIN(...)                                                                 \
  extern "C" AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;                         \
  __attribute__((section(AJ_PLUGIN_SECTION),                                           \
                 used)) constinit const aj_plugin_note aj_plugin_note_v1 =             \
      adjoin::kit::make_note({__VA_ARGS__});                                           \
  static void aj_plugin_define(adjoin::kit::Registrar& plugin);                        \
  AJ_PLUGIN_INIT {                                                                     \
    return adjoin::kit::define_plugin(env, aj_plugin_note_v1.name, &aj_plugin_define); \
  }                                                                                    \
  static void aj_plugin_define([[maybe_unused]] adjoin::kit::Registrar& plugin)

#endif

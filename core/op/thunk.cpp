// core/op/thunk.cpp: an op may gain trailing arguments with defaults; older kernels go on serving
// it.
#include "core/op/thunk.hpp"

#include <cstring>

#include "core/op/call.hpp"

namespace adjoin {
namespace {

struct Thunk {
  aj_kernel_fn fn;
  void* self;
  const aj_op* op;
  uint32_t nparams;
  std::string provider;
};

bool same_value(const aj_value& a, const aj_value& b) {
  if (a.tag == AJ_INT && b.tag == AJ_FLOAT) return double(a.v.i) == b.v.f;
  if (a.tag != b.tag || a.aux != b.aux) return false;
  switch (a.tag) {
    case AJ_NONE:
      return true;
    case AJ_FLOAT:
      return a.v.f == b.v.f;
    case AJ_STRING:
      return std::memcmp(a.v.str, b.v.str, a.aux) == 0;
    case AJ_INTS:
      return std::memcmp(a.v.ints, b.v.ints, a.aux * sizeof(int64_t)) == 0;
    default:
      return a.v.u == b.v.u;
  }
}

aj_status* run_thunk(void* self, aj_call* call) {
  const Thunk* t = static_cast<const Thunk*>(self);
  for (uint32_t i = t->nparams; i < call->nargs; i++)
    if (!same_value(call->args[i], t->op->schema.params[i].value))
      return fail(AJ_UNIMPLEMENTED, t->op->schema.name, ": the kernel of plugin '", t->provider,
                  "' predates argument '", t->op->schema.params[i].name,
                  "'; leave it out or update the plugin");
  uint32_t nargs = call->nargs;
  call->nargs = t->nparams;
  aj_status* s = t->fn(t->self, call);
  call->nargs = nargs;
  return s;
}

}  // namespace

// int, dim and size come to a kernel as the same whole numbers.
static bool same_base(int32_t a, int32_t b) {
  auto whole = [](int32_t base) {
    return base == AJ_PARAM_INT || base == AJ_PARAM_DIM || base == AJ_PARAM_SIZE;
  };
  return a == b || (whole(a) && whole(b));
}

aj_status* check_built_schema(const aj_op* op, std::string_view built, std::string_view plugin) {
  Schema old;
  AJ_TRY(parse_schema(built, &old));
  const auto& now = op->schema.params;
  auto differs = [&](const std::string& what) {
    return fail(AJ_INVALID_ARGUMENT, op->schema.name, ": the kernel of plugin '", plugin,
                "' was built for '", built, "', the op is '", op->schema.text, "': ", what);
  };
  if (old.name != op->schema.name) return differs("that is another op");
  if (old.params.size() > now.size()) return differs("it expects more arguments");
  for (size_t i = 0; i < old.params.size(); i++)
    if (old.params[i].name != now[i].name || !same_base(old.params[i].base, now[i].base) ||
        old.params[i].list != now[i].list)
      return differs("argument '" + old.params[i].name + "' differs");
  for (size_t i = old.params.size(); i < now.size(); i++)
    if (!(now[i].flags & AJ_PARAM_HAS_DEFAULT))
      return differs("argument '" + now[i].name + "' is new and has no default");
  if (old.results.size() != op->schema.results.size()) return differs("the results differ");
  return nullptr;
}

Kernel* adapt_schema(const aj_op* op, std::string_view built, Kernel* k) {
  k->nparams = op->nparams;
  if (built.empty()) return k;
  Schema old;
  if (aj_status* s = parse_schema(built, &old)) {
    free_status(s);
    return k;
  }
  if (old.params.size() == op->schema.params.size()) return k;
  auto* t = new Thunk{k->fn, k->self, op, uint32_t(old.params.size()),
                      k->provider};  // lives with its kernel, for ever
  k->fn = run_thunk;
  k->self = t;
  k->nparams = t->nparams;
  return k;
}

}  // namespace adjoin

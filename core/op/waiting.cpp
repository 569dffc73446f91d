// core/op/waiting.cpp: ops that are known by what a file says of them.
#include "core/op/waiting.hpp"

#include <adjoin/abi/plugin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "core/guest/caught.hpp"
#include "core/guest/provider.hpp"
#include "core/op/kinds.hpp"
#include "core/op/registry_state.hpp"

namespace adjoin {
namespace {

// Stand where the plugin's functions will; settle_arguments loads it before anybody calls them.
aj_status* not_there(void*, aj_call* call) {
  return fail(AJ_INTERNAL, call->op->schema.ident, ": its plugin is not loaded yet");
}
const Vjp own_vjp{};
const Vjp no_grad{[] {
                    aj_vjp_def d{};
                    d.flags = AJ_VJP_NO_GRAD_RESULTS;
                    return d;
                  }(),
                  {},
                  {},
                  {},
                  0,
                  nullptr};

// The fields of a line; false if there are fewer.
bool fields_of(std::string_view line, std::array<std::string_view, 5>* out) {
  for (size_t i = 0; i < out->size(); i++) {
    size_t end = line.find('\t');
    if ((end == line.npos) != (i + 1 == out->size())) return false;
    (*out)[i] = line.substr(0, end);
    if (end != line.npos) line.remove_prefix(end + 1);
  }
  return true;
}

aj_status* read_line(std::string_view line, const std::string& plugin,
                     std::unique_ptr<aj_op>* out) {
  std::array<std::string_view, 5> field;
  if (!fields_of(line, &field)) return nullptr;
  auto [schema, kind, tags, words, doc] = field;
  auto op = std::make_unique<aj_op>();
  AJ_TRY(parse_schema(schema, &op->schema));
  auto has = [words = std::string(words)](const char* word) { return kit::has_word(words, word); };
  op->flags = (has("allocates") ? uint32_t(AJ_OP_ALLOCATES) : 0) |
              (has("no-in-place") ? uint32_t(AJ_OP_NO_IN_PLACE) : 0) |
              (has("body-records") ? uint32_t(AJ_OP_BODY_RECORDS) : 0);
  op->doc = doc;
  op->kind_name = kind.empty() ? "custom" : kind;
  op->tags = tags;
  op->provider = plugin;
  op->infer = has("infer") ? not_there : nullptr;
  op->body = has("body") ? not_there : nullptr;
  AJ_TRY(set_kind(op.get()));
  init_op(op.get());
  op->ours = true;
  op->vjp = has("vjp") ? &own_vjp : has("no-grad") ? &no_grad : nullptr;
  op->nresults = kWaits;
  *out = std::move(op);
  return nullptr;
}

}  // namespace

void wait_for(std::string_view line, const std::string& plugin) {
  std::unique_ptr<aj_op> op;
  if (aj_status* bad = read_line(line, plugin, &op)) return tell(bad);
  if (!op) return;
  std::unique_lock guard(registry().lock);
  if (registry().by_name.contains(op->schema.name)) return;
  add_op(op.get());
  aj_op* added[] = {op.release()};
  mark_autocast(added);
}

aj_status* end_wait(const aj_op* op) {
  aj_status* bad = load_provider_of(text("op:", op->schema.name));
  if (!waits(op)) return free_status(bad), nullptr;
  if (bad) return prefix(bad, op->schema.ident + ": ");
  return fail(AJ_UNAVAILABLE, op->schema.ident, ": plugin '", op->provider,
              "' says in its file that it has the op, and does not define it");
}

const aj_op* waited(const aj_op* now) {
  auto found = registry().by_name.find(now->schema.name);
  bool its = found != registry().by_name.end() && waits(found->second) &&
             found->second->provider == now->provider;
  return its ? found->second : nullptr;
}

aj_status* check_promise(const aj_op* now) {
  const aj_op* known = waited(now);
  if (!known ||
      (known->schema.text == now->schema.text && known->kind == now->kind &&
       known->tags == now->tags && known->flags == now->flags && known->has_body == now->has_body))
    return nullptr;
  return fail(AJ_PRECONDITION, now->schema.name, ": plugin '", now->provider, "' defines ",
              now->schema.text, ", its file says ", known->schema.text,
              "; signature, kind, tags and functions must be those of its section " AJ_OPS_SECTION);
}

std::vector<aj_op*> keep_promises(std::vector<aj_op*>* ops) {
  std::vector<aj_op*> kept;
  std::erase_if(*ops, [&](aj_op* now) {
    auto* known = const_cast<aj_op*>(waited(now));
    if (!known) return false;
    set_functions(known, now->infer, now->body, now->self);
    known->doc = now->doc;
    known->test = now->test;
    known->vjp = nullptr;  // the definition comes with its own
    kept.push_back(known);
    delete now;
    return true;
  });
  return kept;
}

}  // namespace adjoin

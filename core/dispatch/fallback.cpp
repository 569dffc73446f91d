// core/dispatch/fallback.cpp: what happens when a device lacks an op, and the ledger of what that cost.
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/autograd/record.hpp"
#include "core/dispatch/call.hpp"
#include "core/dispatch/kinds.hpp"
#include "core/dispatch/registry.hpp"
#include "core/dispatch/settings.hpp"
#include "core/interfaces.hpp"
#include "core/object.hpp"

namespace adjoin {
namespace {

enum class Policy { error, warn, host };
struct Rule {
  Policy policy = Policy::error;
  uint64_t budget = ~0ull;
};
struct Entry {
  std::string op, device, reason;
  uint64_t calls = 0, in = 0, out = 0, ns = 0;
};

struct Ledger {
  std::mutex lock;
  std::map<std::pair<std::string, std::string>, Rule> rules;  // (op, device), "" for all
  std::map<std::pair<std::string, std::string>, Entry*> entries;
  std::vector<Entry*> order;
  uint64_t moved = 0;
};

aj_status* parse(std::string_view text, Rule* rule) {
  std::string_view word = text.substr(0, text.find(':'));
  if (word == "error") rule->policy = Policy::error;
  else if (word == "warn") rule->policy = Policy::warn;
  else if (word == "host") rule->policy = Policy::host;
  else return fail(AJ_INVALID_ARGUMENT, "fallback policy '", text, "': error, warn, host or host:100MB are possible");
  if (word.size() == text.size()) return nullptr;
  char* unit;
  double n = std::strtod(std::string(text.substr(word.size() + 1)).c_str(), &unit);
  double scale = *unit == 'K' ? 1e3 : *unit == 'M' ? 1e6 : *unit == 'G' ? 1e9 : 1;
  rule->budget = uint64_t(n * scale);
  return nullptr;
}

Ledger& ledger() {
  static auto* l = [] {
    auto* made = new Ledger;
    if (const char* text = std::getenv("ADJOIN_FALLBACK")) {
      Rule rule;
      if (aj_status* bad = parse(text, &rule)) {
        log_message(1, "fallback", bad->message);
        free_status(bad);
      }
      made->rules[{"", ""}] = rule;
    }
    return made;
  }();
  return *l;
}

Rule rule_of(Ledger& l, const std::string& op, const std::string& device) {
  for (auto key : {std::pair{op, device}, {op, std::string()}, {std::string(), device}, {std::string(), std::string()}})
    if (auto found = l.rules.find(key); found != l.rules.end()) return found->second;
  return {};
}

// A copy of a tensor on another device, without history.
aj_status* moved(aj_tensor* t, Device* d, aj_tensor** out, uint64_t* bytes) {
  AJ_TRY(tensor_new(d, dt(priv(t).dtype), shape(t), out));
  *bytes += uint64_t(priv(t).numel) * dt(priv(t).dtype).bytes;
  return copy_into(*out, t);
}

struct HostCall {
  std::vector<aj_value> args;
  std::vector<Ref> held;
  std::vector<std::vector<aj_tensor*>> lists;
};

aj_status* copy_arguments(Device* host, const aj_value* args, uint32_t nargs, HostCall* h, uint64_t* bytes) {
  h->lists.reserve(nargs);
  for (uint32_t i = 0; i < nargs; i++) {
    h->args.push_back(args[i]);
    if (args[i].tag == AJ_TENSOR) {
      aj_tensor* copy = nullptr;
      aj_status* s = moved(args[i].v.tensor, host, &copy, bytes);
      h->held.emplace_back(copy);
      AJ_TRY(s);
      h->args[i].v.tensor = copy;
    } else if (args[i].tag == AJ_TENSORS) {
      auto& list = h->lists.emplace_back();
      for (uint32_t j = 0; j < args[i].aux; j++) {
        aj_tensor* copy = nullptr;
        if (args[i].v.tensors[j]) {
          aj_status* s = moved(args[i].v.tensors[j], host, &copy, bytes);
          h->held.emplace_back(copy);
          AJ_TRY(s);
        }
        list.push_back(copy);
      }
      h->args[i].v.tensors = list.data();
    } else if (args[i].tag == AJ_DEVICE) {
      h->args[i].v.device = host->id;
    }
  }
  return nullptr;
}

aj_status* on_host(aj_op* op, Device* d, Device* host, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets,
                   uint64_t* in, uint64_t* out) {
  NoGrad off;
  HostCall h;
  AJ_TRY(copy_arguments(host, args, nargs, &h, in));
  std::vector<aj_value> made(nrets, none());
  AJ_TRY(call(op, h.args.data(), nargs, made.data(), nrets));
  aj_status* s = nullptr;
  for (uint32_t i = 0; i < nrets && !s; i++) {
    if (made[i].tag != AJ_TENSOR) {
      rets[i] = made[i];
      made[i] = none();
      continue;
    }
    aj_tensor* back;
    if (rets[i].tag == AJ_TENSOR) {
      s = copy_into(back = rets[i].v.tensor, made[i].v.tensor);
      retain(back);
    } else if (i == 0 && op->schema.result_is_first) {
      retain(back = args[0].v.tensor);
    } else {
      s = moved(made[i].v.tensor, d, &back, out);
    }
    if (!s) rets[i] = value(back);
  }
  for (size_t i = 0; i < op->schema.params.size() && !s; i++)
    if ((op->schema.params[i].flags & AJ_PARAM_WRITTEN) && args[i].tag == AJ_TENSOR)
      s = copy_into(args[i].v.tensor, h.args[i].v.tensor);
  for (aj_value& v : made) release_value(v);
  return s;
}

}  // namespace

aj_status* set_fallback(aj_str op, aj_str device, aj_str policy) {
  Rule rule;
  AJ_TRY(parse(view(policy), &rule));
  Ledger& l = ledger();
  std::lock_guard guard(l.lock);
  l.rules[{std::string(view(op)), std::string(view(device))}] = rule;
  return nullptr;
}

uint32_t fallback_count() {
  std::lock_guard guard(ledger().lock);
  return uint32_t(ledger().order.size());
}

aj_status* fallback_at(uint32_t i, aj_fallback_entry* io) {
  std::lock_guard guard(ledger().lock);
  if (i >= ledger().order.size()) return fail(AJ_OUT_OF_RANGE, "fallback_at: ", i, " of ", uint64_t(ledger().order.size()));
  const Entry& e = *ledger().order[i];
  io->op = str(e.op), io->device = str(e.device), io->reason = str(e.reason);
  io->calls = e.calls, io->bytes_in = e.in, io->bytes_out = e.out, io->nanoseconds = e.ns;
  return nullptr;
}

aj_status* serve_missing(aj_op* op, Device* d, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets) {
  std::string device(device_kind_name(d->id.device_type));
  Ledger& l = ledger();
  Rule rule;
  uint64_t spent;
  {
    std::lock_guard guard(l.lock);
    rule = rule_of(l, op->schema.name, device);
    spent = l.moved;
  }
  Device* host = host_fallback_device();
  std::string missing = text("no plugin has a ", device, " kernel for ", op->schema.name, ", and it has no body");
  bool never = op->tags.find("fallback:never") != op->tags.npos;
  if (rule.policy == Policy::error || never || !host || host == d)
    return fail(AJ_UNIMPLEMENTED, op->schema.ident, ": ", missing, host && host != d && !never
                ? "; move the tensors to '" + std::string(device_kind_name(host->id.device_type)) + "', or allow copies with ADJOIN_FALLBACK=host" : "");
  if (spent > rule.budget)
    return fail(AJ_UNIMPLEMENTED, op->schema.ident, ": ", missing, "; copies to the host have used their budget (", spent, " of ", rule.budget, " bytes)");
  if (rule.policy == Policy::warn) log_message(1, "fallback", op->schema.ident + ": " + missing + "; it runs on the host");
  auto from = std::chrono::steady_clock::now();
  AJ_TRY(device_synchronize(d));
  uint64_t in = 0, out = 0;
  aj_status* s = on_host(op, d, host, args, nargs, rets, nrets, &in, &out);
  uint64_t ns = uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - from).count());
  std::lock_guard guard(l.lock);
  Entry*& e = l.entries[{op->schema.name, device}];
  if (!e) l.order.push_back(e = new Entry{op->schema.name, device, missing});
  e->calls++, e->in += in, e->out += out, e->ns += ns;
  l.moved += in + out;
  return s;
}

aj_status* op_explain(const aj_op* op, aj_str device, aj_object** out) {
  int32_t type = view(device) == "meta" ? kMetaType : 0;
  if (!type) AJ_TRY(device_kind_find(view(device), &type));
  std::string text_out = op->schema.name + " on " + std::string(view(device)) + "\n";
  const Kernel* chosen = resolve(const_cast<aj_op*>(op), type - 1);
  int rank = 0;
  for (const Kernel* k = chosen; k; k = k->next) {
    text_out += text("  ", ++rank, ". ", k->flags & kKernelBody ? "the op's body" : k->provider.empty() ? "the core" : "plugin " + k->provider);
    if (!(k->flags & kKernelBody)) text_out += text(", priority ", k->priority, k->can_run ? ", asks its can_run" : "");
    if (k->dtypes) {
      text_out += ", for";
      for (int i = 0; i < 64; i++)
        if (k->dtypes >> i & 1 && dtypes[i].name) text_out += text(" ", dtypes[i].name);
    }
    text_out += "\n";
  }
  if (!chosen) text_out += op->kind == Kind::view ? "  a view: served by the core on every device\n" : "  nobody\n";
  return string_new(str(text_out), out);
}

}  // namespace adjoin

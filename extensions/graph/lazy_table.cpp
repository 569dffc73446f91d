// extensions/graph/lazy_table.cpp: lazy scopes of this thread, deferred tensors as the core sees
// them, and the table "x.lazy".
#include <algorithm>
#include <tuple>

#include "lazy.hpp"

namespace adjoin::graph::lazily {

uint64_t lazy_key;
const aj_lower* lower_table;

namespace {

constexpr aj_str kDeferred = AJ_STR_LIT("graph::deferred");
constexpr aj_str kMemory = AJ_STR_LIT("graph::memory");
int32_t deferred_type, memory_type;

struct Thread {
  std::shared_ptr<Scope> scope;
  std::vector<uint32_t> outer;  // flags of the scopes around
  std::vector<std::pair<std::shared_ptr<Scope>, std::vector<uint32_t>>> paused;
  uint32_t calls = 4096;
  uint64_t bytes = uint64_t(1) << 30;
};
thread_local Thread here;

using Held = std::shared_ptr<Memory>;

std::shared_ptr<Memory> memory_in(aj_object* o) {
  if (!o || o->type != memory_type)
    raise(AJ_WRONG_TYPE, "lazy: an object of another type is given");
  return *static_cast<Held*>(core().object_payload(o));
}

void include(bool on) {
  uint64_t in, out;
  dispatch().thread_keys(&in, &out);
  dispatch().set_thread_keys(on ? in | lazy_key : in & ~lazy_key, out);
}

aj_status* memory(aj_object** out) {
  return guard("", [&] {
    void* at = nullptr;
    check(core().object_new(memory_type, out, &at));
    new (at) Held(std::make_shared<Memory>());
  });
}

aj_status* enter(aj_object* o, uint32_t flags) {
  return guard("", [&] {
    if (flags & 0xffff &
        ~uint32_t(AJ_LAZY_WHOLE | AJ_LAZY_NO_FUSION | AJ_LAZY_CHECK | AJ_LAZY_KEEP |
                  AJ_LAZY_WRITES | AJ_LAZY_TIMED))
      raise(AJ_INVALID_ARGUMENT, "lazy: flags ", flags, " are not known here");
    if (here.scope) {
      here.outer.push_back(here.scope->flags);
      here.scope->flags |= flags;
      return;
    }
    std::shared_ptr<Memory> known = o ? memory_in(o) : nullptr;
    // Another thread's scope writes there: this one begins with nothing.
    if (!known || known->used.exchange(true)) known = std::make_shared<Memory>();
    known->flushes.clear();
    known->apart = false;
    here.scope = std::make_shared<Scope>(std::move(known), flags, here.calls, here.bytes);
    here.outer.push_back(0);
    include(true);
  });
}

aj_status* leave() {
  return guard("", [&] {
    if (!here.scope) raise(AJ_PRECONDITION, "lazy: no scope is open on this thread");
    const uint32_t before = here.outer.back();
    here.outer.pop_back();
    if (!here.outer.empty()) {
      here.scope->flags = before;
      return;
    }
    std::shared_ptr<Scope> scope = std::move(here.scope);
    here.scope.reset();
    include(false);
    scope->memory().used = false;
    scope->flush(Why::end);
  });
}

aj_status* flush() {
  return guard("", [&] {
    if (here.scope) here.scope->flush(Why::asked);
  });
}

int32_t depth() { return int32_t(here.outer.size()); }

aj_status* pause() {
  return guard("", [&] {
    if (here.scope) here.scope->flush(Why::asked);
    here.paused.emplace_back(std::move(here.scope), std::move(here.outer));
    here.scope.reset();
    here.outer.clear();
    include(false);
  });
}

void resume() {
  if (here.paused.empty()) return;
  std::tie(here.scope, here.outer) = std::move(here.paused.back());
  here.paused.pop_back();
  include(here.scope != nullptr);
}

void limits(uint32_t calls, uint64_t bytes) {
  here.calls = calls ? calls : 4096;
  here.bytes = bytes ? bytes : uint64_t(1) << 30;
}

aj_status* stats(aj_object* o, aj_lazy_stats* io) {
  return guard("", [&] {
    const std::shared_ptr<Memory> m = memory_in(o);
    std::lock_guard held(m->lock);
    aj_lazy_stats told = m->stats;
    told.struct_size = uint32_t(std::min<size_t>(io->struct_size, sizeof told));
    told.reserved = 0;
    std::memcpy(io, &told, told.struct_size);
  });
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  constexpr char digits[] = "0123456789abcdef";
  for (char c : s) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (uint8_t(c) < 32)
      ((out += "\\u00") += digits[uint8_t(c) >> 4]) += digits[c & 15];
    else
      out += c;
  }
  return out + '"';
}

aj_status* report(aj_object* o, aj_object** out) {
  return guard("", [&] {
    const std::shared_ptr<Memory> m = memory_in(o);
    std::lock_guard held(m->lock);
    std::string json = "[";
    for (const Flush& f : m->flushes)
      json += text(json.size() > 1 ? ", " : "", "{\"reason\": ", quoted(words(f.why)),
                   ", \"break\": ", breaks(f.why) ? "true" : "false", ", \"op\": ", quoted(f.op),
                   ", \"line\": ", quoted(line_words(f.line, f.site)),
                   ", \"begun\": ", quoted(line_words(f.begun, f.begun_site)),
                   ", \"calls\": ", f.calls, ", \"known\": ", f.matched, ", \"passes\": ", f.passes,
                   ", \"groups\": ", f.groups, ", \"fused\": ", f.fused,
                   ", \"nanoseconds\": ", f.nanoseconds, ", \"peak\": ", f.peak, "}");
    json += "]";
    check(core().string_new(str(json), out));
  });
}

aj_status* forget(aj_object* o) {
  return guard("", [&] {
    const std::shared_ptr<Memory> m = memory_in(o);
    std::lock_guard held(m->lock);
    m->stats = {};
    m->flushes.clear();
    if (m->used)
      m->stale = true;
    else
      m->root.after.clear();
  });
}

uint32_t value_number(const aj_tensor* t) {
  const Deferred* d = here.scope ? here.scope->mine(t) : nullptr;
  return d ? d->value : kNone;
}

// What a flush has left: give(program, or NULL) makes the other half.
template <class F>
aj_status* take_kept(aj_object* o, aj_object** inputs, const F& give) {
  return guard("", [&] {
    const std::shared_ptr<Memory> m = memory_in(o);
    std::lock_guard held(m->lock);
    std::unique_ptr<Program> p = std::move(m->kept);
    const std::vector<Tensor> given = std::move(m->kept_inputs);
    m->kept_inputs.clear();
    if (m->apart) p.reset();
    std::vector<aj_value> list;
    for (const Tensor& t : given) list.push_back(value(t));
    check(core().list_new(list.data(), uint32_t(list.size()), inputs));
    try {
      give(std::move(p));
    } catch (...) {
      core().release(*inputs);
      throw;
    }
  });
}

aj_status* kept(aj_object* o, aj_object** text, aj_object** inputs) {
  return take_kept(o, inputs, [&](std::unique_ptr<Program> p) {
    check(core().string_new(str(p ? print(*p) : std::string()), text));
  });
}

aj_status* kept_program(aj_object* o, aj_object** out, aj_object** inputs) {
  return take_kept(
      o, inputs, [&](std::unique_ptr<Program> p) { *out = p ? object_of(std::move(p)) : nullptr; });
}

}  // namespace

const aj_lazy lazy_table = {
    .struct_size = sizeof(aj_lazy),
    .minor = 1,
    .memory = memory,
    .enter = enter,
    .leave = leave,
    .flush = flush,
    .depth = depth,
    .pause = pause,
    .resume = resume,
    .limits = limits,
    .stats = stats,
    .report = report,
    .forget = forget,
    .value = value_number,
    .kept = kept,
    .program = kept_program,
};

void Lock::wait(const void* me) {
  void* parked = lower_table->park();
  waiting_++;
  for (const void* other = nullptr; !owner_.compare_exchange_weak(other, me); other = nullptr)
    if (other) owner_.wait(other);
  waiting_--;
  lower_table->unpark(parked);
}

void register_lazy() {
  auto forget_value = [](void* p) {
    auto* d = static_cast<Deferred*>(p);
    if (d->scope) d->scope->died(*d);
    core().release(d->real);
    d->~Deferred();
  };
  check(core().type_register(kDeferred, sizeof(Deferred), forget_value, &deferred_type));
  auto forget_memory = [](void* p) { static_cast<Held*>(p)->~Held(); };
  check(core().type_register(kMemory, sizeof(Held), forget_memory, &memory_type));
}

aj_object* new_deferred(Deferred d) {
  aj_object* o = nullptr;
  void* at = nullptr;
  check(core().object_new(deferred_type, &o, &at));
  new (at) Deferred(std::move(d));
  return o;
}

Deferred* deferred_of(const aj_tensor* t) {
  aj_object* o = wrap_table->tensor_payload(t, lazy_key);
  return o ? static_cast<Deferred*>(core().object_payload(o)) : nullptr;
}

void make_strided(aj_tensor* t) {
  aj_tensor* made = nullptr;
  check(wrap_table->tensor_strided(t, AJ_STR_LIT("lazy"), &made));
  core().release(made);
}

std::string line_words(uint32_t line, uint32_t site) {
  auto one = [](uint32_t id) {
    aj_object* o = nullptr;
    if (!id) return std::string();
    if (aj_status* s = core().line_text(id, &o)) return core().status_free(s), std::string();
    std::string found(view_of(core().string_get(o)));
    core().release(o);
    return found;
  };
  std::string here_at = one(line), from = one(site);
  return from.empty() ? here_at : from;
}

aj_status* serve_lazy(void*, aj_call* c) {
  return guard("", [&] {
    if (here.scope) return here.scope->serve(c);
    each_tensor(c->args, c->nargs, settle_deferred);
    each_tensor(c->rets, c->nrets, settle_deferred);
    check(dispatch().redispatch(c->op, c->keys, c->args, c->nargs, c->rets, c->nrets));
  });
}

aj_status* copy_lazy(void*, aj_tensor* t, aj_tensor** out) {
  return guard("", [&] {
    static constinit Op clone("clone");
    aj_value v = value(Tensor::view(t)), made{};
    check(dispatch().call(clone.get(), &v, 1, &made, 1));
    *out = made.v.tensor;
  });
}

aj_status* settle_lazy(void*, aj_tensor* t, aj_tensor** strided) {
  return guard("", [&] {
    aj_object* o = nullptr;
    check(wrap_table->tensor_payload_get(t, lazy_key, &o));
    if (o) {
      struct Free {
        aj_object* o;
        ~Free() { core().release(o); }
      } free{o};
      const auto* d = static_cast<const Deferred*>(core().object_payload(o));
      std::shared_ptr<Scope> scope = d->scope;
      scope->fulfil(t, *d);
    }
    if (!has_strides(t)) return check(wrap_table->tensor_strided(t, AJ_STR_LIT("lazy"), strided));
    *strided = Tensor::borrow(t).take();
  });
}

}  // namespace adjoin::graph::lazily

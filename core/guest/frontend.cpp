// core/guest/frontend.cpp: the list of languages only grows, so reading it takes no lock.
#include "core/guest/frontend.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/base/transaction.hpp"
#include "core/guest/object.hpp"
#include "core/guest/pins.hpp"

namespace adjoin {
namespace {

constexpr int kMaxFrontends = 8;
struct Registered {
  aj_frontend table;
  std::string name, plugin;
  std::atomic<bool> on;  // its plugin is there; words that it owns are given back all the same
  Pin pin;
};
Registered frontends[kMaxFrontends];
std::atomic<int> count{0};
std::mutex lock;

std::atomic<const aj_frontend*> parker{nullptr};  // the one language with a lock to let go

}  // namespace

aj_status* frontend_register(const aj_frontend* f, int32_t* out_id) {
  if (!f || f->struct_size < AJ_END_OF(aj_frontend, name))
    return fail(AJ_INVALID_ARGUMENT, "frontend_register: aj_frontend: struct_size is ",
                f ? f->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_frontend, name)),
                " is needed");
  AJ_TRY(check_words("frontend_register", view(f->name), f->flags, 0));
  if (!f->name.len) return fail(AJ_INVALID_ARGUMENT, "frontend_register: a name is needed");
  std::lock_guard guard(lock);
  int n = 0, all = count.load();  // one that comes back has its old place
  while (n < all && (frontends[n].on || frontends[n].name != view(f->name))) n++;
  if (n == kMaxFrontends)
    return fail(AJ_OUT_OF_RANGE, "frontend_register: '", f->name, "': all ", kMaxFrontends,
                " places are taken");
  bool parks = AJ_HAS_FN(f, aj_frontend, park) && AJ_HAS_FN(f, aj_frontend, unpark);
  if (parks && parker.load() && parker.load() != &frontends[n].table)
    return fail(AJ_ALREADY_EXISTS, "frontend_register: '", f->name, "': '", parker.load()->name,
                "' has a lock to park already; a process can have one such language");
  Registered& r = frontends[n];
  r.pin = Pin(Holder::frontend, f->drop ? reinterpret_cast<const void*>(f->drop)
                                        : reinterpret_cast<const void*>(f->interrupted));
  r.name = view(f->name);
  std::memcpy(&r.table, f, std::min<size_t>(f->struct_size, sizeof r.table));
  r.table.struct_size = sizeof r.table;
  r.table.name = str(r.name);
  r.on = true;
  if (Transaction* t = transaction()) {
    r.plugin = t->plugin;
    t->undo.push_back([&r] {
      const aj_frontend* mine = &r.table;
      parker.compare_exchange_strong(mine, nullptr);
      r.on = false;
    });
  }
  if (parks) parker.store(&r.table, std::memory_order_release);
  if (n == all) count.store(n + 1, std::memory_order_release);
  *out_id = n + 1;
  return nullptr;
}

void frontends_end(std::string_view plugin) {
  std::lock_guard guard(lock);
  for (int i = 0; i < count.load(); i++)
    if (!frontends[i].plugin.empty() && frontends[i].plugin == plugin) frontends[i].on = false;
}

void (*frontend_dtype_teller(int32_t id))(void*) { return frontends[id - 1].table.dtype_changed; }

void (*frontend_dropper(int32_t id))(void*) {
  return id < 1 || id > count.load(std::memory_order_acquire) ? nullptr
                                                              : frontends[id - 1].table.drop;
}

void frontend_drop(int32_t id, void* word) {
  if (auto drop = frontend_dropper(id)) drop(word);
}

void* frontend_park() {
  const aj_frontend* f = parker.load(std::memory_order_acquire);
  return f ? f->park() : nullptr;
}

void frontend_unpark(void* parked) {
  const aj_frontend* f = parked ? parker.load(std::memory_order_acquire) : nullptr;
  if (f) f->unpark(parked);
}

int32_t frontend_interrupted() {
  int n = count.load(std::memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (auto ask = frontends[i].on ? frontends[i].table.interrupted : nullptr)
      if (ask()) return 1;
  return 0;
}

void frontend_collect() {
  int n = count.load(std::memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (auto collect = frontends[i].on ? frontends[i].table.collect : nullptr) collect();
}

std::string frontend_line(uint32_t line) {
  if (!line) return {};
  int n = count.load(std::memory_order_acquire);
  for (int i = 0; i < n; i++) {
    auto describe = frontends[i].on ? frontends[i].table.describe_line : nullptr;
    if (!describe) continue;
    aj_object* text = nullptr;
    if (aj_status* s = describe(line, &text)) {
      free_status(s);
      continue;
    }
    std::string found(view(string_get(text)));
    release(text);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace adjoin

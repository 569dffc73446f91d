// frontends/cli/conform/comm_store.cpp: the store by which threads of one process meet.
#include <adjoin/kit/error.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>

#include "comm.hpp"

namespace adjoin::cli::conform {
namespace {

struct Keys {
  aj_store table = {};
  std::mutex lock;
  std::condition_variable changed;
  std::map<std::string, std::string> held;
};
Keys& keys_of(void* self) { return *static_cast<Keys*>(self); }
std::string text_of(aj_str s) { return std::string(kit::view_of(s)); }
aj_status* give(const std::string& value, aj_object** out) {
  return kit::core().string_new(kit::str(value), out);
}

aj_status* set(void* self, aj_str key, aj_str value) {
  Keys& k = keys_of(self);
  std::lock_guard hold(k.lock);
  k.held[text_of(key)] = text_of(value);
  k.changed.notify_all();
  return nullptr;
}
aj_status* get(void* self, aj_str key, int64_t timeout_ms, aj_object** out) {
  Keys& k = keys_of(self);
  std::unique_lock hold(k.lock);
  const std::string name = text_of(key);
  if (!k.changed.wait_for(hold, std::chrono::milliseconds(timeout_ms),
                          [&] { return k.held.contains(name); }))
    return kit::fail(AJ_DEADLINE, "the store has no key '", key, "' after ", timeout_ms, " ms");
  return give(k.held[name], out);
}
aj_status* add(void* self, aj_str key, int64_t by, int64_t* out) {
  Keys& k = keys_of(self);
  std::lock_guard hold(k.lock);
  std::string& value = k.held[text_of(key)];
  *out = std::strtoll(value.c_str(), nullptr, 10) + by;
  value = std::to_string(*out);
  k.changed.notify_all();
  return nullptr;
}
aj_status* swap(void* self, aj_str key, aj_str expected, aj_str desired, aj_object** out) {
  Keys& k = keys_of(self);
  std::lock_guard hold(k.lock);
  auto found = k.held.find(text_of(key));
  const std::string now = found == k.held.end() ? "" : found->second;
  if (now != kit::view_of(expected)) return give(now, out);
  k.held[text_of(key)] = text_of(desired);
  k.changed.notify_all();
  return give(text_of(desired), out);
}
aj_status* erase(void* self, aj_str key, int64_t* erased) {
  Keys& k = keys_of(self);
  std::lock_guard hold(k.lock);
  *erased = int64_t(k.held.erase(text_of(key)));
  return nullptr;
}
aj_status* count(void* self, aj_str prefix, int64_t* out) {
  Keys& k = keys_of(self);
  std::lock_guard hold(k.lock);
  *out = 0;
  for (const auto& [key, value] : k.held) *out += key.starts_with(kit::view_of(prefix));
  return nullptr;
}

}  // namespace

std::unique_ptr<aj_store, void (*)(aj_store*)> local_store() {
  auto* k = new Keys;
  k->table = {.struct_size = sizeof(aj_store),
              .minor = 0,
              .self = k,
              .set = set,
              .get = get,
              .add = add,
              .swap = swap,
              .erase = erase,
              .count = count};
  return {&k->table, [](aj_store* s) { delete static_cast<Keys*>(s->self); }};
}

}  // namespace adjoin::cli::conform

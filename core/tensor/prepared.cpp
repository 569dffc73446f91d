// core/tensor/prepared.cpp: the table of kept forms: bounded in bytes, the least recently used goes
// first.
#include "core/tensor/prepared.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/limit.hpp"
#include "core/memory/memory.hpp"
#include "core/tensor/settle.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

constexpr uint64_t kKept = 1;  // bit of a storage's number: the table holds forms of it

struct Form {
  std::string key;
  aj_tensor* tensor;
  uint64_t bytes, used;
};

struct Table {
  std::mutex lock;
  std::unordered_map<uint64_t, std::vector<Form>> forms;  // by the number of the contents
  uint64_t bytes = 0, clock = 0;
};

// Never destroyed: tensors may die while the process exits.
Table& table() {
  static Table* one = [] {
    auto* made = new Table;
    memory_trim = prepared_release;
    fork_hook_add({kForkLeaf, [] { table().lock.lock(); }, [] { table().lock.unlock(); },
                   [] { table().lock.unlock(); }});
    return made;
  }();
  return *one;
}

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(2, std::memory_order_relaxed) + 2;
}

uint64_t limit() {
  static const uint64_t bytes = [] {
    if (const char* user = secure_getenv("ADJOIN_PREPARED_LIMIT")) return parse_bytes(user);
    return std::min<uint64_t>(uint64_t(1) << 30, host_memory_limit() / 8);
  }();
  return bytes;
}

// What tells one form from another: what its maker says, and which part of the storage it is of.
std::string whole_key(const aj_tensor* t, const void* key, uint64_t bytes) {
  std::string all(static_cast<const char*>(key), size_t(bytes));
  auto add = [&](int64_t number) {
    all.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(place(t) - static_cast<char*>(storage(t).data));
  add(priv(t).dtype);
  for (int64_t n : shape(t)) add(n);
  for (int64_t n : strides(t)) add(n);
  return all;
}

using Dropped = std::vector<aj_tensor*>;
void release_all(const Dropped& dropped) {  // never under the lock: this frees memory
  for (aj_tensor* t : dropped) release(t);
}

void drop(Table& all, Form& form, Dropped* dropped) {
  all.bytes -= form.bytes;
  dropped->push_back(form.tensor);
}

void drop_oldest(Table& all, Dropped* dropped) {
  auto oldest = all.forms.end();
  size_t which = 0;
  for (auto i = all.forms.begin(); i != all.forms.end(); ++i)
    for (size_t k = 0; k < i->second.size(); k++)
      if (oldest == all.forms.end() || i->second[k].used < oldest->second[which].used)
        oldest = i, which = k;
  drop(all, oldest->second[which], dropped);
  oldest->second.erase(oldest->second.begin() + int64_t(which));
  if (oldest->second.empty()) all.forms.erase(oldest);
}

// The storage's number, given now if it has none.
uint64_t number_of(Storage& s) {
  uint64_t found = s.contents.load(std::memory_order_acquire);
  if (found) return found;
  uint64_t made = next_number();
  return s.contents.compare_exchange_strong(found, made) ? made : found;
}

aj_tensor* look_up(uint64_t number, const std::string& key) {
  Table& all = table();
  std::lock_guard held(all.lock);
  auto found = all.forms.find(number);
  if (found == all.forms.end()) return nullptr;
  for (Form& f : found->second)
    if (f.key == key) {
      f.used = ++all.clock;
      retain(f.tensor);
      return f.tensor;
    }
  return nullptr;
}

}  // namespace

uint64_t prepared_find(aj_tensor* t, const void* key, uint64_t bytes, aj_tensor** out) {
  *out = nullptr;
  Storage& s = storage(t);
  if (!(t->obj.flags & AJ_TENSOR_STRIDED) || !s.data || limit() == 0) return 0;
  uint64_t number = number_of(s);
  if (number == kEscaped) return 0;
  std::string all = whole_key(t, key, bytes);
  if (number & kKept) {
    number &= ~kKept;
    if ((*out = look_up(number, all))) return number;
  }
  // Worth keeping for who comes twice: what is written between two uses would be made for nothing.
  uint32_t seen = uint32_t(std::hash<std::string>()(all) ^ number * 0x9e3779b97f4a7c15);
  return s.prepared_seen.exchange(seen, std::memory_order_relaxed) == seen ? number : 0;
}

void prepared_keep(aj_tensor* t, uint64_t ticket, const void* key, uint64_t bytes,
                   aj_tensor* form) {
  Storage& s = storage(t);
  uint64_t size = storage(form).bytes, expected = ticket;
  if (ticket == 0 || size > limit() / 2) return;
  std::string name = whole_key(t, key, bytes);
  Dropped dropped;
  Table& all = table();
  {
    std::lock_guard held(all.lock);
    // Whoever writes from here on finds the bit and waits for the lock.
    if (!s.contents.compare_exchange_strong(expected, ticket | kKept) &&
        expected != (ticket | kKept))
      return;
    std::vector<Form>& forms = all.forms[ticket];
    for (const Form& f : forms)
      if (f.key == name) return;
    retain(form);
    forms.push_back({std::move(name), form, size, ++all.clock});
    all.bytes += size;
    while (all.bytes > limit()) drop_oldest(all, &dropped);
  }
  release_all(dropped);
}

void contents_forget(Storage& s, uint64_t next) {
  uint64_t old = s.contents.load(std::memory_order_acquire);
  do {
    if (old == kEscaped) {
      if ((s.flags & kStorageWrap) && next == 0) wrap_written(s);
      return;
    }
  } while (!s.contents.compare_exchange_weak(old, next));
  if (!(old & kKept)) return;
  Dropped dropped;
  Table& all = table();
  {
    std::lock_guard held(all.lock);
    auto found = all.forms.find(old & ~kKept);
    if (found == all.forms.end()) return;
    for (Form& f : found->second) drop(all, f, &dropped);
    all.forms.erase(found);
  }
  release_all(dropped);
}

void tensor_escape(aj_tensor* t) { contents_forget(storage(t), kEscaped); }

void prepared_release() {
  Dropped dropped;
  Table& all = table();
  {
    std::lock_guard held(all.lock);
    for (auto& [number, forms] : all.forms)
      for (Form& f : forms) drop(all, f, &dropped);
    all.forms.clear();
  }
  release_all(dropped);
}

}  // namespace adjoin

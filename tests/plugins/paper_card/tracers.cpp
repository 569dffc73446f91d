// tests/plugins/paper_card/tracers.cpp: the tools that say when a card has worked: the names of
// NVIDIA's CUPTI and of AMD's roctracer that plugins/cuda and plugins/hip open. Their clock is
// another than ours.
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "card.hpp"

using namespace paper;

namespace {

struct Noted {
  Task task;
  uint64_t number, begin, end, bytes, stream;
  int device;
  const char* name;
};
struct Notes {
  std::mutex lock;
  std::vector<Noted> work;
  std::vector<std::pair<uint64_t, uint64_t>> owners;  // number, event
  std::set<std::string> names;                        // they stay
  uint64_t calls = 0;
};
Notes& notes() {
  static auto* one = new Notes;
  return *one;
}
std::atomic<bool> on{false};
thread_local std::vector<uint64_t> owners;

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

template <class T>
void put(char* record, size_t offset, T value) {
  std::memcpy(record + offset, &value, sizeof value);
}

// What was noted until now, each as one record of `stride` bytes.
template <class F, class G>
std::vector<char> taken(size_t stride, F of_owner, G of_work) {
  std::lock_guard held(notes().lock);
  std::vector<char> all;
  auto more = [&] { return all.resize(all.size() + stride), all.data() + all.size() - stride; };
  for (auto& [number, event] : notes().owners) of_owner(more(), number, event);
  for (const Noted& w : notes().work) of_work(more(), w);
  notes().owners.clear();
  notes().work.clear();
  return all;
}

}  // namespace

namespace paper {

std::function<void()> traced(Task task, const std::string& name, size_t bytes, Stream* s,
                             std::function<void()> work) {
  if (!on) return work;
  std::lock_guard held(notes().lock);
  Noted w = {task,
             ++notes().calls,
             0,
             0,
             bytes,
             reinterpret_cast<uintptr_t>(s) >> 4,
             current_device,
             notes().names.insert(name).first->c_str()};
  if (!owners.empty()) notes().owners.emplace_back(w.number, owners.back());
  return [w, work = std::move(work)]() mutable {
    w.begin = now();
    work();
    w.end = now() + 1;
    std::lock_guard guard(notes().lock);
    notes().work.push_back(w);
  };
}

}  // namespace paper

// ---- CUPTI
namespace {
constexpr size_t kStride = 216;  // of the longest record
void (*request)(uint8_t**, size_t*, size_t*);
void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t);
int kinds = 0;

int kind_of(Task task) { return task == Task::kernel ? 10 : task == Task::copy ? 1 : 2; }
}  // namespace

extern "C" {

int cuptiGetResultString(int, const char** out) { return *out = "CUPTI_ERROR_OF_PAPER", 0; }
int cuptiActivityRegisterCallbacks(decltype(request) r, decltype(complete) c) {
  return request = r, complete = c, ordered(__func__);
}
int cuptiActivityEnable(int) {
  if (int wrong = ordered(__func__)) return wrong;
  ++kinds;
  return on = true, 0;
}
int cuptiActivityDisable(int) {
  kinds = kinds > 0 ? kinds - 1 : 0;
  return on = kinds > 0, 0;
}
int cuptiGetTimestamp(uint64_t* out) { return *out = now(), 0; }
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (kind < 1 || kind > 5) return 1;
  return owners.push_back(id), 0;
}
int cuptiActivityPopExternalCorrelationId(int, uint64_t* last) {
  if (owners.empty()) return 26;
  return *last = owners.back(), owners.pop_back(), 0;
}
int cuptiActivityFlushAll(uint32_t) {
  auto of_owner = [](char* r, uint64_t number, uint64_t event) {
    put(r, 0, 39), put(r, 4, 3), put(r, 8, event), put(r, 16, uint32_t(number));
  };
  auto of_work = [](char* r, const Noted& w) {
    bool kernel = w.task == Task::kernel;
    put(r, 0, kind_of(w.task));
    if (!kernel) put(r, 8, w.bytes);
    put(r, 16, w.begin), put(r, 24, w.end);
    put(r, kernel ? 40 : 32, w.device);
    put(r, kernel ? 48 : 40, uint32_t(w.stream));
    put(r, kernel ? 92 : 44, uint32_t(w.number));
    if (kernel) put(r, 104, w.name);
  };
  std::vector<char> all = taken(kStride, of_owner, of_work);
  for (size_t at = 0; at < all.size();) {
    uint8_t* room = nullptr;
    size_t bytes = 0, most = 0;
    request(&room, &bytes, &most);
    if (!room || reinterpret_cast<uintptr_t>(room) % 8) return 2;
    size_t n = std::min(bytes / kStride * kStride, all.size() - at);
    std::memcpy(room, all.data() + at, n);
    complete(nullptr, 0, room, bytes, n);
    at += n;
  }
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* room, size_t filled, char** record) {
  char* begin = reinterpret_cast<char*>(room);
  char* next = *record ? *record + kStride : begin;
  if (next + kStride > begin + filled) return 12;  // there is no more
  return *record = next, 0;
}

// ---- roctracer
struct Properties {
  uint32_t mode;
  size_t room;
  void* allocate[2];
  void (*complete)(const char* begin, const char* end, void* with);
  void* with;
};
const char* roctracer_error_string() { return "an error of paper"; }
int roctracer_open_pool_expl(const Properties* p, void** pool) {
  if (int wrong = ordered(__func__)) return wrong;
  return *pool = new Properties(*p), 0;
}
int roctracer_enable_domain_activity_expl(uint32_t domain, void* pool) {
  if (int wrong = ordered(__func__)) return wrong;
  return on = on || domain == 2, pool ? 0 : 1;
}
int roctracer_disable_domain_activity(uint32_t domain) { return domain == 2 ? (on = false, 0) : 0; }
int roctracer_get_timestamp(uint64_t* out) { return *out = now(), 0; }
int roctracer_activity_push_external_correlation_id(uint64_t id) { return owners.push_back(id), 0; }
int roctracer_activity_pop_external_correlation_id(uint64_t* last) {
  if (owners.empty()) return 1;
  return *last = owners.back(), owners.pop_back(), 0;
}
int roctracer_flush_activity_expl(Properties* pool) {
  auto of_owner = [](char* r, uint64_t number, uint64_t event) {
    put(r, 0, 5u), put(r, 8, 1u), put(r, 16, number), put(r, 40, event);
  };
  auto of_work = [](char* r, const Noted& w) {
    put(r, 0, 2u), put(r, 8, w.task == Task::kernel ? 0u : 1u);
    put(r, 16, w.number), put(r, 24, w.begin), put(r, 32, w.end);
    put(r, 40, w.device), put(r, 48, w.stream);
    w.task == Task::kernel ? put(r, 56, w.name) : put(r, 56, w.bytes);
  };
  std::vector<char> all = taken(64, of_owner, of_work);
  if (!all.empty()) pool->complete(all.data(), all.data() + all.size(), pool->with);
  return 0;
}
int roctracer_close_pool_expl(Properties* pool) { return delete pool, 0; }
int roctracer_next_record(const char* record, const char** next) { return *next = record + 64, 0; }
}

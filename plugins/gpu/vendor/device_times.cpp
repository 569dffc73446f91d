// plugins/gpu/vendor/device_times.cpp: joins what the vendor's tool tells with the calls of ops.
#include "device_times.hpp"

#include <adjoin/abi/profile.h>
#include <cxxabi.h>
#include <time.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "status.hpp"

namespace adjoin::vendor {
namespace {

struct Seen {
  std::mutex lock;
  std::vector<Work> work;
  std::unordered_map<uint64_t, uint64_t> owner;  // event by number
};
Seen& seen() {  // it has no end: the tool's thread may tell more while the process ends
  static auto* one = new Seen;
  return *one;
}
int64_t ahead = 0;  // of the tool's clock before ours, in nanoseconds
std::mutex turns;   // of start and stop
aj_object* listening = nullptr;
const aj_profile* events = nullptr;

void on_event(void*, const aj_event* e) {
  if (e->end_ns == 0)
    tracer_enter(e->id);
  else
    tracer_leave();
}

std::string readable(const std::string& name) {
  int wrong = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &wrong);
  std::string result = wrong || !text ? name : text;
  std::free(text);
  return result;
}

aj_status* start(void*) {
  std::lock_guard held(turns);
  if (listening)
    return kit::fail(AJ_PRECONDITION, kDevice,
                     ": device times are taken by somebody already; end that profile first");
  if (aj_status* s = ready()) return s;
  if (!events) return kit::fail(AJ_UNAVAILABLE, kDevice, ": this libadjoin tells no events");
  seen().work.clear();
  seen().owner.clear();
  if (std::string why = tracer_start(); !why.empty()) {
    if (tracer_file().usable()) tracer_stop();
    return kit::fail(AJ_UNAVAILABLE, kDevice, ": no device times: ", why);
  }
  aj_listener l = {sizeof l, AJ_LISTEN_BEGIN, AJ_EVENT_CALL, nullptr, on_event, nullptr};
  aj_status* s = events->listen(&l, &listening);
  if (s) tracer_stop();
  return s;
}

aj_status* stop(void*, void (*each)(void*, const aj_device_work*), void* arg) {
  std::lock_guard held(turns);
  if (!listening) return nullptr;
  kit::core().release(std::exchange(listening, nullptr));
  tracer_stop();
  std::vector<Work> work;
  std::unordered_map<uint64_t, uint64_t> owner;
  {
    std::lock_guard guard(seen().lock);
    work.swap(seen().work);
    owner.swap(seen().owner);
  }
  std::stable_sort(work.begin(), work.end(),
                   [](const Work& a, const Work& b) { return a.begin < b.begin; });
  for (const Work& w : work) {
    auto of = owner.find(w.number);
    std::string name = readable(w.name);
    aj_device_work told = {sizeof told,
                           w.kind,
                           of == owner.end() ? 0 : of->second,
                           kit::str(name),
                           w.begin,
                           w.end,
                           w.bytes,
                           w.stream,
                           w.device,
                           0};
    each(arg, &told);
  }
  return nullptr;
}

}  // namespace

void clock_reads(uint64_t theirs) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ahead = int64_t(theirs) - (int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
}
void take_work(Work work) {
  work.begin = uint64_t(int64_t(work.begin) - ahead);
  work.end = uint64_t(int64_t(work.end) - ahead);
  std::lock_guard held(seen().lock);
  seen().work.push_back(std::move(work));
}
void take_owner(uint64_t number, uint64_t event) {
  std::lock_guard held(seen().lock);
  seen().owner[number] = event;
}

namespace {
constexpr aj_device_times table = {sizeof(aj_device_times), 0, nullptr, start, stop};
}

void offer_device_times(kit::Registrar& plugin, const char* name) {
  static const std::string slot = std::string("aj.device_times/") + kDevice;
  events = static_cast<const aj_profile*>(plugin.env()->query("x.profile", 1));
  plugin.service(slot.c_str(), name, &table, 0);
}

}  // namespace adjoin::vendor

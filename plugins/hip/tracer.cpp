// plugins/hip/tracer.cpp: AMD's roctracer, opened when device times are first asked for: it notes
// what the card does, and we note whose calls queued it.
#include <cstring>

#include "../gpu/vendor/device_times.hpp"

namespace adjoin::vendor {
namespace {

// As roctracer's binary interface has it.
using Result = int;
constexpr Result kGood = 0;
enum Domain : uint32_t {
  kWork = 2,
  kCalls = 3,
  kOwners = 5
};                                                     // a call has a number, work its call's
enum Operation : uint32_t { kKernel = 0, kCopy = 1 };  // of kWork; others are marks
constexpr uint32_t kOwner = 1;                         // of kOwners

struct Record {
  uint32_t domain, kind, operation;
  uint64_t number, begin, end;
  union {
    struct {
      int32_t device;
      uint64_t queue;
    };
    uint64_t event;
  };
  union {
    uint64_t bytes;
    const char* name;
  };
};
static_assert(sizeof(Record) == 64);

struct Properties {
  uint32_t mode;
  size_t room;
  void (*allocate)(char**, size_t, void*);
  void* allocate_with;
  void (*complete)(const char* begin, const char* end, void*);
  void* complete_with;
};

struct Tool {
  Result (*open_pool)(const Properties*, void**);
  Result (*close_pool)(void*);
  Result (*enable)(uint32_t, void*);
  Result (*disable)(uint32_t);
  Result (*flush)(void*);
  Result (*next)(const Record*, const Record**);
  Result (*push)(uint64_t);
  Result (*pop)(uint64_t*);
  Result (*timestamp)(uint64_t*);
  const char* (*error)();
};
Tool tool;
void* pool = nullptr;

constexpr Domain kWanted[] = {kOwners, kCalls, kWork};

void read_record(const Record& r) {
  if (r.domain == kOwners && r.operation == kOwner) return take_owner(r.number, r.event);
  if (r.domain != kWork || (r.operation != kKernel && r.operation != kCopy)) return;
  Work w = {};
  w.kind = r.operation == kKernel ? AJ_WORK_KERNEL : AJ_WORK_COPY;
  w.number = r.number;
  w.device = r.device;
  w.stream = r.queue;
  w.begin = r.begin;
  w.end = r.end;
  if (r.operation == kCopy)
    w.bytes = r.bytes;
  else if (r.name)
    w.name = r.name;
  take_work(std::move(w));
}

void take_room(const char* begin, const char* end, void*) {
  auto* r = reinterpret_cast<const Record*>(begin);
  auto* last = reinterpret_cast<const Record*>(end);
  while (r < last) {
    read_record(*r);
    if (tool.next(r, &r) != kGood) return;
  }
}

std::string bind_all(const SharedLibrary& from) {
  auto get = [&](const char* name, auto* to) { return from.bind(name, to); };
  bool all = get("roctracer_open_pool_expl", &tool.open_pool) &&
             get("roctracer_close_pool_expl", &tool.close_pool) &&
             get("roctracer_enable_domain_activity_expl", &tool.enable) &&
             get("roctracer_disable_domain_activity", &tool.disable) &&
             get("roctracer_flush_activity_expl", &tool.flush) &&
             get("roctracer_next_record", &tool.next) &&
             get("roctracer_activity_push_external_correlation_id", &tool.push) &&
             get("roctracer_activity_pop_external_correlation_id", &tool.pop) &&
             get("roctracer_get_timestamp", &tool.timestamp) &&
             get("roctracer_error_string", &tool.error);
  return all ? "" : "it lacks functions of roctracer 4.1";
}

std::string says(Result result, const char* doing) {
  const char* text = tool.error();
  return kit::text(doing, ": roctracer says ", text ? text : "an unknown error", " (", result, ")");
}

}  // namespace

SharedLibrary& tracer_file() {
  static SharedLibrary& one = []() -> SharedLibrary& {
    auto* made = new SharedLibrary("roctracer", "ADJOIN_ROCTRACER",
                                   {"libroctracer64.so.4", "/opt/rocm/lib/libroctracer64.so"},
                                   {"_rocm_sdk_core/lib", "torch/lib"});
    if (made->open())
      if (std::string why = bind_all(*made); !why.empty()) made->close_for(why);
    return *made;
  }();
  return one;
}

std::string tracer_start() {
  if (!tracer_file().usable())
    return tracer_file().where() +
           "; apt-get install roctracer of AMD, or name the library in ADJOIN_ROCTRACER";
  Properties properties = {0, size_t(1) << 20, nullptr, nullptr, take_room, nullptr};
  Result result = tool.open_pool(&properties, &pool);
  if (result != kGood) return says(result, "roctracer_open_pool");
  uint64_t theirs = 0;
  result = tool.timestamp(&theirs);
  if (result != kGood) return says(result, "roctracer_get_timestamp");
  clock_reads(theirs);
  for (Domain domain : kWanted)
    if (result = tool.enable(domain, pool); result != kGood)
      return says(result, "roctracer_enable_domain_activity");
  return {};
}

void tracer_stop() {
  for (Domain domain : kWanted) (void)tool.disable(domain);
  if (!pool) return;
  (void)tool.flush(pool);
  (void)tool.close_pool(std::exchange(pool, nullptr));
}

void tracer_enter(uint64_t id) { (void)tool.push(id); }
void tracer_leave() {
  uint64_t last = 0;
  (void)tool.pop(&last);
}

}  // namespace adjoin::vendor

// plugins/cuda/tracer.cpp: NVIDIA's CUPTI, opened when device times are first asked for: it notes
// what the card does, and we note whose calls queued it.
#include <cstdlib>
#include <cstring>

#include "../gpu/vendor/device_times.hpp"
#include "driver.hpp"

namespace adjoin::vendor {
namespace {

// As CUPTI's binary interface has it: what is read of a record stands at the same place in those of
// CUDA 9 to 13, which grow at their ends.
using Result = int;
constexpr Result kGood = 0;
enum Kind : int { kCopy = 1, kFill = 2, kKernel = 10, kCopyBetween = 22, kOwner = 39 };
constexpr Kind kWanted[] = {kCopy, kFill, kKernel, kCopyBetween, kOwner};
constexpr int kOurs = 3;             // whose numbers tracer_enter gives: "custom 0"
constexpr uint32_t kUnfinished = 1;  // a flush that wants all there is

template <class T>
T at(const char* record, size_t offset) {
  T value;
  std::memcpy(&value, record + offset, sizeof value);
  return value;
}

using Request = void (*)(uint8_t**, size_t*, size_t*);
using Complete = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);
struct Tool {
  Result (*RegisterCallbacks)(Request, Complete);
  Result (*Enable)(int);
  Result (*Disable)(int);
  Result (*FlushAll)(uint32_t);
  Result (*GetNextRecord)(uint8_t*, size_t, char**);
  Result (*PushExternalCorrelationId)(int, uint64_t);
  Result (*PopExternalCorrelationId)(int, uint64_t*);
  Result (*GetTimestamp)(uint64_t*);
  Result (*GetResultString)(Result, const char**);
};
Tool tool;

constexpr size_t kRoom = size_t(1) << 20, kAlign = 8;

void give_room(uint8_t** room, size_t* bytes, size_t* most) {
  *room = static_cast<uint8_t*>(std::aligned_alloc(kAlign, kRoom));
  *bytes = *room ? kRoom : 0;
  *most = 0;  // as many records as fit
}

void read_record(const char* r) {
  int kind = at<int>(r, 0);
  if (kind == kOwner) {
    if (at<int>(r, 4) == kOurs) take_owner(at<uint32_t>(r, 16), at<uint64_t>(r, 8));
    return;
  }
  Work w = {};
  w.begin = at<uint64_t>(r, 16);
  w.end = at<uint64_t>(r, 24);
  if (kind == kKernel) {
    w.kind = AJ_WORK_KERNEL;
    w.device = at<int32_t>(r, 40);
    w.stream = at<uint32_t>(r, 48);
    w.number = at<uint32_t>(r, 92);
    if (const char* name = at<const char*>(r, 104)) w.name = name;
  } else if (kind == kCopy || kind == kFill || kind == kCopyBetween) {
    w.kind = kind == kFill ? AJ_WORK_FILL : AJ_WORK_COPY;
    w.bytes = at<uint64_t>(r, 8);
    w.device = at<int32_t>(r, 32);
    w.stream = at<uint32_t>(r, 40);
    w.number = at<uint32_t>(r, kind == kCopyBetween ? 60 : 44);
  } else {
    return;
  }
  take_work(std::move(w));
}

void take_room(void*, uint32_t, uint8_t* room, size_t, size_t filled) {
  char* record = nullptr;
  while (filled && tool.GetNextRecord(room, filled, &record) == kGood) read_record(record);
  std::free(room);
}

std::string bind_all(const SharedLibrary& from) {
  auto get = [&](const char* name, auto* to) { return from.bind(name, to); };
  bool all = get("cuptiActivityRegisterCallbacks", &tool.RegisterCallbacks) &&
             get("cuptiActivityEnable", &tool.Enable) &&
             get("cuptiActivityDisable", &tool.Disable) &&
             get("cuptiActivityFlushAll", &tool.FlushAll) &&
             get("cuptiActivityGetNextRecord", &tool.GetNextRecord) &&
             get("cuptiActivityPushExternalCorrelationId", &tool.PushExternalCorrelationId) &&
             get("cuptiActivityPopExternalCorrelationId", &tool.PopExternalCorrelationId) &&
             get("cuptiGetTimestamp", &tool.GetTimestamp) &&
             get("cuptiGetResultString", &tool.GetResultString);
  return all ? "" : "it lacks functions of CUPTI";
}

std::string says(Result result, const char* doing) {
  const char* text = nullptr;
  bool known = tool.GetResultString(result, &text) == kGood && text;
  return kit::text(doing, ": CUPTI says ", known ? text : "an unknown error", " (", result, ")");
}

}  // namespace

SharedLibrary& tracer_file() {
  static SharedLibrary& one = []() -> SharedLibrary& {
    std::vector<std::string> names = {"libcupti.so.12"};
    if (driver_serves(13000)) names.insert(names.begin(), "libcupti.so.13");
    auto* made = new SharedLibrary("CUPTI", "ADJOIN_CUPTI", names,
                                   {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib"});
    if (made->open())
      if (std::string why = bind_all(*made); !why.empty()) made->close_for(why);
    return *made;
  }();
  return one;
}

std::string tracer_start() {
  if (!tracer_file().usable())
    return tracer_file().where() +
           "; pip install nvidia-cuda-cupti-cu12, or name the library in ADJOIN_CUPTI";
  Result result = tool.RegisterCallbacks(give_room, take_room);
  if (result != kGood) return says(result, "cuptiActivityRegisterCallbacks");
  uint64_t theirs = 0;
  result = tool.GetTimestamp(&theirs);
  if (result != kGood) return says(result, "cuptiGetTimestamp");
  clock_reads(theirs);
  for (Kind kind : kWanted)
    if (result = tool.Enable(kind); result != kGood) return says(result, "cuptiActivityEnable");
  return {};
}

void tracer_stop() {
  for (Kind kind : kWanted) (void)tool.Disable(kind);
  (void)tool.FlushAll(kUnfinished);
}

void tracer_enter(uint64_t id) { (void)tool.PushExternalCorrelationId(kOurs, id); }
void tracer_leave() {
  uint64_t last = 0;
  (void)tool.PopExternalCorrelationId(kOurs, &last);
}

}  // namespace adjoin::vendor

// tests/plugins/paper_card/tools.cpp: NVIDIA's libraries that measure a card and that name ranges:
// of NVML and NVTX what adjoin.cuda calls.
#include <cstring>
#include <string>

#include "card.hpp"

using namespace paper;

namespace {

struct Rates {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, unused, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned instance, compute;
};
char cards[2];  // the addresses are the handles
thread_local int open_ranges = 0;
std::string last;  // what a range was called

int about(const void* card) { return card == &cards[0] || card == &cards[1] ? 0 : 2; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int code) { return code == 6 ? "Not Found" : "Invalid Argument"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** out) {
  bool first = !std::strcmp(bus, "0000:01:00.0"), second = !std::strcmp(bus, "0000:02:00.0");
  *out = &cards[second];
  return first || second ? 0 : 6;
}
int nvmlDeviceGetUtilizationRates(void* card, Rates* out) {
  *out = {card == &cards[1] ? 61u : 60u, 20};
  return about(card);
}
int nvmlDeviceGetTemperature(void* card, unsigned sensor, unsigned* out) {
  return *out = 41, sensor ? 2 : about(card);
}
int nvmlDeviceGetPowerUsage(void* card, unsigned* out) { return *out = 300000, about(card); }
int nvmlDeviceGetClockInfo(void* card, unsigned which, unsigned* out) {
  return *out = 1980, which == 1 ? about(card) : 2;
}
int nvmlDeviceGetMemoryInfo(void* card, Memory* out) {
  *out = {1 << 30, 1 << 29, 1 << 29};
  return about(card);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* card, unsigned* n, Process* out) {
  if (*n < 1) return 7;
  *n = 1;
  out[0] = {123, 5 << 20, 0, 0};
  return about(card);
}

void nvtxMarkA(const char* text) { last = text; }
int nvtxRangePushA(const char* text) {
  last = text;
  return ++counts.ranges, open_ranges++;
}
int nvtxRangePop() { return --counts.ranges, --open_ranges; }
uint64_t nvtxRangeStartA(const char* text) {
  last = text;
  return ++counts.ranges, (uint64_t(1) << 40) + 7;
}
void nvtxRangeEnd(uint64_t range) {
  if (range == (uint64_t(1) << 40) + 7) --counts.ranges;
}
const char* paper_range() { return last.c_str(); }
}

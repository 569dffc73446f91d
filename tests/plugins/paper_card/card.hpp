// tests/plugins/paper_card/card.hpp: a GPU's runtime without a GPU, for tests of the plugin files
// that ship. Memory is the host's, streams are threads, graphs are lists; results have the numbers
// that CUDA and HIP share. cuda.cpp and hip.cpp give it their names.
#ifndef ADJOIN_TESTS_PAPER_CARD_HPP
#define ADJOIN_TESTS_PAPER_CARD_HPP
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace paper {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidFunction = 98,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoImage = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAlreadyEnabled = 704,
  kLaunchFailure = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureIllegal = 906,
};
const char* name_of(int result);
const char* text_of(int result);

// What a test orders: orders.cpp reads it from ADJOIN_PAPER_CARD and from paper_order().
struct Orders {
  std::atomic<int64_t> devices{2}, memory{int64_t(1) << 30}, version{13000};
  std::atomic<int64_t> fail_alloc{0};   // the n-th allocation from now is refused
  std::atomic<int64_t> full{0};         // 1: every allocation is refused
  std::atomic<int64_t> lost{0};         // the next call answers this, and every one after it
  std::atomic<int64_t> wrong{0};        // the next call answers this, once
  std::atomic<int64_t> fail_kernel{0};  // the n-th kernel from now loses the device, when it runs
  std::atomic<int64_t> hang{0};         // the n-th kernel launched from now waits until hang=0
  std::atomic<int64_t> no_image{0};     // 1: no machine code for this card
  std::atomic<int64_t> idle{0};  // kernels are checked and counted; 1: they do nothing, 2: nor wait
  std::atomic<int64_t> delay_us{0};  // before each piece of work
  std::atomic<int64_t> record{0};    // 1: what is queued is noted, for paper_recorded()
};
extern Orders orders;
bool is_due(std::atomic<int64_t>& countdown);
// What a step of this name is to answer instead of doing its work, by an order "answer=NAME:CODE:N"
// (the N-th from now, once) or "loses=NAME:CODE:N" (from then on the device is lost); else 0. The
// names are those of the functions below, or of a library's own.
int ordered(const char* step, bool* loses = nullptr);

// What has happened, for paper_count().
struct Counts {
  std::atomic<int64_t> launches{0}, allocations{0}, refused{0}, contexts{0}, waits{0}, products{0},
      convolutions{0}, recordings{0}, ranges{0}, solutions{0}, transforms{0}, plans{0},
      plans_alive{0};
};
extern Counts counts;
void note(const std::string& what);  // if it is to be recorded

// The device that the thread's calls go to; -1: none yet.
extern thread_local int current_device;
extern thread_local int warp_size;  // of the vendor whose call this is
extern thread_local bool idle_now;  // in a stream's work: what `idle` was when that was queued
// Sticky errors, ordered answers, and whether there is a device; a step is called as its function.
int check_device(const char* step = __builtin_FUNCTION());
void lose_device(int result, int device);
void repair_devices();

// memory.cpp
enum class Kind { device, pinned, managed };
int allocate(void** out, size_t bytes, Kind kind);
int release(void* p);
int memory_info(size_t* unused, size_t* all);
int range_of(void** base, size_t* bytes, const void* p);
// Does [p, p + bytes) lie where it may? Memory that is not the card's is the host's own.
int check_range(const void* p, size_t bytes);
bool is_known(const void* p);
int enable_peer(int device);
// Of other processes: a handle has 64 bytes.
int show_memory(void* handle, void* p);
int open_memory(void** out, const void* handle);
int close_memory(void* p);

// stream.cpp
class Stream;
class Event;
struct Graph;
int stream_new(Stream** out, unsigned flags, int priority);
int stream_free(Stream* s);
int stream_wait(Stream* s);  // null: for the device
int stream_query(Stream* s);
int device_wait();
void wait_for_all(int device);
int stream_wait_event(Stream* s, Event* e);
int event_new(Event** out);
int event_free(Event* e);
int event_record(Event* e, Stream* s);
int event_query(Event* e);
int event_wait(Event* e);
int event_elapsed(float* ms, Event* a, Event* b);
int capture_begin(Stream* s);
int capture_end(Stream* s, Graph** out);
int capture_status(Stream* s, int* out);
int graph_free(Graph* g);
int graph_launch(Graph* g, Stream* s);
// In order on a stream of the current device, or into the graph that it is captured to.
int submit(Stream* s, std::function<void()> work);

int copy(void* to, const void* from, size_t bytes, Stream* s);
int copy_rows(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
              size_t height, Stream* s);
int fill(void* p, unsigned char byte, size_t bytes, Stream* s);

// tracers.cpp: the work, timed if somebody wants that.
enum class Task { kernel, copy, fill };
std::function<void()> traced(Task task, const std::string& name, size_t bytes, Stream* s,
                             std::function<void()> work);

// kernels.cpp
int load_module(void** out, const void* image);
int get_function(void** out, void* module, const char* name);
int launch(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
           unsigned bz, unsigned shared, Stream* s, void** arguments);

}  // namespace paper
#endif

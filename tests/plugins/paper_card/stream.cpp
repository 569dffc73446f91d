// tests/plugins/paper_card/stream.cpp: streams, each a thread that does its work in order; events,
// marks in them; graphs, lists of what streams would have done.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "card.hpp"

namespace paper {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;
constexpr int kMostDevices = 16;

struct Graph {
  std::vector<Work> work;
  std::vector<Stream*> streams;  // the first is the one that the capture began on
  int device = 0;
  bool broken = false;
};

class Stream {
 public:
  explicit Stream(int device) : device(device), thread_([this] { loop(); }) { thread_.detach(); }

  uint64_t add(Work work) {
    std::lock_guard held(lock_);
    work_.push_back(std::move(work));
    changed_.notify_all();
    return ++queued_;
  }
  uint64_t queued() {
    std::lock_guard held(lock_);
    return queued_;
  }
  bool passed(uint64_t ticket) {
    std::lock_guard held(lock_);
    return done_ >= ticket;
  }
  void wait(uint64_t ticket) {
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return done_ >= ticket; });
  }

  void end() {
    std::unique_lock held(lock_);
    changed_.wait_for(held, std::chrono::seconds(2), [&] { return done_ == queued_; });
  }

  const int device;
  std::shared_ptr<Graph> capture;  // under the captures' lock
  static std::atomic<bool> ended;  // the process ends

 private:
  void loop() {
    current_device = device;
    std::unique_lock held(lock_);
    for (;;) {
      changed_.wait(held, [&] { return !work_.empty(); });
      Work now = std::move(work_.front());
      work_.pop_front();
      held.unlock();
      if (int64_t us = orders.delay_us) std::this_thread::sleep_for(std::chrono::microseconds(us));
      if (!ended) now();
      now = {};
      held.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  uint64_t queued_ = 0, done_ = 0;
  std::thread thread_;
};

// What was ordered before a process ended and has not begun is dropped, as a driver does; what runs
// has two seconds. Kernels are not run any more when the library that holds their bodies goes.
std::atomic<bool> Stream::ended;

class Event {
 public:
  Stream* stream = nullptr;
  uint64_t ticket = 0;
  std::shared_ptr<Clock::time_point> when;
  std::shared_ptr<Graph> capture;
};

thread_local int current_device = -1;
thread_local int warp_size = 32;
thread_local bool idle_now = false;

namespace {

std::atomic<int> lost[kMostDevices];
std::atomic<int64_t> losses[kMostDevices];  // how often it was lost
std::mutex captures;
struct Streams {
  std::mutex lock;
  std::vector<Stream*> all;  // they stay: events speak of them when they are gone
  Stream* defaults[kMostDevices] = {};
};
Streams& streams() {
  static auto* one = new Streams;
  return *one;
}

Stream* make(int device) {
  auto* s = new Stream(device);
  streams().all.push_back(s);
  return s;
}

// The stream that is meant, of the current device; null: it is another device's.
Stream* meant(Stream* s) {
  if (s) return s->device == current_device ? s : nullptr;
  std::lock_guard held(streams().lock);
  Stream*& d = streams().defaults[current_device];
  if (!d) d = make(current_device);
  return d;
}

// What would have to wait breaks a capture.
bool breaks_capture(Stream* s) {
  std::lock_guard held(captures);
  if (s->capture) s->capture->broken = true;
  return s->capture != nullptr;
}

// Work as it was ordered when it was queued: streams are late, and orders change meanwhile. Half of
// an op's kernels would run on what the other half did not write, places to store to among it.
class Queued {
 public:
  Queued(int device, int64_t losses, Work work)
      : device_(device), losses_(losses), idle_(orders.idle), work_(std::move(work)) {}
  void operator()() const {
    idle_now = idle_;
    if (stands(device_, losses_)) work_();
  }
  // A device that is there again has forgotten what was queued on the one that was lost.
  static bool stands(int device, int64_t so_often) {
    return !lost[device] && losses[device] == so_often;
  }

 private:
  int device_;
  int64_t losses_;
  bool idle_;
  Work work_;
};

int look(const char* step, int (*f)(Stream*), Stream* s) {
  if (int wrong = check_device(step)) return wrong;
  Stream* m = meant(s);
  if (!m) return kInvalidHandle;
  if (breaks_capture(m)) return kCaptureUnsupported;
  int result = f(m);
  int wrong = check_device("");  // what has gone wrong meanwhile
  return wrong ? wrong : result;
}

}  // namespace

int check_device(const char* step) {
  if (current_device < 0) return kInvalidContext;
  bool loses = false;
  if (int code = ordered(step, &loses)) {
    if (!loses) return code;
    lose_device(code, current_device);
  }
  if (orders.wrong)
    if (int64_t code = orders.wrong.exchange(0)) return int(code);
  if (orders.lost)
    if (int64_t code = orders.lost.exchange(0)) lose_device(int(code), current_device);
  return lost[current_device];
}
void lose_device(int result, int device) {
  int none = 0;
  ++losses[device];
  lost[device].compare_exchange_strong(none, result);
}
void repair_devices() {
  for (auto& device : lost) device = 0;
}

int stream_new(Stream** out, unsigned, int) {
  if (int wrong = check_device()) return wrong;
  std::lock_guard held(streams().lock);
  *out = make(current_device);
  return kSuccess;
}
int stream_free(Stream* s) {
  if (int wrong = check_device()) return wrong;
  return s && s->device == current_device ? kSuccess : kInvalidHandle;
}
int stream_wait(Stream* s) {
  ++counts.waits;
  return look(
      __func__, [](Stream* m) { return m->wait(m->queued()), int(kSuccess); }, s);
}
int stream_query(Stream* s) {
  auto passed = [](Stream* m) { return m->passed(m->queued()) ? int(kSuccess) : int(kNotReady); };
  return look(__func__, passed, s);
}
void wait_for_all(int device) {
  std::vector<Stream*> all;
  {
    std::lock_guard held(streams().lock);
    all = streams().all;
  }
  for (Stream* s : all)
    if (s->device == device) s->wait(s->queued());
}
int device_wait() {
  if (int wrong = check_device()) return wrong;
  ++counts.waits;
  wait_for_all(current_device);
  return check_device("");
}

int submit(Stream* s, Work work) {
  int64_t so_often = current_device < 0 ? 0 : losses[current_device].load();
  if (int wrong = check_device()) return wrong;
  Stream* m = meant(s);
  if (!m) return kInvalidHandle;
  {
    std::lock_guard held(captures);
    if (m->capture) return m->capture->work.push_back(std::move(work)), kSuccess;
  }
  m->add(Queued(m->device, so_often, std::move(work)));
  return kSuccess;
}

int event_new(Event** out) {
  if (int wrong = check_device()) return wrong;
  *out = new Event;
  return kSuccess;
}
int event_free(Event* e) {
  int wrong = check_device();
  delete e;
  return wrong;
}
int event_record(Event* e, Stream* s) {
  if (int wrong = check_device()) return wrong;
  Stream* m = meant(s);
  if (!m) return kInvalidHandle;
  {
    std::lock_guard held(captures);
    e->capture = m->capture;
    if (e->capture) return kSuccess;
  }
  auto when = std::make_shared<Clock::time_point>();
  e->stream = m;
  e->when = when;
  e->ticket = m->add([when] { *when = Clock::now(); });
  return kSuccess;
}
int stream_wait_event(Stream* s, Event* e) {
  if (int wrong = check_device()) return wrong;
  Stream* m = meant(s);
  if (!m) return kInvalidHandle;
  {
    std::lock_guard held(captures);
    if (e->capture) {  // the list is in an order that serves: that of the calls
      if (m->capture && m->capture != e->capture) return kCaptureIllegal;
      if (!m->capture) e->capture->streams.push_back(m);
      m->capture = e->capture;
      return kSuccess;
    }
    if (m->capture) return kCaptureIllegal;  // of work outside of the graph
  }
  if (Stream* other = e->stream; other && other != m)
    m->add([other, ticket = e->ticket] { other->wait(ticket); });
  return kSuccess;
}
int event_query(Event* e) {
  if (int wrong = check_device()) return wrong;
  if (e->capture) return kCaptureUnsupported;
  return !e->stream || e->stream->passed(e->ticket) ? kSuccess : kNotReady;
}
int event_wait(Event* e) {
  ++counts.waits;
  if (int wrong = check_device()) return wrong;
  if (e->capture) return kCaptureUnsupported;
  if (e->stream) e->stream->wait(e->ticket);
  return check_device("");
}
int event_elapsed(float* ms, Event* a, Event* b) {
  if (int wrong = check_device()) return wrong;
  if (!a->stream || !b->stream) return kInvalidHandle;
  if (!a->stream->passed(a->ticket) || !b->stream->passed(b->ticket)) return kNotReady;
  *ms = std::chrono::duration<float, std::milli>(*b->when - *a->when).count();
  return kSuccess;
}

int capture_begin(Stream* s) {
  if (int wrong = check_device()) return wrong;
  if (!s) return kCaptureUnsupported;
  std::lock_guard held(captures);
  if (s->capture) return kCaptureIllegal;
  s->capture = std::make_shared<Graph>();
  s->capture->streams = {s};
  s->capture->device = s->device;
  return kSuccess;
}
int capture_end(Stream* s, Graph** out) {
  int wrong = check_device();
  std::lock_guard held(captures);
  std::shared_ptr<Graph> g = s ? s->capture : nullptr;
  if (!g || g->streams[0] != s) return kCaptureIllegal;
  for (Stream* member : g->streams) member->capture = nullptr;
  if (g->broken || wrong) return *out = nullptr, wrong ? wrong : int(kCaptureInvalidated);
  *out = new Graph{std::move(g->work), {}, g->device, false};
  return kSuccess;
}
int capture_status(Stream* s, int* out) {
  std::lock_guard held(captures);
  *out = !s || !s->capture ? 0 : s->capture->broken ? 2 : 1;
  return kSuccess;
}
int graph_free(Graph* g) {
  int wrong = check_device();
  wait_for_all(g->device);
  delete g;
  return wrong;
}
int graph_launch(Graph* g, Stream* s) {
  if (int wrong = check_device()) return wrong;
  int64_t so_often = losses[g->device];
  return submit(s, [g, so_often] {
    for (const Work& work : g->work)
      if (Queued::stands(g->device, so_often)) work();
  });
}

// From memory of the host that is not pinned a copy has read when the call is over; into such
// memory it has written by then. What is captured reads and writes when it is replayed.
int copy_rows(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
              size_t height, Stream* s) {
  if (int wrong = check_device(); wrong || width == 0 || height == 0) return wrong;
  if (int wrong = check_range(to, to_pitch * (height - 1) + width)) return wrong;
  if (int wrong = check_range(from, pitch * (height - 1) + width)) return wrong;
  note("copy " + std::to_string(width * height));
  int capturing = 0;
  if (int wrong = capture_status(s, &capturing)) return wrong;
  auto move = [=](const void* source, size_t step) {
    for (size_t row = 0; row < height; ++row)
      std::memmove(static_cast<char*>(to) + row * to_pitch,
                   static_cast<const char*>(source) + row * step, width);
  };
  if (capturing || is_known(from)) {
    int result = submit(s, traced(Task::copy, "", width * height, s, [=] { move(from, pitch); }));
    if (result == kSuccess && !capturing && !is_known(to)) result = stream_wait(s);
    return result;
  }
  auto staged = std::make_shared<std::vector<char>>(width * height);
  for (size_t row = 0; row < height; ++row)
    std::memcpy(staged->data() + row * width, static_cast<const char*>(from) + row * pitch, width);
  auto work = [=] { move(staged->data(), width); };
  return submit(s, traced(Task::copy, "", width * height, s, work));
}
int copy(void* to, const void* from, size_t bytes, Stream* s) {
  return copy_rows(to, bytes, from, bytes, bytes, 1, s);
}
int fill(void* p, unsigned char byte, size_t bytes, Stream* s) {
  note("fill " + std::to_string(bytes));
  if (int wrong = check_device()) return wrong;
  if (int wrong = check_range(p, bytes)) return wrong;
  return submit(s, traced(Task::fill, "", bytes, s, [=] { std::memset(p, byte, bytes); }));
}

}  // namespace paper

extern "C" void paper_end() {
  paper::Stream::ended = true;
  std::lock_guard held(paper::streams().lock);
  for (paper::Stream* s : paper::streams().all) s->end();
}

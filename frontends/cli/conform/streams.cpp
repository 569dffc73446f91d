// frontends/cli/conform/streams.cpp: streams, events, and the order that they promise.
#include <atomic>
#include <chrono>
#include <thread>

#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

constexpr int64_t kElements = 1 << 20;
constexpr int kRounds = 20;

// A stream and an event of the device, given back at the end.
class Queue {
 public:
  explicit Queue(Bench& bench) : t_(*bench.table), dev_(bench.device.device_id) {
    kit::check(t_.stream_new(t_.self, dev_, 0, &stream));
    if (t_.event_new) kit::check(t_.event_new(t_.self, dev_, 0, &event));
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    if (event) drop(t_.event_free(t_.self, dev_, event));
    drop(t_.stream_free(t_.self, dev_, stream));
  }
  void record() const { kit::check(t_.event_record(t_.self, dev_, event, stream)); }
  void wait_for(const Queue& other) const {
    kit::check(t_.stream_wait(t_.self, dev_, stream, other.event));
  }
  void sync() const { kit::check(t_.stream_sync(t_.self, dev_, stream)); }
  void* stream = nullptr;
  void* event = nullptr;

 private:
  static void drop(aj_status* s) {
    if (s) kit::core().status_free(s);
  }
  const aj_device_vtbl& t_;
  int32_t dev_;
};

void streams(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.stream_new) {
    bool stands = t.flags & AJ_DEV_SYNCHRONOUS;
    v.expect("flags", stands ? "" : "neither streams nor the flag AJ_DEV_SYNCHRONOUS");
    return v.skip("the device has no streams: everything has finished when a call returns");
  }
  v.expect("table", t.stream_free && t.stream_sync ? "" : "stream_free and stream_sync are needed");
  if (v.failed) return;
  Queue a(bench), b(bench);
  v.expect("stream_new", a.stream && a.stream != b.stream ? "" : "two streams are one");
  bench.begin("stream_sync of an idle stream");
  a.sync();
  bench.begin("stream_sync of the whole device");
  kit::check(t.stream_sync(t.self, bench.device.device_id, nullptr));
  if (t.stream_query) {
    int32_t done = 0;
    kit::check(t.stream_query(t.self, bench.device.device_id, a.stream, &done));
    v.expect("stream_query after stream_sync", done ? "" : "not done");
  }
  if (!t.stream_host_fn) return;
  static std::atomic<int> calls;
  calls = 0;
  kit::check(t.stream_host_fn(
      t.self, bench.device.device_id, a.stream, [](void*) { ++calls; }, nullptr));
  a.sync();
  v.expect("stream_host_fn", calls == 1 ? "" : kit::text("called ", calls.load(), " times"));
}

bool passed_soon(Bench& bench, void* event) {
  const aj_device_vtbl& t = *bench.table;
  int32_t done = 0;
  for (int i = 0; i < 2000 && !done; ++i) {
    if (i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kit::check(t.event_query(t.self, bench.device.device_id, event, &done));
  }
  return done;
}

void events(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.event_new) return v.skip("the device has no events");
  bool whole = t.event_free && t.event_record && t.event_query && t.event_sync;
  v.expect("table", whole ? "" : "event_free, event_record, event_query and event_sync are needed");
  if (!whole || !t.stream_new) return;
  Queue a(bench), b(bench);
  a.record();
  bool passes = passed_soon(bench, a.event);
  v.expect("event_query of an event on an idle stream", passes ? "" : "it never passes");
  if (!passes) return;
  bench.begin("event_sync of an event on an idle stream");
  kit::check(t.event_sync(t.self, bench.device.device_id, a.event));
  int32_t done = 0;
  kit::check(t.event_query(t.self, bench.device.device_id, a.event, &done));
  v.expect("event_query after event_sync", done ? "" : "not done");
  b.record();
  b.sync();
  if (!t.event_elapsed) return;
  double ms = -1;
  kit::check(t.event_elapsed(t.self, bench.device.device_id, a.event, b.event, &ms));
  v.expect("event_elapsed", ms >= 0 && ms < 60'000 ? "" : kit::text(ms, " ms"));
}

struct Hold {
  std::shared_ptr<std::atomic<bool>> open;
  double seconds;
};

void hold(void* arg) {
  std::unique_ptr<Hold> h(static_cast<Hold*>(arg));
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(h->seconds);
  while (!(h->open && *h->open) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// What is known of a stream that is held up.
struct Seen {
  bool stream_done = false, event_done = false, later_ran = false, event_back = false,
       stream_back = false;
};

Seen look(Bench& bench, const Queue& a, const Queue& b, const std::atomic<int>& back,
          const std::atomic<int>& ran) {
  const aj_device_vtbl& t = *bench.table;
  int32_t done = 0;
  Seen s;
  if (t.stream_query) {
    kit::check(t.stream_query(t.self, bench.device.device_id, b.stream, &done));
    s.stream_done = done;
  }
  kit::check(t.event_query(t.self, bench.device.device_id, a.event, &done));
  s.event_done = done;
  s.later_ran = ran != 0;
  s.event_back = back & 1;
  s.stream_back = back & 2;
  return s;
}

// While a stream is held up, nobody may believe that its work, or what waits for it, has passed.
void held_up(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.stream_new || !t.stream_host_fn || !t.event_new || !t.event_sync || !t.stream_wait)
    return v.skip("needs streams, events and stream_host_fn");
  static std::atomic<int> back, ran;
  back = ran = 0;
  Queue a(bench), b(bench);
  auto open = std::make_shared<std::atomic<bool>>(false);
  hold_up(bench, a.stream, 20, open);
  a.record();
  b.wait_for(a);
  int32_t dev = bench.device.device_id;
  kit::check(t.stream_host_fn(
      t.self, dev, b.stream, [](void*) { ++ran; }, nullptr));
  auto wait = [&](int bit, aj_status* (*sync)(void*, int32_t, void*), void* what) {
    return std::thread([&t, dev, bit, sync, what] {
      if (aj_status* s = sync(t.self, dev, what)) kit::core().status_free(s);
      back |= bit;
    });
  };
  std::thread waiters[] = {wait(1, t.event_sync, a.event), wait(2, t.stream_sync, b.stream)};
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  Seen s = look(bench, a, b, back, ran);
  *open = true;
  bench.begin("event_sync and stream_sync of a stream that was held up");
  for (std::thread& w : waiters) w.join();
  v.expect("stream_query of a stream that waits", s.stream_done ? "done too early" : "");
  v.expect("event_query before its stream came to it", s.event_done ? "done too early" : "");
  v.expect("event_sync", s.event_back ? "came back before the event had passed" : "");
  v.expect("stream_sync", s.stream_back ? "came back before the stream's work had passed" : "");
  v.expect("stream_wait", s.later_ran ? "work behind it ran before the event had passed" : "");
  v.expect("after the wait", ran == 1 ? "" : kit::text("a function ran ", ran.load(), " times"));
}

// Long work on one stream; another one waits for its event and reads what came of it.
void ordering(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.stream_new || !t.event_new || !t.stream_wait || (t.flags & AJ_DEV_SYNCHRONOUS))
    return v.skip("there is one order only: the device is synchronous");
  HostTensor zeros =
      from_numbers(float32, {kElements}, std::vector<std::complex<double>>(size_t(kElements)));
  Queue a(bench), b(bench);
  for (int round = 0; round < 3; ++round) {
    std::string where = kit::text("second stream, round ", round);
    bench.begin(where);
    Tensor x = place(zeros, bench.device, Lay::kDense).tensor, y;
    kit::check(kit::core().device_synchronize(bench.device));
    kit::check(kit::core().stream_set(bench.device, a.stream));
    for (int i = 0; i < kRounds; ++i) x = x + 1;
    a.record();
    kit::check(kit::core().stream_set(bench.device, b.stream));
    b.wait_for(a);
    y = x * 2;
    b.sync();
    HostTensor got = fetch(y);
    kit::check(kit::core().stream_set(bench.device, nullptr));
    HostTensor wanted = from_numbers(
        float32, {kElements}, std::vector<std::complex<double>>(size_t(kElements), 2 * kRounds));
    v.expect(where, difference(got, wanted, 1, true));
  }
  kit::check(kit::core().device_synchronize(bench.device));
}

}  // namespace

void add_stream_groups(std::vector<Group>& plan) {
  plan.push_back({"streams", "", "", streams});
  plan.push_back({"events", "", "", events});
  plan.push_back({"held up streams", "", "", held_up});
  plan.push_back({"second-stream order", "", "", ordering});
}

bool hold_up(Bench& bench, void* stream, double seconds, std::shared_ptr<std::atomic<bool>> open) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.stream_host_fn || (t.flags & AJ_DEV_SYNCHRONOUS)) return false;
  auto what = std::make_unique<Hold>(Hold{std::move(open), seconds});
  kit::check(t.stream_host_fn(t.self, bench.device.device_id, stream, hold, what.get()));
  (void)what.release();
  return true;
}

}  // namespace adjoin::cli::conform

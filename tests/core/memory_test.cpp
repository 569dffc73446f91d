// tests/core/memory_test.cpp: blocks never overlap, come back warm, go back when they should;
// whatever threads and forks do.
#include "core/memory/memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "core/base/limit.hpp"
#include "core/memory/cache.hpp"
#include "core/memory/small.hpp"
#include "tests/core/fake_device.hpp"

namespace adjoin::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

struct Held {
  unsigned char* p;
  uint64_t bytes, got;
  unsigned char mark;
};

Held take(Device* d, uint64_t bytes, unsigned char mark) {
  void* p = nullptr;
  uint64_t got = 0;
  aj_status* s = device_alloc(d, bytes, &p, &got);
  EXPECT_EQ(s, nullptr) << take_message(s);
  EXPECT_GE(got, bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
  Held h{static_cast<unsigned char*>(p), bytes, got, mark};
  if (bytes <= 4096)
    std::memset(p, mark, bytes);
  else
    std::memset(p, mark, 64), std::memset(h.p + bytes - 64, mark, 64), h.p[bytes / 2] = mark;
  return h;
}

bool intact(const Held& h) {
  auto same = [&](uint64_t lo, uint64_t hi) {
    return std::all_of(h.p + lo, h.p + hi, [&](unsigned char c) { return c == h.mark; });
  };
  if (h.bytes <= 4096) return same(0, h.bytes);
  return same(0, 64) && same(h.bytes - 64, h.bytes) && h.p[h.bytes / 2] == h.mark;
}

uint64_t random_size(std::mt19937& rng) {
  int bits = int(rng() % 24);
  return (rng() & ((1u << bits) - 1)) + rng() % 3;
}

aj_memory_stats stats_of(Device* d) {
  aj_memory_stats s{};
  s.struct_size = sizeof s;
  EXPECT_EQ(memory_stats(d->id, &s), nullptr);
  return s;
}

void fuzz(Device* d, uint32_t seed, int steps) {
  std::mt19937 rng(seed);
  std::vector<Held> live;
  uint64_t bytes = 0;
  for (int i = 0; i < steps; i++) {
    if (live.size() < 4 || (rng() % 2 && bytes < 400 * MiB && live.size() < 500)) {
      live.push_back(take(d, random_size(rng), static_cast<unsigned char>(rng())));
      bytes += live.back().bytes;
    } else {
      std::swap(live[rng() % live.size()], live.back());
      Held h = live.back();
      live.pop_back();
      bytes -= h.bytes;
      ASSERT_TRUE(intact(h)) << "block of " << h.bytes << " bytes was overwritten";
      device_free(d, h.p, h.got);
    }
  }
  for (Held& h : live) {
    ASSERT_TRUE(intact(h));
    device_free(d, h.p, h.got);
  }
}

TEST(Memory, ClassesCoverTheirSizes) {
  for (uint64_t bytes = 257; bytes <= kMediumMax; bytes += bytes < 5000 ? 1 : 997) {
    int cls = medium_class(bytes);
    ASSERT_LT(cls, kMediumClasses);
    ASSERT_GE(medium_size(cls), bytes);
    ASSERT_TRUE(cls == 0 || medium_size(cls - 1) < bytes);
  }
  for (uint32_t bytes = 0; bytes <= kSmallMax; bytes++)
    ASSERT_GE(kSmallSize[small_class(bytes)], bytes);
}

TEST(Memory, FuzzHost) { fuzz(fake_host().device, 1, 20000); }
TEST(Memory, FuzzAccelerator) { fuzz(fake_accelerator().device, 2, 20000); }

TEST(Memory, NothingIsInUseAfterFreeing) {
  for (Device* d : {fake_host().device, fake_accelerator().device}) {
    uint64_t before = stats_of(d).in_use;
    fuzz(d, 3, 3000);
    EXPECT_EQ(stats_of(d).in_use, before);
    ASSERT_EQ(memory_release(d->id), nullptr);
    EXPECT_EQ(stats_of(d).in_use, before);
  }
}

TEST(Memory, ReleaseGivesEverythingBack) {
  FakeKind& k = fake_accelerator();
  Held a = take(k.device, 3 * MiB, 1), b = take(k.device, 1000, 2);
  EXPECT_GT(k.fake.live, 0u);
  device_free(k.device, a.p, a.got);
  device_free(k.device, b.p, b.got);
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  EXPECT_EQ(k.fake.live, 0u);
  EXPECT_EQ(stats_of(k.device).cached, 0u);
}

TEST(Memory, ThreadsFuzzAtOnce) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; i++)
    threads.emplace_back([i] { fuzz(fake_host().device, 10 + i, 4000); });
  for (uint32_t i = 0; i < 2; i++)
    threads.emplace_back([i] { fuzz(fake_accelerator().device, 20 + i, 2000); });
  for (auto& t : threads) t.join();
}

TEST(Memory, OneThreadAllocatesAnotherFrees) {
  Device* d = fake_host().device;
  uint64_t before = stats_of(d).in_use, reserved = 0;
  std::mutex lock;
  std::deque<Held> queue;
  std::atomic<bool> end{false};
  std::thread consumer([&] {
    for (bool stop = false; !stop;) {
      stop = end;
      std::deque<Held> got;
      {
        std::lock_guard held(lock);
        got.swap(queue);
      }
      for (Held& h : got) {
        ASSERT_TRUE(intact(h));
        device_free(d, h.p, h.got);
      }
      if (got.empty())
        std::this_thread::yield();
      else
        stop = false;
    }
  });
  std::mt19937 rng(5);
  for (int i = 0; i < 200'000; i++) {
    Held h = take(d, rng() % 8 ? rng() % 1024 : rng() % 20000, static_cast<unsigned char>(i));
    for (;;) {
      std::lock_guard held(lock);
      if (queue.size() > 2000) continue;
      queue.push_back(h);
      break;
    }
    if (i == 50'000) reserved = small_reserved();
  }
  end = true;
  consumer.join();
  EXPECT_EQ(stats_of(d).in_use, before);
  EXPECT_LE(small_reserved(), reserved + 8 * MiB)
      << "blocks did not come back from the thread that frees";
}

TEST(Memory, ThreadsThatEndLeaveNothingBehind) {
  Device* d = fake_host().device;
  auto life = [&] {
    std::vector<Held> live;
    for (uint64_t bytes : {64, 500, 1000, 3000, 70000, 900000})
      for (int i = 0; i < 20; i++) live.push_back(take(d, bytes, 7));
    for (Held& h : live) device_free(d, h.p, h.got);
  };
  std::thread(life).join();
  uint64_t small = small_reserved(), used = stats_of(d).in_use, cached = stats_of(d).cached;
  for (int i = 0; i < 50; i++) std::thread(life).join();
  EXPECT_LE(small_reserved(), small);
  EXPECT_EQ(stats_of(d).in_use, used);
  EXPECT_LE(stats_of(d).cached, cached);
}

TEST(Memory, ALoopReusesWarmPages) {
  Device* d = fake_host().device;
  uint64_t bytes = 40'000'000;
  for (int i = 0; i < 3; i++) {
    Held h = take(d, bytes, 1);
    std::memset(h.p, 1, bytes);
    device_free(d, h.p, h.got);
  }
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  int idles = fake_host().fake.idles;
  for (int i = 0; i < 20; i++) {
    Held h = take(d, bytes, 1);
    std::memset(h.p, 1, bytes);
    device_free(d, h.p, h.got);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 100);
  EXPECT_EQ(fake_host().fake.idles, idles);
}

TEST(Memory, IdleBlocksLoseTheirPagesAtTheNextAllocation) {
  FakeKind& k = fake_host();
  Held a = take(k.device, 100 * MiB, 1), pin = take(k.device, 3 * MiB, 1);
  device_free(k.device, a.p, a.got);
  uint64_t idle = k.fake.idle_bytes, freed = uint64_t(k.fake.frees);
  memory_ticks_ahead += kIdleTicks + kTicksPerSecond;
  Held b = take(k.device, 2 * MiB, 1);
  EXPECT_GE(k.fake.idle_bytes - idle + (k.fake.frees - freed) * 64 * MiB, 90 * MiB);
  device_free(k.device, b.p, b.got);
  device_free(k.device, pin.p, pin.got);
}

TEST(Memory, WhatWasInUseStaysWarmForTenSeconds) {
  FakeKind& k = fake_host();
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  memory_ticks_ahead += 2 * kIdleTicks;
  std::vector<Held> live;
  for (int i = 0; i < 20; i++) live.push_back(take(k.device, 50 * MiB, 1));  // a peak of 1000 MiB
  for (Held& h : live) device_free(k.device, h.p, h.got);
  Held b = take(k.device, 2 * MiB, 1);
  EXPECT_LE(stats_of(k.device).cached, 1010 * MiB);
  EXPECT_GE(stats_of(k.device).cached, 900 * MiB) << "the next step of a training takes it again";
  memory_ticks_ahead += 2 * kIdleTicks;
  Held c = take(k.device, 2 * MiB, 1);
  EXPECT_LE(stats_of(k.device).cached, 16 * MiB);
  device_free(k.device, b.p, b.got);
  device_free(k.device, c.p, c.got);
}

TEST(Memory, EmptySlabsGoIdleToo) {
  FakeKind& k = fake_host();
  std::vector<Held> live;
  for (int i = 0; i < 2000; i++) live.push_back(take(k.device, 90'000, 1));
  for (Held& h : live) device_free(k.device, h.p, h.got);
  uint64_t cached = stats_of(k.device).cached;
  for (int i = 0; i < 3; i++) {
    memory_ticks_ahead += kIdleTicks + kTicksPerSecond;
    Held a = take(k.device, 2 * MiB, 1);
    device_free(k.device, a.p, a.got);
  }
  if (kSmallLists) {
    EXPECT_LE(stats_of(k.device).cached + 150 * MiB, cached);
  }
}

TEST(Memory, PeakAndItsReset) {
  Device* d = fake_host().device;
  uint64_t before = stats_of(d).in_use;
  Held a = take(d, 10 * MiB, 1);
  device_free(d, a.p, a.got);
  EXPECT_GE(stats_of(d).peak_in_use, before + 10 * MiB);
  ASSERT_EQ(memory_reset_peak(d->id), nullptr);
  EXPECT_LT(stats_of(d).peak_in_use, before + 10 * MiB);
}

TEST(Memory, ALimitIsToldWithTheLargestOwners) {
  Device* d = fake_host().device;
  std::vector<Held> live;
  for (int i = 0; i < 3; i++) live.push_back(take(d, 12 * MiB, 1));
  ASSERT_EQ(memory_limit(d->id, stats_of(d).in_use + 20 * MiB), nullptr);
  void* p;
  uint64_t got;
  aj_status* s = device_alloc(d, 100 * MiB, &p, &got);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->code, AJ_OUT_OF_MEMORY);
  std::string m = take_message(s);
  EXPECT_NE(m.find("out of memory: asked for 104.9 MB; in use "), std::string::npos) << m;
  EXPECT_NE(m.find("limit "), std::string::npos) << m;
  EXPECT_NE(m.find("outside of ops: 3 x 12.6 MB"), std::string::npos) << m;
  EXPECT_EQ(m.find('\n'), std::string::npos);
  Held fits = take(d, 10 * MiB, 1);
  device_free(d, fits.p, fits.got);
  ASSERT_EQ(memory_limit(d->id, 0), nullptr);
  for (Held& h : live) device_free(d, h.p, h.got);
}

TEST(Memory, AnEmptyDeviceIsTrimmedAndAskedAgain) {
  FakeKind& k = fake_accelerator();
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  k.fake.capacity = k.fake.live + 40 * MiB;
  Held a = take(k.device, 30 * MiB, 1);
  device_free(k.device, a.p, a.got);
  Held b = take(k.device, 36 * MiB, 1);  // fits only when the cached 30 MiB go
  void* p;
  uint64_t got;
  aj_status* s = device_alloc(k.device, 20 * MiB, &p, &got);
  ASSERT_NE(s, nullptr);
  ASSERT_NE(s->cause, nullptr) << "the device's own words are kept";
  free_status(s);
  device_free(k.device, b.p, b.got);
  k.fake.capacity = UINT64_MAX;
}

TEST(Memory, AForeignStreamHoldsABlockBack) {
  FakeKind& k = fake_accelerator();
  int one = 0;
  k.fake.events_pass = false;
  for (uint64_t bytes : {uint64_t(700), 5 * MiB}) {
    Held a = take(k.device, bytes, 1);
    memory_use(k.device, a.p, &one);
    memory_use(k.device, a.p, nullptr);  // its own stream
    device_free(k.device, a.p, a.got);
    EXPECT_EQ(k.fake.events.size(), 1u);
    Held b = take(k.device, bytes, 2);
    EXPECT_NE(a.p, b.p) << "handed out while the foreign stream may still read it";
    k.fake.pass_all();
    device_free(k.device, b.p, b.got);
    Held poll = take(k.device, 100, 3);
    EXPECT_TRUE(k.fake.events.empty());
    device_free(k.device, poll.p, poll.got);
  }
  k.fake.events_pass = true;
}

// What x.memory says, against what the test holds.
struct Told {
  aj_memory_counts counts;
  std::vector<aj_memory_piece> pieces;
};
Told told_of(Device* d) {
  Told t{};
  t.counts.struct_size = sizeof t.counts;
  EXPECT_EQ(memory_table.counts(d->id, &t.counts), nullptr);
  EXPECT_EQ(memory_table.pieces(d->id, &t.pieces,
                                [](void* self, const aj_memory_piece* p) {
                                  static_cast<std::vector<aj_memory_piece>*>(self)->push_back(*p);
                                }),
            nullptr);
  return t;
}

void expect_told(const Told& t, const std::vector<Held>& live, const Told& before) {
  uint64_t bytes = 0, small = 0, used = 0, all = 0;
  for (const Held& h : live) bytes += h.got, small += h.got <= kMediumMax;
  const aj_memory_counts &c = t.counts, &b = before.counts;
  EXPECT_EQ(c.blocks[AJ_TALLY_NOW] - b.blocks[AJ_TALLY_NOW], live.size());
  EXPECT_EQ(c.bytes[AJ_TALLY_NOW] - b.bytes[AJ_TALLY_NOW], bytes);
  EXPECT_EQ(c.small_blocks[AJ_TALLY_NOW] - b.small_blocks[AJ_TALLY_NOW], small);
  EXPECT_EQ(c.small_blocks[AJ_TALLY_NOW] + c.large_blocks[AJ_TALLY_NOW], c.blocks[AJ_TALLY_NOW]);
  EXPECT_EQ(c.small_bytes[AJ_TALLY_ALL] + c.large_bytes[AJ_TALLY_ALL], c.bytes[AJ_TALLY_ALL]);
  EXPECT_GE(c.bytes[AJ_TALLY_PEAK], c.bytes[AJ_TALLY_NOW]);
  std::map<void*, uint64_t> at;
  char *end = nullptr, *segment_end = nullptr;
  for (const aj_memory_piece& p : t.pieces) {
    auto* begin = static_cast<char*>(p.data);
    if (p.state == AJ_PIECE_SEGMENT) {
      EXPECT_EQ(end, segment_end) << "the pieces fill their segment";
      end = begin, segment_end = begin + p.bytes, all += p.bytes;
      continue;
    }
    ASSERT_EQ(begin, end) << "no gap, no overlap";
    end += p.bytes;
    if (p.state == AJ_PIECE_USED) at[begin] = p.bytes, used += p.bytes;
  }
  EXPECT_EQ(end, segment_end);
  EXPECT_EQ(used, c.bytes[AJ_TALLY_NOW]);
  EXPECT_EQ(all, c.segment_bytes[AJ_TALLY_NOW]);
  for (const Held& h : live) EXPECT_EQ(at[h.p], h.got);
}

TEST(Memory, CountsAndPiecesAreWhatIsHeld) {
  FakeKind& k = fake_accelerator();
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  Told before = told_of(k.device);
  std::mt19937 rng(5);
  std::vector<Held> live;
  for (int i = 0; i < 2000; i++) {
    if (live.size() < 4 || (rng() % 2 && live.size() < 100)) {
      live.push_back(take(k.device, random_size(rng), 1));
    } else {
      std::swap(live[rng() % live.size()], live.back());
      device_free(k.device, live.back().p, live.back().got);
      live.pop_back();
    }
    if (i % 100 == 0) expect_told(told_of(k.device), live, before);
  }
  Told most = told_of(k.device);
  for (const Held& h : live) device_free(k.device, h.p, h.got);
  live.clear();
  Told after = told_of(k.device);
  expect_told(after, live, before);
  EXPECT_GE(after.counts.bytes[AJ_TALLY_PEAK], most.counts.bytes[AJ_TALLY_NOW]);
  ASSERT_EQ(memory_reset_peak(k.device->id), nullptr);
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  Told last = told_of(k.device);
  EXPECT_EQ(last.counts.bytes[AJ_TALLY_PEAK], last.counts.bytes[AJ_TALLY_NOW]);
  EXPECT_LE(last.counts.segments[AJ_TALLY_NOW], after.counts.segments[AJ_TALLY_NOW]);
  aj_memory_counts none{};
  none.struct_size = sizeof none;
  aj_status* s = memory_table.counts(fake_host().device->id, &none);
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->code, AJ_UNIMPLEMENTED);
  free_status(s);
}

TEST(Memory, WhatWaitsForAStreamIsCounted) {
  FakeKind& k = fake_accelerator();
  int one = 0;
  Told before = told_of(k.device);
  k.fake.events_pass = false;
  Held a = take(k.device, 5 * MiB, 1);
  memory_use(k.device, a.p, &one);
  device_free(k.device, a.p, a.got);
  Told waits = told_of(k.device);
  EXPECT_EQ(waits.counts.blocks[AJ_TALLY_NOW], before.counts.blocks[AJ_TALLY_NOW]);
  EXPECT_EQ(waits.counts.waiting_blocks, 1u);
  EXPECT_EQ(waits.counts.waiting_bytes, a.got);
  EXPECT_EQ(std::count_if(waits.pieces.begin(), waits.pieces.end(),
                          [&](auto& p) { return p.data == a.p && p.state == AJ_PIECE_WAITING; }),
            1);
  k.fake.pass_all();
  EXPECT_EQ(told_of(k.device).counts.waiting_blocks, 0u);
  k.fake.events_pass = true;
}

TEST(Memory, RefusalsAreCounted) {
  FakeKind& k = fake_accelerator();
  ASSERT_EQ(memory_release(k.device->id), nullptr);
  aj_memory_counts before = told_of(k.device).counts;
  k.fake.capacity = k.fake.live + 10 * MiB;
  void* p;
  uint64_t got;
  aj_status* s = device_alloc(k.device, 20 * MiB, &p, &got);
  ASSERT_NE(s, nullptr);
  free_status(s);
  k.fake.capacity = UINT64_MAX;
  aj_memory_counts after = told_of(k.device).counts;
  EXPECT_EQ(after.refusals - before.refusals, 1u);
  EXPECT_EQ(after.retries - before.retries, 2u);
}

TEST(Memory, StreamsDoNotShareFreeBlocks) {
  FakeKind& k = fake_accelerator();
  int one = 0;
  Held a = take(k.device, 3 * MiB, 1);
  device_free(k.device, a.p, a.got);
  ASSERT_EQ(stream_set(k.device->id, &one), nullptr);
  Held b = take(k.device, 3 * MiB, 1);
  EXPECT_NE(a.p, b.p);
  device_free(k.device, b.p, b.got);
  ASSERT_EQ(stream_set(k.device->id, nullptr), nullptr);
  Held c = take(k.device, 3 * MiB, 1);
  EXPECT_EQ(a.p, c.p);
  device_free(k.device, c.p, c.got);
}

TEST(Memory, AForkWhileOthersAllocate) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer has no threads after a fork";
  // gcc 12's allocator for it does not free its locks in a child: other threads may hold them when
  // the fork comes.
  if (!kSmallLists) GTEST_SKIP() << "AddressSanitizer's allocator may hang after such a fork";
  Device* d = fake_host().device;
  std::atomic<bool> end{false};
  std::vector<std::thread> others;
  for (uint32_t i = 0; i < 3; i++)
    others.emplace_back([&, i] {
      for (uint32_t n = 0; !end; n++) fuzz(d, 100 * i + n, 300);
    });
  int forks = fake_host().fake.forks;
  for (int i = 0; i < 20; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(60);
      if (fake_host().fake.forks != forks + 1) _exit(3);
      fuzz(d, 77, 2000);
      std::thread([&] { fuzz(d, 78, 500); }).join();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  end = true;
  for (auto& t : others) t.join();
}

TEST(Memory, AChildAdoptsTheListsOfTheOthers) {
  if (!kSmallLists) GTEST_SKIP() << "AddressSanitizer builds have no lists";
  Device* d = fake_host().device;
  std::atomic<int> stage{0};
  std::thread other([&] {
    std::vector<Held> live;
    for (int i = 0; i < 900; i++) live.push_back(take(d, 1000, 1));
    for (Held& h : live) device_free(d, h.p, h.got);
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  pid_t pid = fork();
  if (pid == 0) {
    uint64_t reserved = small_reserved();
    for (int i = 0; i < 900; i++) take(d, 1000, 1);
    _exit(small_reserved() == reserved ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  stage = 2;
  other.join();
  EXPECT_EQ(status, 0);
}

TEST(Memory, TrimGivesWholeSpansBack) {
  if (!kSmallLists) GTEST_SKIP() << "AddressSanitizer builds have no lists";
  small_trim();
  uint64_t before = small_reserved();
  std::vector<void*> blocks;
  for (int i = 0; i < 100'000; i++) blocks.push_back(small_alloc(small_class(256)));
  EXPECT_GE(small_reserved(), before + 24 * MiB);
  for (void* p : blocks) small_free(small_class(256), p);
  small_trim();
  EXPECT_LE(small_reserved(), before + 2 * MiB);
}

TEST(Memory, LimitsOfControlGroups) {
  namespace fs = std::filesystem;
  fs::path root = fs::temp_directory_path() / ("adjoin_cgroup_" + std::to_string(getpid()));
  auto write = [&](const char* file, const char* text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << "\n";
  };
  std::string v2 = root / "v2", v1 = root / "v1";
  write("v2", "0::/a/b");
  write("v1", "9:name=systemd:/x\n4:memory:/x/y\n1:cpu,cpuacct:/x");
  write("a/memory.max", "1000000");
  write("a/b/memory.max", "max");
  write("a/b/cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_memory_limit(root.c_str(), v2.c_str()), 1000000u);
  EXPECT_EQ(cgroup_cpu_limit(root.c_str(), v2.c_str()), 2);
  write("a/b/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_cpu_limit(root.c_str(), v2.c_str()), 0);
  write("memory/x/memory.limit_in_bytes", "777");
  write("memory/x/y/memory.limit_in_bytes", "9223372036854771712");
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "50000");
  write("cpu,cpuacct/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_memory_limit(root.c_str(), v1.c_str()), 777u);
  EXPECT_EQ(cgroup_cpu_limit(root.c_str(), v1.c_str()), 1);
  fs::remove_all(root);
  EXPECT_EQ(parse_bytes("512MB"), 512'000'000u);
  EXPECT_EQ(parse_bytes("2GiB"), 2u * 1024 * MiB);
  EXPECT_EQ(parse_bytes("1.5k"), 1500u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("lots"), 0u);
  EXPECT_EQ(parse_bytes("-3"), 0u);
}

}  // namespace
}  // namespace adjoin::test

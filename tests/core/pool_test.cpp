// tests/core/pool_test.cpp: every chunk exactly once, the same chunks for any number of threads,
// errors, nesting, forks.
#include "core/thread/pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/base/tls.hpp"
#include "tests/core/fake_device.hpp"

namespace adjoin::test {
namespace {

template <class F>
aj_status* each(int64_t n, int64_t grain, F f) {
  auto body = [](void* self, int64_t lo, int64_t hi) -> aj_status* {
    return (*static_cast<F*>(self))(lo, hi);
  };
  return parallel_for(n, grain, body, &f);
}

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { EXPECT_EQ(set_num_threads(n), nullptr); }
  ~Threads() { EXPECT_EQ(set_num_threads(before), nullptr); }
};

TEST(Pool, ChunksDoNotDependOnThreads) {
  using Chunks = std::set<std::pair<int64_t, int64_t>>;
  for (auto [n, grain] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 3}, {64, 64}, {65, 64}, {10000, 7}, {5, 0}}) {
    Chunks first;
    for (int threads : {1, 2, 3, 8}) {
      Threads set(threads);
      std::mutex lock;
      Chunks seen;
      ASSERT_EQ(each(n, grain,
                     [&](int64_t lo, int64_t hi) -> aj_status* {
                       std::lock_guard held(lock);
                       EXPECT_TRUE(seen.emplace(lo, hi).second);
                       return nullptr;
                     }),
                nullptr);
      if (threads == 1) first = seen;
      ASSERT_EQ(seen, first);
    }
    int64_t at = 0;
    for (auto [lo, hi] : first) {
      ASSERT_EQ(lo, at);
      at = hi;
    }
    ASSERT_EQ(at, n);
  }
}

TEST(Pool, NothingToDo) {
  EXPECT_EQ(each(0, 10, [](int64_t, int64_t) { return fail(AJ_INTERNAL, "was called"); }), nullptr);
  EXPECT_EQ(each(-5, 10, [](int64_t, int64_t) { return fail(AJ_INTERNAL, "was called"); }),
            nullptr);
}

TEST(Pool, ManyShortRegions) {
  Threads set(4);
  for (int i = 0; i < 20000; i++) {
    std::atomic<int64_t> sum{0};
    ASSERT_EQ(each(16, 1,
                   [&](int64_t lo, int64_t) -> aj_status* {
                     sum += lo;
                     return nullptr;
                   }),
              nullptr);
    ASSERT_EQ(sum, 120);
  }
}

TEST(Pool, WakesSleepingWorkers) {
  Threads set(4);
  for (int i = 0; i < 20; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::mutex lock;
    std::set<int> indices;
    for (int tries = 0; tries < 50 && indices.size() < 2; tries++)
      ASSERT_EQ(each(64, 1,
                     [&](int64_t, int64_t) -> aj_status* {
                       std::this_thread::sleep_for(std::chrono::microseconds(100));
                       std::lock_guard held(lock);
                       indices.insert(tls.thread_index);
                       return nullptr;
                     }),
                nullptr);
    EXPECT_GE(indices.size(), 2u) << "no worker took part";
    for (int index : indices) EXPECT_TRUE(index >= 0 && index < 4);
  }
}

TEST(Pool, WorkersKeepOffTheProcessorOfTheirOpener) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "one processor";
  Threads two(2);
  EXPECT_EQ(each(2, 1, [](int64_t, int64_t) -> aj_status* { return nullptr; }),
            nullptr);  // starts the worker, with all processors its own
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE && seen < 2; cpu++) {
    if (!CPU_ISSET(cpu, &mine)) continue;
    seen++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    auto opener = std::this_thread::get_id();
    std::atomic<bool> shared{false}, seen_worker{false};
    for (int again = 0; again < 1000 && !seen_worker; again++)
      EXPECT_EQ(each(2, 1,
                     [&](int64_t, int64_t) -> aj_status* {
                       usleep(1000);
                       if (std::this_thread::get_id() == opener) return nullptr;
                       seen_worker = true;
                       if (sched_getcpu() == cpu) shared = true;
                       return nullptr;
                     }),
                nullptr);
    EXPECT_TRUE(seen_worker);
    EXPECT_FALSE(shared) << "processor " << cpu;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof mine, &mine), 0);
}

TEST(Pool, TheFirstErrorWhateverTheThreads) {
  for (int threads : {1, 4}) {
    Threads set(threads);
    for (int i = 0; i < 200; i++) {
      std::atomic<int> ran{0};
      aj_status* s = each(1000, 1, [&](int64_t lo, int64_t) -> aj_status* {
        ran++;
        return lo >= 3 ? fail(AJ_INVALID_ARGUMENT, "chunk ", lo) : nullptr;
      });
      ASSERT_NE(s, nullptr);
      EXPECT_EQ(take_message(s), "chunk 3");
      EXPECT_LT(ran, 100) << "an error stops the claiming";
    }
  }
}

TEST(Pool, NestedCallsRunInline) {
  Threads set(4);
  std::atomic<int64_t> sum{0};
  ASSERT_EQ(each(8, 1,
                 [&](int64_t, int64_t) {
                   auto me = std::this_thread::get_id();
                   int index = tls.thread_index;
                   return each(100, 10, [&, me, index](int64_t lo, int64_t hi) -> aj_status* {
                     EXPECT_EQ(std::this_thread::get_id(), me);
                     EXPECT_EQ(tls.thread_index, index);
                     sum += hi - lo;
                     return nullptr;
                   });
                 }),
            nullptr);
  EXPECT_EQ(sum, 800);
  EXPECT_FALSE(tls.in_parallel);
}

TEST(Pool, WorkersSeeTheCallersModes) {
  Threads set(4);
  tls.grad_off = 1;
  tls.exclude = 1ull << 44;
  std::atomic<int> wrong{0};
  ASSERT_EQ(each(256, 1,
                 [&](int64_t, int64_t) -> aj_status* {
                   if (!tls.grad_off || tls.exclude != 1ull << 44) wrong++;
                   std::this_thread::sleep_for(std::chrono::microseconds(20));
                   return nullptr;
                 }),
            nullptr);
  tls.grad_off = 0;
  tls.exclude = 0;
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, TwelveRegionsAtOnce) {  // more than there is room for
  Threads set(4);
  std::vector<std::thread> openers;
  std::atomic<int64_t> wrong{0};
  for (int t = 0; t < 12; t++)
    openers.emplace_back([&, t] {
      for (int i = 0; i < 1000; i++) {
        std::atomic<int64_t> sum{0};
        aj_status* s = each(50, 1, [&](int64_t lo, int64_t) -> aj_status* {
          sum += lo + t;
          return lo == 49 && i % 10 == 9 ? fail(AJ_ABORTED, "stop") : nullptr;
        });
        if (i % 10 == 9 ? take_message(s) != "stop" : s || sum != 1225 + 50 * t) wrong++;
      }
    });
  for (auto& t : openers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, NumberOfThreads) {
  for (int n : {0, -1, 100000})
    EXPECT_NE(take_message(set_num_threads(n)).find("set_num_threads"), std::string::npos);
  {
    Threads set(3);
    EXPECT_EQ(num_threads(), 3);
    Threads less(2);
    std::atomic<int> beyond{0};
    for (int i = 0; i < 100; i++)
      ASSERT_EQ(each(64, 1,
                     [&](int64_t, int64_t) -> aj_status* {
                       if (tls.thread_index >= 2) beyond++;
                       return nullptr;
                     }),
                nullptr);
    EXPECT_EQ(beyond, 0);
  }
  setenv("ADJOIN_NUM_THREADS", "5", 1);
  EXPECT_EQ(default_num_threads(), 5);
  setenv("ADJOIN_NUM_THREADS", "many", 1);
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(default_num_threads(), 3);
  unsetenv("ADJOIN_NUM_THREADS");
  unsetenv("OMP_NUM_THREADS");
  EXPECT_GE(default_num_threads(), 1);
}

TEST(Pool, AForkedChildHasAPoolOfItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer has no threads after a fork";
  Threads set(4);
  std::atomic<bool> end{false};
  std::thread busy([&] {
    while (!end)
      EXPECT_EQ(each(64, 1, [](int64_t, int64_t) -> aj_status* { return nullptr; }), nullptr);
  });
  for (int i = 0; i < 30; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(30);
      for (int r = 0; r < 50; r++) {
        std::atomic<int64_t> sum{0};
        aj_status* s = each(100, 1, [&](int64_t lo, int64_t) -> aj_status* {
          sum += lo;
          return nullptr;
        });
        if (s || sum != 4950) _exit(1);
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
  }
  end = true;
  busy.join();
}

}  // namespace
}  // namespace adjoin::test

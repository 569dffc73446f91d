// tests/core/profile_test.cpp: events while listeners come and go beside threads that call, take
// memory and make labels.
#include <adjoin/abi/capi.h>
#include <adjoin/abi/profile.h>
#include <gtest/gtest.h>

#include <adjoin/kit/ops.hpp>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace adjoin {
namespace {

struct Heard {
  std::atomic<int64_t> calls{0}, kernels{0}, labels{0}, bytes{0}, drops{0};
};

void hear(void* self, const aj_event* e) {
  auto* h = static_cast<Heard*>(self);
  EXPECT_EQ(h->drops.load(), 0);
  h->calls += e->kind == AJ_EVENT_CALL;
  h->kernels += e->kind == AJ_EVENT_KERNEL;
  h->labels += e->kind == AJ_EVENT_LABEL;
  h->bytes += e->kind == AJ_EVENT_MEMORY ? e->bytes : 0;
}

const aj_core& core() { return *static_cast<const aj_core*>(aj_get_interface("aj.core", 1)); }
const aj_profile& profile() {
  return *static_cast<const aj_profile*>(aj_get_interface("x.profile", 1));
}

aj_object* listen(Heard* h, uint64_t kinds) {
  aj_listener l = {sizeof l, 0,    kinds,
                   h,        hear, [](void* self) { static_cast<Heard*>(self)->drops++; }};
  aj_object* out = nullptr;
  EXPECT_EQ(profile().listen(&l, &out), nullptr);
  return out;
}

uint64_t in_use(DLDevice d) {
  aj_memory_stats stats = {};
  stats.struct_size = sizeof stats;
  EXPECT_EQ(core().memory_stats(d, &stats), nullptr);
  return stats.in_use;
}

TEST(Profile, ListenersComeAndGoBesideCalls) {
  kit::bind(aj_get_interface);
  DLDevice home = device("reference");
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] {
      Tensor x = full({1000}, 2.0, float32, home);
      while (!over) {
        uint64_t label = 0;
        EXPECT_EQ(profile().label_begin(AJ_STR_LIT("round"), &label), nullptr);
        EXPECT_EQ((x + x).numel(), 1000);
        EXPECT_EQ(profile().label_end(label), nullptr);
      }
    });
  for (int i = 0; i < 200; i++) {
    auto* h = new Heard;
    aj_object* o = listen(h, AJ_EVENT_CALL | AJ_EVENT_KERNEL | AJ_EVENT_MEMORY | AJ_EVENT_LABEL);
    while (!h->calls || !h->kernels || !h->labels) std::this_thread::yield();
    core().release(o);
    while (!h->drops) std::this_thread::yield();
    EXPECT_EQ(h->drops, 1);
    delete h;
  }
  over = true;
  for (std::thread& t : threads) t.join();
}

TEST(Profile, BytesAddUpOverThreads) {
  kit::bind(aj_get_interface);
  DLDevice home = device("reference");
  Heard h;
  std::vector<Tensor> kept;
  std::mutex lock;
  empty({10}, float32, home);
  uint64_t before = in_use(home);
  aj_object* o = listen(&h, AJ_EVENT_MEMORY);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int64_t n = 1; n < 60; n++) {
        Tensor t = empty({n * 3000}, float32, home);
        std::lock_guard guard(lock);
        if (n % 3 == i % 3)
          kept.push_back(t);
        else if (!kept.empty() && n % 2)
          kept.pop_back();
      }
    });
  for (std::thread& t : threads) t.join();
  kept.push_back(empty({5000}, float32, home));
  EXPECT_EQ(int64_t(in_use(home) - before), h.bytes);
  EXPECT_GT(h.bytes, 0);
  kept.clear();
  EXPECT_EQ(h.bytes, 0);
  core().release(o);
  EXPECT_EQ(h.drops, 1);
}

}  // namespace
}  // namespace adjoin

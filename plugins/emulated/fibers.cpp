// plugins/emulated/fibers.cpp: the scheduler of a block's fibres: each runs until it waits or ends.
#include "fibers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define AJ_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define AJ_ASAN_FIBERS 1
#endif
#endif
#if defined(AJ_ASAN_FIBERS)
constexpr bool kAsan = true;
#else
constexpr bool kAsan = false;
#endif

namespace adjoin::emulated {

Dim3 thread_index, block_index, block_size, grid_size;

namespace {

namespace context = boost::context::detail;
constexpr size_t kStack = kAsan ? 256 << 10 : 64 << 10;

enum class State { ready, in_warp, at_barrier, done };

struct Lane {
  Dim3 thread;
  unsigned number;
  State state;
  uint64_t phase;  // how many exchanges it has begun
  context::fcontext_t at;
  char* stack;
  alignas(16) unsigned char shown[2][kExchange];
};

// One at a time, so this is a plain object.
struct Block {
  std::vector<Lane> lanes;
  std::vector<unsigned> order;
  std::vector<char*> stacks;  // free ones
  Lane* current = nullptr;
  context::fcontext_t scheduler = nullptr;
  const void* scheduler_bottom = nullptr;
  size_t scheduler_size = 0;
  void* scheduler_fake = nullptr;
  void (*body)(const void*) = nullptr;
  const void* argument = nullptr;
  std::string raised;
  unsigned warp = 32;
  uint64_t seed = 0;
};
// It has no end: a stream's thread may be in a kernel while the process ends.
union Endless {
  Block block;
  Endless() : block() {}
  ~Endless() {}
};
Endless endless;
Block& block = endless.block;
std::mutex running;

char* take_stack() {
  if (!block.stacks.empty()) {
    char* s = block.stacks.back();
    block.stacks.pop_back();
    return s;
  }
  void* p = mmap(nullptr, kStack + 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  mprotect(p, 4096, PROT_NONE);  // running over the end is a fault and not another fibre's data
  return static_cast<char*>(p) + 4096;
}

// Around every switch: AddressSanitizer wants to know which stack is being left and which entered.
void leaving([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
             [[maybe_unused]] size_t size) {
#if defined(AJ_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}
void entered([[maybe_unused]] void* fake, [[maybe_unused]] bool from_scheduler) {
#if defined(AJ_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(fake, from_scheduler ? &block.scheduler_bottom : nullptr,
                                  from_scheduler ? &block.scheduler_size : nullptr);
#endif
}

void enter(context::transfer_t from) noexcept {
  entered(nullptr, true);
  block.scheduler = from.fctx;
  try {
    block.body(block.argument);
  } catch (const std::exception& e) {  // no GPU could; a function of the host has crept in
    if (block.raised.empty()) block.raised = e.what();
  }
  block.current->state = State::done;
  leaving(nullptr, block.scheduler_bottom, block.scheduler_size);
  context::jump_fcontext(block.scheduler, nullptr);
}

void suspend(State state) {
  Lane& me = *block.current;
  me.state = state;
  void* fake = nullptr;
  leaving(&fake, block.scheduler_bottom, block.scheduler_size);
  context::transfer_t back = context::jump_fcontext(block.scheduler, nullptr);
  entered(fake, true);
  block.scheduler = back.fctx;
}

bool resume(Lane& lane) {
  if (!lane.stack) {
    if (!(lane.stack = take_stack())) return false;
    lane.at = context::make_fcontext(lane.stack + kStack, kStack, enter);
  }
  block.current = &lane;
  thread_index = lane.thread;
  leaving(&block.scheduler_fake, lane.stack, kStack);
  context::transfer_t back = context::jump_fcontext(lane.at, nullptr);
  entered(block.scheduler_fake, false);
  lane.at = back.fctx;
  if (lane.state == State::done) {
    block.stacks.push_back(lane.stack);
    lane.stack = nullptr;
  }
  return true;
}

// Lanes [lo, hi) that all wait for each other may go on. True if there were any.
bool release(unsigned lo, unsigned hi, State waiting) {
  uint64_t phase = block.lanes[lo].phase;
  for (unsigned i = lo; i < hi; ++i)
    if (block.lanes[i].state != waiting ||
        (waiting == State::in_warp && block.lanes[i].phase != phase))
      return false;
  for (unsigned i = lo; i < hi; ++i) block.lanes[i].state = State::ready;
  return true;
}

std::string stuck() {
  auto in = [](State s) {
    return std::count_if(block.lanes.begin(), block.lanes.end(),
                         [&](const Lane& l) { return l.state == s; });
  };
  auto waits = std::find_if(block.lanes.begin(), block.lanes.end(),
                            [](const Lane& l) { return l.state != State::done; });
  std::string what = waits->state == State::at_barrier ? "a barrier" : "an exchange of its warp";
  std::string text = "thread " + std::to_string(waits->number) + " of block " +
                     std::to_string(block_index.x) + " waits at " + what +
                     " that not all threads reach: of " + std::to_string(block.lanes.size()) +
                     " threads " + std::to_string(in(State::at_barrier)) + " are at a barrier, " +
                     std::to_string(in(State::in_warp)) + " in an exchange and " +
                     std::to_string(in(State::done)) + " have ended";
  for (Lane& l : block.lanes)
    if (l.stack) block.stacks.push_back(l.stack), l.stack = nullptr;
  return text;
}

std::string run_block() {
  auto n = unsigned(block.lanes.size());
  for (unsigned i = 0; i < n; ++i) {
    Lane& l = block.lanes[i];
    l.number = i;
    l.thread = {i % block_size.x, i / block_size.x % block_size.y, i / block_size.x / block_size.y};
    l.state = State::ready;
    l.phase = 0;
    l.stack = nullptr;
  }
  for (;;) {
    bool moved = false, left = false;
    if (block.seed) {
      for (unsigned i = n; i > 1; --i) {
        block.seed = block.seed * 6364136223846793005u + 1442695040888963407u;
        std::swap(block.order[i - 1], block.order[(block.seed >> 33) % i]);
      }
    }
    for (unsigned i : block.order) {
      if (block.lanes[i].state == State::ready) {
        if (!resume(block.lanes[i])) return "there is no memory for the stacks of its threads";
        moved = true;
      }
      left |= block.lanes[i].state != State::done;
    }
    if (!left) return {};
    for (unsigned w = 0; w < n; w += block.warp)
      moved |= release(w, std::min(n, w + block.warp), State::in_warp);
    moved |= release(0, n, State::at_barrier);
    if (!moved) return stuck();
  }
}

}  // namespace

void barrier() { suspend(State::at_barrier); }
unsigned warp_size() { return block.warp; }
unsigned lane() { return block.current->number % block.warp; }

const void* exchange(const void* mine, size_t bytes, unsigned from) {
  Lane& me = *block.current;
  uint64_t turn = me.phase++ & 1;  // the other half is still being read by slower lanes
  std::memcpy(me.shown[turn], mine, bytes);
  suspend(State::in_warp);
  unsigned other = me.number / block.warp * block.warp + from;
  bool there = from < block.warp && other < block.lanes.size();
  return block.lanes[there ? other : me.number].shown[turn];
}

unsigned long long ballot(bool vote) {
  Lane& me = *block.current;
  exchange(&vote, sizeof vote, 0);
  unsigned long long votes = 0;
  unsigned first = me.number / block.warp * block.warp;
  for (unsigned i = 0; i < block.warp && first + i < block.lanes.size(); ++i)
    votes |= (unsigned long long)(block.lanes[first + i].shown[(me.phase - 1) & 1][0] & 1) << i;
  return votes;
}

void set_order(unsigned warp, uint64_t seed) {
  std::lock_guard held(running);
  block.warp = warp;
  block.seed = seed;
}

std::string run_grid(Dim3 grid, Dim3 size, void (*body)(const void*), const void* argument) {
  std::lock_guard held(running);
  block.body = body;
  block.raised.clear();
  block.argument = argument;
  grid_size = grid;
  block_size = size;
  unsigned n = size.x * size.y * size.z;
  block.lanes.resize(n);
  block.order.resize(n);
  std::iota(block.order.begin(), block.order.end(), 0u);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        block_index = {x, y, z};
        std::string wrong = run_block();
        if (!block.raised.empty()) return block.raised;
        if (!wrong.empty()) return wrong;
      }
  return {};
}

}  // namespace adjoin::emulated

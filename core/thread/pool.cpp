// core/thread/pool.cpp: up to eight regions at once over one set of workers, which spin for a
// moment and then sleep.
#include "core/thread/pool.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/limit.hpp"
#include "core/base/log.hpp"
#include "core/base/tls.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/frontend.hpp"
#include "core/thread/fork.hpp"

namespace adjoin {
namespace {

constexpr int kRegions = 8, kMaxThreads = 1024;
constexpr int64_t kSpinNs = 20'000, kAskNs = 50'000'000;
constexpr int64_t kStopAll = -1;  // before every chunk

// What a body may rely on from the thread that opened the region: modes, keys, the user's line.
struct Inherited {
  uint64_t include, exclude;
  uint32_t line, site;
  uint8_t grad_off, inference, in_backward;
  void* current_node;
  const Kernel* running_kernel;
  const aj_op* running_op;
  uint64_t event;

  static Inherited take() {
    return {tls.include,        tls.exclude,    tls.line,        tls.site,
            tls.grad_off,       tls.inference,  tls.in_backward, tls.current_node,
            tls.running_kernel, tls.running_op, tls.event};
  }
  void give() const {
    tls.include = include, tls.exclude = exclude, tls.line = line, tls.site = site;
    tls.grad_off = grad_off, tls.inference = inference, tls.in_backward = in_backward;
    tls.current_node = current_node;
    tls.event = event;
    // Atomic, for the watchdog's thread reads both.
    __atomic_store_n(&tls.running_kernel, running_kernel, __ATOMIC_RELAXED);
    __atomic_store_n(&tls.running_op, running_op, __ATOMIC_RELAXED);
  }
  // Whoever waits for calls to end (quiet.cpp) must not take an idle worker for one inside.
  static void take_back() {
    __atomic_store_n(&tls.running_kernel, nullptr, __ATOMIC_RELAXED);
    __atomic_store_n(&tls.running_op, nullptr, __ATOMIC_RELEASE);
  }
};

struct alignas(64) Region {
  std::atomic<uint32_t> taken{0};   // by an opener
  std::atomic<uint32_t> open{0};    // workers may enter
  std::atomic<uint32_t> inside{0};  // workers that entered, or look whether they may
  std::atomic<uint32_t> opener_sleeps{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) int64_t n = 0, grain = 0, chunks = 0;
  aj_status* (*body)(void*, int64_t, int64_t) = nullptr;
  void* self = nullptr;
  int threads = 0;
  Inherited inherited{};
  std::atomic<int64_t> failed{0};  // the first chunk known to have failed; `chunks`: none
  std::mutex error_lock;
  aj_status* error = nullptr;
};

// A worker's place: where it may run, less the processor of who opens regions.
struct Worker {
  std::atomic<pid_t> id{0};
  cpu_set_t home{}, given{};  // what the user lets it use; what it was told last
};

struct Pool {
  Region regions[kRegions];
  alignas(64) std::atomic<uint32_t> epoch{0};  // moves with each region that opens
  alignas(64) std::atomic<int32_t> sleeping{0}, spinning{0};
  std::atomic<int> threads{0};  // the caller included; 0: not decided
  std::atomic<int> workers{0};  // started
  std::atomic<bool> may_spin{false};
  std::atomic<int> avoided{-1};  // the processor that workers were told to keep off
  std::mutex lock;               // starts and places workers
  Worker* worker = new Worker[kMaxThreads];
};
Pool& pool() {
  static auto* p = new Pool;  // workers outlive static objects
  return *p;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int n) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, n, nullptr, nullptr, 0);
}

int64_t now_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int granted_cpus() {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                      : int(std::thread::hardware_concurrency());
  if (int quota = cgroup_cpu_limit("/sys/fs/cgroup", "/proc/self/cgroup")) n = std::min(n, quota);
  return std::clamp(n, 1, kMaxThreads);
}

// Nobody claims any more; what was claimed before the chunk that failed goes on, for one of those
// may fail too: the first error in the order of chunks is told, whatever threads there are.
void record_error(Region& r, int64_t chunk, aj_status* s) {
  r.next.store(r.chunks, std::memory_order_relaxed);
  std::lock_guard held(r.error_lock);
  if (r.error && r.failed.load(std::memory_order_relaxed) < chunk) return free_status(s);
  if (r.error) free_status(r.error);
  r.error = s;
  r.failed.store(chunk, std::memory_order_relaxed);
}

// The opener's question to the user: after 50 ms, then every 50 ms.
struct Asking {
  int64_t next = now_ns(CLOCK_MONOTONIC_COARSE) + kAskNs;
  aj_status* ask() {
    int64_t now = now_ns(CLOCK_MONOTONIC_COARSE);
    if (__builtin_expect(now < next, 1)) return nullptr;
    next = now + kAskNs;
    return frontend_interrupted()
               ? fail_kind(AJ_CANCELLED, "KeyboardInterrupt", "interrupted by the user")
               : nullptr;
  }
};

// The next chunks of a region: neighbours, so that memory is read and written in long runs, and
// fewer towards the end, so that all threads finish together (C. Polychronopoulos and D. Kuck,
// guided self-scheduling, IEEE Trans. Comput. 36, 1987).
struct Claim {
  int64_t from, to;
};
Claim claim_chunks(Region& r) {
  int64_t i = r.next.load(std::memory_order_relaxed), n;
  do {
    if (i >= r.chunks) return {0, 0};
    n = std::max<int64_t>(1, (r.chunks - i) / (2 * r.threads));
  } while (!r.next.compare_exchange_weak(i, i + n, std::memory_order_relaxed));
  return {i, i + n};
}

// What a body lets out must pass neither a worker nor the region that others still work on.
inline aj_status* run_body(aj_status* (*body)(void*, int64_t, int64_t), void* self, int64_t lo,
                           int64_t hi) {
  try {
    return body(self, lo, hi);
  } catch (...) {
    return thrown_by(reinterpret_cast<const void*>(body), "parallel body");
  }
}

void run_chunks(Region& r, Asking* asking) {
  for (;;) {
    Claim claim = claim_chunks(r);
    if (claim.from == claim.to) return;
    for (int64_t i = claim.from; i < std::min(claim.to, r.failed.load(std::memory_order_relaxed));
         ++i) {
      int64_t lo = i * r.grain;
      if (aj_status* s = run_body(r.body, r.self, lo, std::min(r.n, lo + r.grain)))
        record_error(r, i, s);
      if (!asking) continue;
      if (aj_status* s = asking->ask()) record_error(r, kStopAll, s);
    }
  }
}

aj_status* run_inline(int64_t n, int64_t grain, aj_status* (*body)(void*, int64_t, int64_t),
                      void* self) {
  bool outermost = !tls.in_parallel && n > grain;
  if (!outermost) {
    for (int64_t lo = 0; lo < n; lo += std::min(grain, n - lo))
      AJ_TRY(run_body(body, self, lo, lo + std::min(grain, n - lo)));
    return nullptr;
  }
  Asking asking;
  for (int64_t lo = 0; lo < n; lo += std::min(grain, n - lo)) {
    AJ_TRY(run_body(body, self, lo, lo + std::min(grain, n - lo)));
    AJ_TRY(asking.ask());
  }
  return nullptr;
}

void keep_off(Worker& w, int cpu) {
  pid_t id = w.id.load(std::memory_order_acquire);
  cpu_set_t now;
  if (id == 0 || sched_getaffinity(id, sizeof now, &now) != 0) return;
  if (!CPU_EQUAL(&now, &w.given)) w.home = now;
  w.given = w.home;
  CPU_CLR(cpu, &w.given);
  if (CPU_COUNT(&w.given) == 0) w.given = w.home;
  sched_setaffinity(id, sizeof w.given, &w.given);
}

// A scheduler wakes a worker on the processor of its waker and leaves it there for milliseconds
// when the other processors look taken, as idle ones of a virtual machine do: it would run only
// when its opener does not.
void keep_workers_off(Pool& p, int cpu) {
  int openers = 0;
  for (Region& r : p.regions) openers += r.taken.load(std::memory_order_relaxed) != 0;
  std::unique_lock held(p.lock, std::try_to_lock);
  if (!held || openers > 1) return;  // who comes second does not send them to the first
  bool started = true;
  for (int i = 0; i < p.workers.load(std::memory_order_relaxed); i++) {
    keep_off(p.worker[i], cpu);
    started &= p.worker[i].id.load(std::memory_order_relaxed) != 0;
  }
  if (started) p.avoided.store(cpu, std::memory_order_relaxed);
}

void visit(Region& r, int index) {
  if (!r.open.load(std::memory_order_seq_cst)) return;
  r.inside.fetch_add(1, std::memory_order_seq_cst);
  // Only now is it sure that the region stays: its opener closes first and then waits for those
  // inside.
  if (r.open.load(std::memory_order_seq_cst) && index < r.threads) {
    r.inherited.give();
    tls.in_parallel = 1;
    run_chunks(r, nullptr);
    tls.in_parallel = 0;
    Inherited::take_back();
  }
  if (r.inside.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      r.opener_sleeps.load(std::memory_order_seq_cst))
    futex_wake(r.inside, 1);
}

// Waits until a region opens after `seen`.
void wait_for_work(Pool& p, uint32_t seen) {
  if (p.may_spin.load(std::memory_order_relaxed)) {
    p.spinning.fetch_add(1, std::memory_order_relaxed);
    int64_t end = now_ns(CLOCK_MONOTONIC) + kSpinNs;
    bool opened = false;
    while (!(opened = p.epoch.load(std::memory_order_acquire) != seen)) {
      for (int i = 0; i < 16; i++) relax();
      if (now_ns(CLOCK_MONOTONIC) > end) break;
    }
    p.spinning.fetch_sub(1, std::memory_order_relaxed);
    if (opened) return;
  }
  p.sleeping.fetch_add(1, std::memory_order_seq_cst);
  while (p.epoch.load(std::memory_order_seq_cst) == seen) futex_wait(p.epoch, seen);
  p.sleeping.fetch_sub(1, std::memory_order_relaxed);
}

void worker(int index) {
  tls.thread_index = index;
  register_thread();
  pool().worker[index - 1].id = gettid();
  // Libraries with threads of their own stay single-threaded inside ours.
  if (void* f = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) reinterpret_cast<void (*)(int)>(f)(1);
  Pool& p = pool();
  for (uint32_t seen = 0;;) {
    uint32_t now = p.epoch.load(std::memory_order_seq_cst);
    if (now == seen) {
      wait_for_work(p, seen);
      continue;
    }
    seen = now;
    for (Region& r : p.regions) visit(r, index);
  }
}

// Signals belong to the threads of the user, but for faults of a worker's own: blocked, they would
// end the process past every handler that could say what happened.
void start_workers(Pool& p, int wanted) {
  register_thread();  // a fork is prepared for from now on
  std::lock_guard held(p.lock);
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int have = p.workers.load(); have < wanted; have++) {
    try {
      std::thread(worker, have + 1).detach();
    } catch (const std::system_error&) {
      break;  // fewer threads: slower, not wrong
    }
    p.workers.store(have + 1, std::memory_order_release);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Region* claim(Pool& p) {
  for (Region& r : p.regions) {
    uint32_t expected = 0;
    if (!r.taken.load(std::memory_order_relaxed) &&
        r.taken.compare_exchange_strong(expected, 1, std::memory_order_acquire))
      return &r;
  }
  return nullptr;
}

void wait_until_left(Region& r) {
  int64_t end = 0;
  for (int i = 0; r.inside.load(std::memory_order_seq_cst) != 0; i++) {
    relax();
    if (i % 64 != 63) continue;
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (end == 0) end = now + (pool().may_spin.load(std::memory_order_relaxed) ? 2 * kSpinNs : 0);
    if (now < end) continue;
    r.opener_sleeps.store(1, std::memory_order_seq_cst);
    for (uint32_t left; (left = r.inside.load(std::memory_order_seq_cst)) != 0;)
      futex_wait(r.inside, left);
    r.opener_sleeps.store(0, std::memory_order_relaxed);
  }
}

aj_status* run_region(Pool& p, Region& r, int threads, int64_t n, int64_t grain,
                      aj_status* (*body)(void*, int64_t, int64_t), void* self) {
  r.n = n, r.grain = grain, r.chunks = (n - 1) / grain + 1;
  r.body = body, r.self = self, r.threads = threads;
  r.inherited = Inherited::take();
  r.error = nullptr;
  r.failed.store(r.chunks, std::memory_order_relaxed);
  r.next.store(0, std::memory_order_relaxed);
  int cpu = sched_getcpu();
  if (__builtin_expect(cpu != p.avoided.load(std::memory_order_relaxed), 0))
    keep_workers_off(p, cpu);
  r.open.store(1, std::memory_order_seq_cst);
  p.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (p.sleeping.load(std::memory_order_seq_cst) > 0)
    futex_wake(p.epoch,
               r.chunks > threads || p.workers.load() >= threads ? INT_MAX : int(r.chunks - 1));
  tls.in_parallel = 1;
  Asking asking;
  run_chunks(r, &asking);
  tls.in_parallel = 0;
  r.open.store(0, std::memory_order_seq_cst);
  wait_until_left(r);
  aj_status* s = r.error;
  r.error = nullptr;
  r.taken.store(0, std::memory_order_release);
  return s;
}

}  // namespace

int default_num_threads() {
  const char* asked = secure_getenv("ADJOIN_NUM_THREADS");
  const char* end = asked ? asked + std::strlen(asked) : nullptr;
  int n = 0;
  bool whole = end != asked && std::from_chars(asked, end, n).ptr == end;
  if (whole && n >= 1 && n <= kMaxThreads) return n;
  int instead = whole && n > kMaxThreads ? kMaxThreads : 0;
  if (const char* text = secure_getenv("OMP_NUM_THREADS"); text && !instead)  // may be a list
    if (int others = std::atoi(text); others >= 1) instead = std::min(others, kMaxThreads);
  if (!instead) instead = granted_cpus();
  static std::atomic<bool> told{false};
  if (end != asked && !told.exchange(true))
    log_message(1, "threads",
                text("ADJOIN_NUM_THREADS is '", std::string_view(asked).substr(0, 100),
                     "', wanted a whole number from 1 to ", kMaxThreads, "; ", instead,
                     instead == 1 ? " thread serves" : " threads serve"));
  return instead;
}

int num_threads() {
  Pool& p = pool();
  int n = p.threads.load(std::memory_order_relaxed);
  if (__builtin_expect(n == 0, 0)) {
    int expected = 0;
    n = default_num_threads();
    p.may_spin = n <= granted_cpus();
    if (!p.threads.compare_exchange_strong(expected, n)) n = expected;
  }
  return n;
}

aj_status* set_num_threads(int n) {
  if (n < 1 || n > kMaxThreads)
    return fail(AJ_INVALID_ARGUMENT, "set_num_threads: ", n, " threads asked for, wanted 1 to ",
                kMaxThreads);
  pool().may_spin = n <= granted_cpus();
  pool().threads = n;
  return nullptr;
}

bool worth_threads(uint64_t ns) {
  if (ns < 6'000 || tls.in_parallel) return false;
  if (num_threads() == 1) return false;
  return ns >= 60'000 || pool().spinning.load(std::memory_order_relaxed) > 0;
}

aj_status* parallel_for(int64_t n, int64_t grain,
                        aj_status* (*body)(void* self, int64_t lo, int64_t hi), void* self) {
  if (n <= 0) return nullptr;
  if (grain < 1) grain = 1;
  int threads = n <= grain || tls.in_parallel ? 1 : num_threads();
  if (threads == 1) return run_inline(n, grain, body, self);
  Pool& p = pool();
  if (__builtin_expect(p.workers.load(std::memory_order_acquire) < threads - 1, 0))
    start_workers(p, threads - 1);
  Region* r = claim(p);
  return r ? run_region(p, *r, threads, n, grain, body, self) : run_inline(n, grain, body, self);
}

void pool_fork_prepare() { pool().lock.lock(); }
void pool_fork_parent() { pool().lock.unlock(); }

// No worker has come along: the pool is as new, and the next region makes them again.
void pool_fork_child() {
  Pool& p = pool();
  for (Region& r : p.regions) {
    r.taken = 0, r.open = 0, r.inside = 0, r.opener_sleeps = 0;
  }
  for (int i = 0; i < p.workers; i++) p.worker[i].id = 0;
  p.epoch = 0, p.sleeping = 0, p.spinning = 0, p.workers = 0, p.avoided = -1;
  p.lock.unlock();
}

}  // namespace adjoin

// frontends/cli/conform/process.cpp: many threads at once, and a fork after the device was used.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "../orphan.hpp"
#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

// Some work whose result is known: (x + 1) * 2, and sums of it where the device has them.
std::string work(DLDevice device, int64_t n, double value) {
  try {
    HostTensor x = from_numbers(float32, {n}, std::vector<std::complex<double>>(size_t(n), value));
    Tensor t = place(x, device, Lay::kDense).tensor;
    Tensor y = (t + 1) * 2;
    HostTensor wanted =
        from_numbers(float32, {n}, std::vector<std::complex<double>>(size_t(n), (value + 1) * 2));
    return difference(fetch(y), wanted, 1, true);
  } catch (const kit::Error& e) {
    if (e.code() == AJ_UNIMPLEMENTED) throw;  // without add and mul there is nothing to see
    return e.message();
  }
}

void threads(Bench& bench, Verdict& v) {
  constexpr int kThreads = 4, kTimes = 60;
  const int64_t sizes[] = {5, 1000, 70'001};
  v.expect("one thread", work(bench.device, 5, 1));
  std::mutex lock;
  std::vector<std::thread> all;
  for (int k = 0; k < kThreads; ++k)
    all.emplace_back([&, k] {
      for (int i = 0; i < kTimes; ++i) {
        std::string wrong = work(bench.device, sizes[size_t(i + k) % 3], k * 100 + i);
        std::lock_guard held(lock);
        v.expect(kit::text("thread ", k), wrong);
      }
    });
  for (std::thread& t : all) t.join();
}

// In the child the device works, or says that it does not; it neither hangs nor crashes, and the
// parent's goes on.
void forks(Bench& bench, Verdict& v) {
  v.expect("before the fork", work(bench.device, 70'001, 1));
  int ends[2];
  if (pipe(ends) != 0) kit::raise(AJ_UNAVAILABLE, "no pipe");
  pid_t parent = getpid(), child = fork();
  if (child < 0) kit::raise(AJ_UNAVAILABLE, "cannot fork");
  if (child == 0) {
    end_with(parent);
    std::string wrong = work(bench.device, 70'001, 2);
    bool told = wrong.empty() || write(ends[1], wrong.data(), wrong.size()) > 0;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  int status = 0;
  bool done = false;
  for (int i = 0; i < 2000 && !done; ++i) {
    done = waitpid(child, &status, WNOHANG) == child;
    if (!done) usleep(10'000);
  }
  if (!done) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  char text[400] = {};
  ssize_t n = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  std::string said(text, n > 0 ? size_t(n) : 0);
  bool differs = said.find("elements differ") != said.npos;
  v.expect("in the child", !done ? "it hangs"
                           : WIFSIGNALED(status)
                               ? std::string("it crashes: ") + strsignal(WTERMSIG(status))
                           : differs ? "wrong numbers: " + said
                                     : "");
  if (done && !said.empty() && !differs) v.skip("after a fork the child is told: " + said);
  v.expect("in the parent, after the fork", work(bench.device, 70'001, 3));
}

}  // namespace

void add_process_groups(std::vector<Group>& plan) {
  plan.push_back({"threads", "", "", threads});
  plan.push_back({"fork", "", "", forks});
}

}  // namespace adjoin::cli::conform

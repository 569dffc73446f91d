// core/plugin/guard.cpp: names the plugin whose first code is running when that code takes long or
// ends the process.
#include "core/plugin/guard.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace adjoin::plugin {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);
constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

std::atomic<const char*> current{nullptr};
std::atomic<pthread_t> loading_thread;
struct sigaction previous[std::size(kSignals)];
bool replaced[std::size(kSignals)];

// write(), since this runs in signal handlers and while the process is going down.
void say(const char* who, const char* what) {
  const char* parts[] = {"adjoin: plugin ", who, what};
  for (const char* part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

void at_exit() {
  const char* who = current.load();
  // Another thread may end the program while this one loads: that is nobody's fault.
  if (who && pthread_equal(loading_thread.load(), pthread_self())) say(who, ": called exit() while it was being loaded\n");
}

// The action is one-shot: returning repeats a fault, and abort() raises again, now with the default
// action.
void on_signal(int signal) {
  const char* who = current.load();
  if (!who) return;
  say(who, signal == SIGABRT ? ": the process aborted while it was being loaded\n"
                             : ": the process crashed while it was being loaded\n");
}

// Handlers of the program's own, a debugger's or a sanitizer's, are left alone.
void take_signals() {
  static const bool registered = std::atexit(at_exit) == 0;
  (void)registered;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action = {};
    replaced[i] = sigaction(kSignals[i], nullptr, &previous[i]) == 0 &&
                  !(previous[i].sa_flags & SA_SIGINFO) && previous[i].sa_handler == SIG_DFL;
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    if (replaced[i]) sigaction(kSignals[i], &action, nullptr);
  }
}

// A plugin that set its own handler meanwhile keeps it.
void give_signals_back() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now;
    if (replaced[i] && sigaction(kSignals[i], nullptr, &now) == 0 && now.sa_handler == on_signal)
      sigaction(kSignals[i], &previous[i], nullptr);
  }
}

}  // namespace

InitGuard::InitGuard(std::string label)
    : label_(std::move(label)), outer_(current.load()), owner_pid_(getpid()) {
  if (!outer_) take_signals();
  loading_thread.store(pthread_self());
  current.store(label_.c_str());
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // the program's signals are not for the watchdog
  try {
    watchdog_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {  // no thread to be had: then nobody warns
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

InitGuard::~InitGuard() {
  current.store(outer_);
  if (!outer_) give_signals_back();
  if (!watchdog_.joinable()) return;
  if (getpid() !=
      owner_pid_) {  // init forked, and the child came back here: the thread stayed behind
    watchdog_.detach();
    return;
  }
  {
    std::lock_guard<std::mutex> guard(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  watchdog_.join();
}

void InitGuard::watch() {
  std::unique_lock<std::mutex> guard(mutex_);
  if (!wake_.wait_for(guard, kPatience, [this] { return done_; }))
    say(label_.c_str(), ": has been initialising for 5 s and has not come back yet\n");
}

}  // namespace adjoin::plugin

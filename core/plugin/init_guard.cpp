// core/plugin/init_guard.cpp: names the plugin whose init or drain is running when that takes long
// or ends the process.
#include "core/plugin/init_guard.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

namespace adjoin::plugin {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);

}  // namespace

InitGuard::InitGuard(std::string label, const char* what, const char* doing)
    : label_(std::move(label)), doing_(doing), owner_pid_(getpid()) {
  crash_handler_install();
  outer_ = set_at_work({label_.c_str(), what});
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
  set_at_work(outer_);
  if (getpid() != owner_pid_) {  // the thread stayed behind
    say(label_.c_str(), ": forked while it was ", doing_,
        ", and the child went on as if it were the program\n");
    if (watchdog_.joinable()) watchdog_.detach();
    return;
  }
  if (!watchdog_.joinable()) return;
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
    say(label_.c_str(), ": has been ", doing_, " for 5 s and has not come back yet\n");
}

}  // namespace adjoin::plugin

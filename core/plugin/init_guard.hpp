// core/plugin/init_guard.hpp: names the plugin whose init or drain is running when that takes long
// or ends the process.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/plugin/crash.hpp"

namespace adjoin::plugin {

// Stands around dlopen, init and drain. Nothing in process survives exit(), abort() or a crash in
// there; what can be done is to say who it was, before the process ends, and `adjoin plugins check`
// tries in a child.
class InitGuard {
 public:
  InitGuard(std::string label, const char* what,
            const char* doing);  // it is being "drained": it has been "draining"
  ~InitGuard();
  InitGuard(const InitGuard&) = delete;
  InitGuard& operator=(const InitGuard&) = delete;

 private:
  void watch();

  std::string label_;
  const char* doing_;
  AtWork outer_;  // init may load another plugin
  int owner_pid_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread watchdog_;
};

}  // namespace adjoin::plugin

// core/plugin/guard.hpp: names the plugin whose first code is running when that code takes long or
// ends the process.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace adjoin::plugin {

// Stands around dlopen and init. Nothing in process survives exit(), abort() or a crash in there;
// what can be done is to say who it was, before the process ends, and `adjoin plugins check` tries
// in a child.
class InitGuard {
 public:
  explicit InitGuard(std::string label);
  ~InitGuard();
  InitGuard(const InitGuard&) = delete;
  InitGuard& operator=(const InitGuard&) = delete;

 private:
  void watch();

  std::string label_;
  const char* outer_;  // init may load another plugin
  int owner_pid_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread watchdog_;
};

}  // namespace adjoin::plugin

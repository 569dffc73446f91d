// core/plugin/load_lock.hpp: one thread at a time looks for plugins and loads them.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace adjoin::plugin {

// Recursive, because init may need another plugin. Not std::recursive_mutex: that one notes the
// kernel's number of a thread, which a fork changes, so a child could not unlock what it inherited.
class LoadLock {
 public:
  void lock() {
    std::thread::id self = std::this_thread::get_id();
    if (owner_.load(std::memory_order_relaxed) != self) {
      mutex_.lock();
      owner_.store(self, std::memory_order_relaxed);
    }
    ++depth_;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

  bool is_nested() const { return depth_ > 1; }  // for who holds it

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;
};

LoadLock& load_lock();  // never destroyed; a fork waits for it
using Locked = std::lock_guard<LoadLock>;

// Lets others have the lock for a while, unless who called holds it too.
class Unlocked {
 public:
  Unlocked() : open_(!load_lock().is_nested()) {
    if (open_) load_lock().unlock();
  }
  ~Unlocked() {
    if (open_) load_lock().lock();
  }
  Unlocked(const Unlocked&) = delete;

 private:
  bool open_;
};

}  // namespace adjoin::plugin

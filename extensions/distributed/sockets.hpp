// extensions/distributed/sockets.hpp: connections of the control channel.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

namespace adjoin::distributed {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A thread that waits for others. How long it sleeps before it looks around: the longer, the longer
// it has waited, and the more threads of this process wait; there may be thousands.
class Waiting {
 public:
  Waiting() { count_.fetch_add(1, std::memory_order_relaxed); }
  ~Waiting() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Waiting(const Waiting&) = delete;
  static int64_t pause_after(int64_t waited_ms) {
    return std::max(std::clamp<int64_t>(waited_ms / 20, 50, 250), threads() / 4);
  }
  static int64_t threads() { return count_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<int64_t> count_ = 0;
};
inline int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch()).count();
}

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  void close();
  int get() const { return descriptor_; }
  int release();
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// Listens at host (a name, a number, or "" for all of this machine) and port; 0 takes a free one.
// *port is the one that it got. Raises: what the address is, and what is wrong with it.
Socket listen_at(const std::string& host, int* port);
// Tries again until the deadline, for a server that comes later.
Socket connect_to(const std::string& host, int port, int64_t timeout_ms);
// The address of this machine on the connection: what others reach it by.
std::string own_address(const Socket& s);
std::string host_name();
// All of it; false: the other side is gone.
bool send_all(const Socket& s, std::string_view bytes);

}  // namespace adjoin::distributed

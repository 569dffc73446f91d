// extensions/distributed/link.hpp: a process's connection to the control server: keys, and what it
// hears of the other processes. Its thread takes no lock of any language.
#pragma once

#include <adjoin/abi/comm.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sockets.hpp"
#include "wire.hpp"

namespace adjoin::distributed {

// A line of the user's by its number in the core: "train.py:41 in step"; "" if there is none. Only
// a thread of the line's language can make the text; others find it once such a one has asked.
std::string line_text(uint32_t line);

class Link {
 public:
  Link(const std::string& host, int port, int64_t timeout_ms);
  ~Link() { close(); }
  void close();  // what is asked later is refused

  struct Answer {
    Say kind;
    std::string text;
    int64_t number = 0;
  };
  // Sends, and waits for the answer. f has the number that `ticket` gave. key: the one that another
  // process is to set, which ends the wait when the world breaks.
  uint32_t ticket();
  Answer ask(uint32_t id, Frame&& f, int64_t timeout_ms, std::string_view key = {});
  void send(Frame&& f);

  void join(const std::string& world, int rank, int size);
  void leave();
  void tell(const std::string& what);
  // What this process does now, for the others' messages; `line` is its line's number in the core.
  void doing(const std::string& what, uint32_t line);
  void waits(bool now) { waits_.store(now, std::memory_order_relaxed); }
  // Who tells of his last works when somebody asks: by the number that it gives until that is
  // forgotten.
  uint64_t tells(std::function<std::string()> ring);
  void forgets(uint64_t teller);
  // Everything that the server knows, and all processes' last works.
  std::string report(int64_t timeout_ms);
  // What the others do, as the server knows it.
  std::string others();

  // Why the world is broken; "" while it is not.
  std::string broken();
  // Waits at most so long for the cause of what an engine has found.
  std::string broken_within(int64_t ms);
  // Who of these ended first, in order, as the server knows it; -1: none of them.
  int first_left(const std::vector<int32_t>& ranks, int but);
  const std::string& address() const { return address_; }
  const aj_store* store() const { return &store_; }

 private:
  void run();
  void hear(const std::string& body);
  void tell_ring();
  void server_gone(const char* why);
  void wake();
  std::string ended() const;

  Socket socket_, wake_read_, wake_write_;
  std::string server_, address_;
  std::mutex lock_, send_lock_;
  std::condition_variable changed_;
  std::map<uint32_t, Answer*> pending_;
  uint32_t next_ = 1;
  std::string broken_, doing_;
  uint32_t doing_line_ = 0;
  std::atomic<bool> waits_ = false;
  bool dumps_ = false;  // of the thread alone
  std::mutex tellers_lock_;
  std::map<uint64_t, std::function<std::string()>> tellers_;
  bool joined_ = false, gone_ = false, stop_ = false;
  bool quiet_ = false;  // the thread sleeps, and the server knows what this process does
  size_t size_ = 0;     // of the world
  aj_store store_;
  std::thread thread_;
};

}  // namespace adjoin::distributed

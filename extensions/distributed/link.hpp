// extensions/distributed/link.hpp: a process's connection to the control server: keys, and what it
// hears of the other processes. Its thread takes no lock of any language.
#pragma once

#include <adjoin/abi/comm.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "sockets.hpp"
#include "wire.hpp"

namespace adjoin::distributed {

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
  // Sends, and waits for the answer. f has the number that `ticket` gave.
  uint32_t ticket();
  Answer ask(uint32_t id, Frame&& f, int64_t timeout_ms);
  void send(Frame&& f);

  void join(const std::string& world, int rank, int size);
  void leave();
  void tell(const std::string& what);
  // What this process does now, for the others' messages.
  void doing(std::string what);
  // What the others do, as the server knows it.
  std::string others();

  // Why the world is broken; "" while it is not.
  std::string broken();
  // Waits at most so long for the cause of what an engine has found.
  std::string broken_within(int64_t ms);
  bool has_left(int rank);
  const std::string& address() const { return address_; }
  const aj_store* store() const { return &store_; }

 private:
  void run();
  void hear(const std::string& body);
  void server_gone(const char* why);

  Socket socket_, wake_read_, wake_write_;
  std::string server_, address_;
  std::mutex lock_, send_lock_;
  std::condition_variable changed_;
  std::map<uint32_t, Answer*> pending_;
  uint32_t next_ = 1;
  std::string broken_, doing_;
  std::set<int> left_;
  bool joined_ = false, gone_ = false, stop_ = false;
  aj_store store_;
  std::thread thread_;
};

}  // namespace adjoin::distributed

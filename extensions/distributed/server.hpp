// extensions/distributed/server.hpp: the control server: keys that processes share, and who of them
// is alive, waits, has ended and why.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sockets.hpp"
#include "wire.hpp"

namespace adjoin::distributed {

// So long without a beat is the end: eight seconds, or what ADJOIN_SILENCE_SECONDS says.
int64_t silence_ms();

class Server {
 public:
  Server(const std::string& host, int port);
  ~Server();
  int port() const { return port_; }
  // How many processes are connected.
  int connected() const { return connected_.load(); }
  // The number of the process that broke a world first; 0: none did.
  int64_t first_lost() const { return first_lost_.load(); }

 private:
  struct Connection {
    Socket socket;
    Inbox in;
    std::string out, host, world;  // world: "" until it joins
    int rank = -1;
    int64_t process = 0, heard = 0, gone_at = 0;
    std::string doing, told, ring;
    bool waits = false, asked = false;                // asked: for its ring, and it has not come
    bool gone = false, lost = false, writes = false;  // writes: it is told when there is room
    bool watched = false;                             // a launcher will tell how it ended
  };
  struct Waiter {
    Connection* who;
    uint32_t id;
    int64_t until;
  };
  struct Started {  // a collective, as the first process tells of it that waits there or behind it
    int64_t fingerprint;
    int rank;
    std::string text;
  };
  struct Reporting {
    Connection* who;
    uint32_t id;
    int64_t until;
  };

  void run();
  void watch(int descriptor, Connection* c, uint32_t events, int how);
  void take_new();
  void read(Connection& c);
  void serve(Connection& c, Reader& r);
  void serve_key(Connection& c, Reader& r);
  void compare(Connection& c, Reader& r);
  void reply(Connection& c, Frame&& f);
  void flush(Connection& c);
  void key_set(const std::string& key);
  void report(Connection& c, uint32_t id);
  void finish_reports();
  std::string everything() const;
  std::string others_of(const Connection& c) const;
  std::string named(const std::vector<const Connection*>& who) const;
  void look_at_clock();
  void gone(Connection& c);
  void lose(Connection& c, const std::string& how);
  void tell_world(const std::string& world, const std::string& what, const Connection* except);
  std::string name_of(const Connection& c) const;

  Socket listener_, wake_read_, wake_write_, events_;
  int port_ = 0;
  std::list<Connection> connections_;
  std::multimap<std::string, Waiter> waiters_;  // by key
  std::list<Reporting> reports_;
  std::map<std::string, std::string> keys_;
  std::map<std::string, std::map<int64_t, Started>> waiting_;    // by world and group, by number
  std::map<std::pair<std::string, int64_t>, std::string> ends_;  // host and process: how it ended
  std::map<std::string, std::string> why_broken_;                // by world; the first cause
  std::map<std::string, std::vector<int>> left_;                 // by world, in order
  int64_t looked_ = 0;
  bool hurry_ = false;  // the clock is looked at now
  std::atomic<int> connected_ = 0;
  std::atomic<int64_t> first_lost_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace adjoin::distributed

// plugins/faulty/plugin.cpp: libaj_faulty.so: another engine, with faults to order (orders.hpp).
// They are those of the default group's collectives; what nobody ordered goes through untouched.
//
//   delay=MS    the process comes late
//   drop        nothing is sent, nothing comes
//   error       the engine says that a connection broke
//   mismatch    the collective has another tag: it meets nobody's
//   kill=MS     the process dies, so long after it has begun
//   stop=MS     it freezes
//   usr1=MS     SIGUSR1 comes, of which the program makes what it wants: an exception, say
//   cut_link    its connections break, the one to the control server too
//   throw       the engine refuses the call
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/plugin.hpp>
#include <atomic>
#include <chrono>
#include <thread>

#include "orders.hpp"

namespace adjoin::faulty {
namespace {

using kit::raise;
using std::chrono::milliseconds;

const aj_comm& engine_named(const std::string& wanted) {
  const uint32_t n = kit::services().count(AJ_STR_LIT("aj.comm/cpu"));
  for (uint32_t i = 0; i < n; i++) {
    aj_service_def d = {};
    d.struct_size = sizeof d;
    kit::check(kit::services().at(AJ_STR_LIT("aj.comm/cpu"), i, &d));
    if (kit::view_of(d.name) == wanted && wanted != "faulty")
      return *static_cast<const aj_comm*>(d.table);
  }
  raise(AJ_NOT_FOUND, "ADJOIN_FAULTY: no plugin offers the engine '", wanted, "'");
}

void later(int64_t ms, int number) {
  std::thread([ms, number] {
    std::this_thread::sleep_for(milliseconds(ms));
    kill(getpid(), number);
  }).detach();
}

void cut_connections() {
  for (int fd = 3; fd < 1024; fd++) {
    int kind = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_STREAM)
      shutdown(fd, SHUT_RDWR);
  }
}

struct Shared {  // by a communicator and its works
  Orders orders;
  const aj_comm& inner;
  std::atomic<bool> aborted = false;
  std::string why;
};

class Comm {
 public:
  static constexpr const char* kName = "faulty";
  static void caps(aj_comm_caps& io) {
    io.struct_size = sizeof io;
    const aj_comm& inner = engine_named(Orders::read().engine);
    kit::check(inner.caps(inner.self, {kDLCPU, 0}, &io));
  }
  explicit Comm(const aj_comm_config& c)
      : rank_(c.rank),
        default_(kit::view_of(c.name).ends_with("/default")),
        shared_(made()),
        inner_(shared_->inner) {
    kit::check(inner_.open(inner_.self, &c, &comm_));
  }
  bool ready() {
    int32_t done = 0;
    kit::check(inner_.ready(comm_, &done));
    return done;
  }

  class Work {
   public:
    Work(void* work, const Order* fault, std::shared_ptr<Shared> shared)
        : work_(work), fault_(fault), shared_(std::move(shared)) {}
    ~Work() {
      if (work_) shared_->inner.drop(work_);
    }
    bool test() { return wait(0); }
    bool wait(int64_t ms) {
      if (fault_ && fault_->what == "error")
        raise(AJ_UNAVAILABLE, "the connection broke, as it was ordered");
      if (!work_) return lost(ms);
      aj_status* s = shared_->inner.wait(work_, ms);
      if (s && kit::core().status_code(s) == AJ_DEADLINE) {
        kit::core().status_free(s);
        return false;
      }
      kit::check(s);
      return true;
    }

   private:
    bool lost(int64_t ms) const {
      for (int64_t waited = 0; waited < ms && !shared_->aborted; waited += 5)
        std::this_thread::sleep_for(milliseconds(5));
      if (shared_->aborted) raise(AJ_ABORTED, shared_->why);
      return false;
    }
    void* work_;
    const Order* fault_;
    std::shared_ptr<Shared> shared_;
  };

  std::unique_ptr<Work> start(const aj_coll* c, uint32_t n) {
    const bool counts = default_ && n && c->kind != AJ_COLL_SEND && c->kind != AJ_COLL_RECV;
    const Order* fault = counts ? shared_->orders.find(rank_, c->seq) : nullptr;
    aj_coll changed = *c;
    if (fault) {
      if (fault->what == "throw") raise(AJ_UNAVAILABLE, "the call is refused, as it was ordered");
      if (fault->what == "delay") std::this_thread::sleep_for(milliseconds(fault->number));
      if (fault->what == "mismatch") changed.fingerprint ^= 1;
      if (fault->what == "kill") later(fault->number, SIGKILL);
      if (fault->what == "stop") later(fault->number, SIGSTOP);
      if (fault->what == "usr1") later(fault->number, SIGUSR1);
      if (fault->what == "cut_link") cut_connections();
    }
    void* work = nullptr;
    if (!fault || (fault->what != "drop" && fault->what != "error"))
      kit::check(inner_.start(comm_, n == 1 ? &changed : c, n, &work));
    return std::make_unique<Work>(work, fault, shared_);
  }
  void abort(const std::string& why) {
    if (!shared_->aborted) shared_->why = why;
    shared_->aborted = true;
    kit::check(inner_.abort(comm_, kit::str(why)));
  }
  void close(int64_t timeout_ms) { kit::check(inner_.close(comm_, timeout_ms)); }

 private:
  static std::shared_ptr<Shared> made() {
    Orders orders = Orders::read();
    const aj_comm& inner = engine_named(orders.engine);
    return std::shared_ptr<Shared>(new Shared{std::move(orders), inner});
  }
  int rank_;
  bool default_;
  std::shared_ptr<Shared> shared_;
  const aj_comm& inner_;
  void* comm_ = nullptr;
};

const aj_comm table = kit::comm::Table<Comm>::of({"faulty", 6});

}  // namespace
}  // namespace adjoin::faulty

AJ_PLUGIN(.name = "faulty", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu;service:aj.comm/cpu/faulty") {
  plugin.service("aj.comm/cpu", "faulty", &adjoin::faulty::table, -200);
  plugin.service("aj.comm/cpu/faulty", "faulty", &adjoin::faulty::table, -200);
}

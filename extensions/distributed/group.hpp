// extensions/distributed/group.hpp: a group of processes over an engine, and its collectives: each
// has a number, a fingerprint and the user's line, and fails with the cause.
#pragma once

#include <adjoin/abi/distributed.h>

#include <adjoin/kit/error.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link.hpp"

namespace adjoin::distributed {

struct Record {  // of one collective, for messages and the history
  std::string what;
  uint64_t seq;
  uint32_t line;
  uint32_t fingerprint;
  bool transfer;  // it stands in the order of two processes, not in the group's
  enum { started, done, failed } state = started;
};

class Group;

// The engine of that name ("": the first one) for a device; raises with those that there are.
const aj_comm* find_engine(std::string_view wanted, const std::string& device);

struct Work {
  std::shared_ptr<Group> group;
  std::shared_ptr<Record> record;
  std::vector<aj_tensor*> keep;
  std::string order;  // which order it stands in: the group's, or that of a pair of processes
  int64_t asked = 0, left = 0;  // when it asked who has left, how often it has heard of one
  void* work = nullptr;
  bool told = false, warned = false;
  ~Work();
};

class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(std::shared_ptr<Link> link, const aj_group_def& def);
  ~Group();
  std::unique_ptr<Work> start(const aj_coll& c, int32_t tag, aj_tensor* const* keep, uint32_t n);
  bool test(Work& w);
  void wait(Work& w, int64_t timeout_ms);
  void capabilities(aj_comm_caps* io);
  std::string history();
  // The same for the control server: group, state, number, fingerprint, description, between tabs.
  std::string ring();
  void close();
  void forget(Work& w);

 private:
  friend struct Work;
  std::string describe(const Record& r) const;
  std::deque<std::shared_ptr<Record>> records();
  void tell_that_it_waits(Work& w);
  void look(Work& w, int64_t waited, int64_t timeout_ms);
  static bool warns();
  [[noreturn]] void fail(Work& w, const std::string& why, int32_t code = AJ_ABORTED);
  [[noreturn]] void engine_failed(Work& w, aj_status* s);
  [[noreturn]] void not_started(aj_status* s, const Record& record) const;
  void abort(const std::string& why);
  void sweep();  // under the lock
  void refuse_what_it_cannot(const aj_coll& c) const;

  std::shared_ptr<Link> link_;
  std::string name_, label_, device_name_;
  DLDevice device_ = {kDLCPU, 0};
  const std::shared_ptr<const std::vector<int32_t>> held_ranks_;
  const std::vector<int32_t>& ranks_ = *held_ranks_;
  int32_t rank_;
  int64_t timeout_ms_;
  const aj_comm* engine_ = nullptr;
  aj_comm_caps can_ = {};
  std::mutex lock_;
  void* comm_ = nullptr;
  uint64_t teller_ = 0;
  bool aborted_ = false;
  std::string why_;
  uint64_t next_ = 0, told_ = 0;  // of the last collective, and of the last one told of as waiting
  std::map<std::string, uint64_t>
      pairs_;  // numbers of sends and receives, each pair and tag its own
  std::deque<std::shared_ptr<Record>> history_;
  struct Unwatched {  // a work that nobody holds any more
    void* work;
    std::vector<aj_tensor*> keep;
  };
  std::vector<Unwatched> unwatched_;
};

}  // namespace adjoin::distributed

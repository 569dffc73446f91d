// abi/kit/engine.hpp: an engine's C table, of a class of communicators. That class has: kName,
// caps(io), a constructor of a config, ready(), start(collectives, n), abort(why),
// close(milliseconds), after which it is deleted; and a class Work with test() and
// wait(milliseconds), which are false while it runs. Each of them raises what is wrong.
#ifndef ADJOIN_KIT_ENGINE_HPP
#define ADJOIN_KIT_ENGINE_HPP

#include <adjoin/abi/comm.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <memory>

namespace adjoin::kit::comm {

template <class Comm>
class Table {
  using Work = typename Comm::Work;
  static Comm& comm_of(void* c) { return *static_cast<Comm*>(c); }
  static Work& work_of(void* w) { return *static_cast<Work*>(w); }

  static aj_status* caps(void*, DLDevice, aj_comm_caps* io) {
    return kit::guard(Comm::kName, [&] {
      aj_comm_caps c = {};
      Comm::caps(c);
      c.struct_size = io->struct_size;
      std::memcpy(io, &c, std::min<size_t>(io->struct_size, sizeof c));
    });
  }
  static aj_status* open(void*, const aj_comm_config* c, void** out) {
    return kit::guard(Comm::kName, [&] { *out = new Comm(*c); });
  }
  static aj_status* ready(void* c, int32_t* done) {
    return kit::guard(Comm::kName, [&] { *done = comm_of(c).ready(); });
  }
  static aj_status* start(void* c, const aj_coll* first, uint32_t n, void** out) {
    return kit::guard(Comm::kName, [&] { *out = comm_of(c).start(first, n).release(); });
  }
  static aj_status* test(void* w, int32_t* done) {
    return kit::guard(Comm::kName, [&] { *done = work_of(w).test(); });
  }
  static aj_status* wait(void* w, int64_t timeout_ms) {
    return kit::guard(Comm::kName, [&] {
      if (!work_of(w).wait(timeout_ms))
        kit::raise(AJ_DEADLINE, "the work is not done after ", timeout_ms, " ms");
    });
  }
  static void drop(void* w) { delete &work_of(w); }
  static aj_status* abort(void* c, aj_str why) {
    return kit::guard(Comm::kName, [&] { comm_of(c).abort(std::string(kit::view_of(why))); });
  }
  static aj_status* close(void* c, int64_t timeout_ms) {
    return kit::guard(Comm::kName, [&] {
      std::unique_ptr<Comm> held(&comm_of(c));
      held->close(timeout_ms);
    });
  }

 public:
  static constexpr aj_comm of(aj_str name) {
    aj_comm t = {};
    t.struct_size = sizeof t;
    t.name = name;
    t.caps = caps, t.open = open, t.ready = ready, t.start = start, t.test = test, t.wait = wait;
    t.drop = drop, t.abort = abort, t.close = close;
    return t;
  }
};

}  // namespace adjoin::kit::comm
#endif

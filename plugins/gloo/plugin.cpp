// plugins/gloo/plugin.cpp: libaj_gloo.so: the service aj.comm/cpu.
#include <adjoin/kit/plugin.hpp>

#include "combine.hpp"
#include "comm.hpp"

namespace adjoin::gloo_engine {
namespace {

using kit::guard;

aj_status* caps(void*, DLDevice, aj_comm_caps* io) {
  aj_comm_caps c = {};
  c.struct_size = io->struct_size;
  c.flags = AJ_COMM_TAGGED | AJ_COMM_DETERMINISTIC;
  c.kinds = (uint64_t{1} << (AJ_COLL_ALL_TO_ALL_V + 1)) - 1;
  for (int32_t op = AJ_RED_SUM; op <= AJ_RED_PREMUL; op++) c.dtypes[op] = combines(op);
  c.engine = AJ_STR_LIT("gloo");
  std::memcpy(io, &c, std::min<size_t>(io->struct_size, sizeof c));
  return nullptr;
}

Comm& comm_of(void* c) { return *static_cast<Comm*>(c); }

aj_status* open(void*, const aj_comm_config* c, void** out) {
  return guard("gloo", [&] { *out = new Comm(*c); });
}
aj_status* ready(void* c, int32_t* done) {
  return guard("gloo", [&] { *done = comm_of(c).ready(); });
}
aj_status* start(void* comm, const aj_coll* c, uint32_t n, void** out) {
  return guard("gloo", [&] {
    for (uint32_t i = 0; i < n; i++) {
      const bool reduces = c[i].kind == AJ_COLL_ALL_REDUCE || c[i].kind == AJ_COLL_REDUCE ||
                           c[i].kind == AJ_COLL_REDUCE_SCATTER;
      if (reduces) combine_of(c[i].dtype, c[i].op);  // refused here, where nobody waits yet
    }
    *out = comm_of(comm).start(c, n);
  });
}

aj_status* test(void* w, int32_t* done) {
  Work& work = *static_cast<Work*>(w);
  std::lock_guard hold(work.shared->lock);
  *done = work.job->state == Job::done;
  return work.job->state == Job::failed ? kit::fail(AJ_UNAVAILABLE, work.job->why) : nullptr;
}
aj_status* wait(void* w, int64_t timeout_ms) {
  Work& work = *static_cast<Work*>(w);
  std::unique_lock hold(work.shared->lock);
  if (!work.shared->changed.wait_for(hold, std::chrono::milliseconds(timeout_ms),
                                     [&] { return work.job->state != Job::running; }))
    return kit::fail(AJ_DEADLINE, "gloo: the work is not done after ", timeout_ms, " ms");
  return work.job->state == Job::failed ? kit::fail(AJ_UNAVAILABLE, work.job->why) : nullptr;
}
void drop(void* w) { delete static_cast<Work*>(w); }

aj_status* abort(void* c, aj_str why) {
  return guard("gloo", [&] { comm_of(c).abort(std::string(kit::view_of(why))); });
}
aj_status* close(void* c, int64_t timeout_ms) {
  return guard("gloo", [&] {
    std::unique_ptr<Comm> held(&comm_of(c));
    held->close(timeout_ms);
  });
}

const aj_comm table = {
    .struct_size = sizeof(aj_comm),
    .minor = 0,
    .name = {"gloo", 4},
    .self = nullptr,
    .caps = caps,
    .open = open,
    .ready = ready,
    .start = start,
    .test = test,
    .wait = wait,
    .drop = drop,
    .abort = abort,
    .close = close,
    .join = nullptr,
};

}  // namespace
}  // namespace adjoin::gloo_engine

AJ_PLUGIN(.name = "gloo", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu") {
  plugin.service("aj.comm/cpu", "gloo", &adjoin::gloo_engine::table, 0);
}

// extensions/distributed/plugin.cpp: libaj_distributed.so: the table "x.distributed".
#include <adjoin/kit/plugin.hpp>

#include "explain.hpp"
#include "group.hpp"
#include "launch.hpp"
#include "reducer.hpp"
#include "server.hpp"

namespace adjoin::distributed {
namespace {

using kit::guard;

std::string copy(aj_str s) { return std::string(kit::view_of(s)); }
using HeldLink = std::shared_ptr<Link>;
Link& link_of(void* l) { return **static_cast<HeldLink*>(l); }

aj_status* serve(aj_str host, int32_t port, void** out, int32_t* out_port) {
  return guard("", [&] {
    auto made = std::make_unique<Server>(copy(host), port);
    *out_port = made->port();
    *out = made.release();
  });
}
void end_server(void* server, int64_t timeout_ms) {
  std::unique_ptr<Server> s(static_cast<Server*>(server));
  const int64_t until = now_ms() + timeout_ms;
  while (s->connected() > 0 && now_ms() < until && !kit::core().interrupted())
    std::this_thread::sleep_for(milliseconds(5));
}

aj_status* connect(aj_str host, int32_t port, int64_t timeout_ms, void** out) {
  return guard("",
               [&] { *out = new HeldLink(std::make_shared<Link>(copy(host), port, timeout_ms)); });
}
const aj_store* store(void* l) { return link_of(l).store(); }
void disconnect(void* l) {
  link_of(l).close();
  delete static_cast<HeldLink*>(l);
}
aj_status* join(void* l, aj_str world, int32_t rank, int32_t size) {
  return guard("", [&] { link_of(l).join(copy(world), rank, size); });
}
aj_status* tell(void* l, aj_str what) {
  return guard("", [&] { link_of(l).tell(copy(what)); });
}
void leave(void* l) { link_of(l).leave(); }

using Held = std::shared_ptr<Group>;
Group& group_of(void* g) { return **static_cast<Held*>(g); }
Work& work_of(void* w) { return *static_cast<Work*>(w); }

aj_status* group_open(void* l, const aj_group_def* def, void** out) {
  return guard("",
               [&] { *out = new Held(std::make_shared<Group>(*static_cast<HeldLink*>(l), *def)); });
}
aj_status* group_start(void* g, const aj_coll* c, int32_t tag, aj_tensor* const* keep, uint32_t n,
                       void** out) {
  return guard("", [&] { *out = group_of(g).start(*c, tag, keep, n).release(); });
}
aj_status* group_engine(void* g, aj_comm_caps* io) {
  return guard("", [&] { group_of(g).capabilities(io); });
}
aj_status* group_history(void* g, aj_object** out) {
  return guard("",
               [&] { kit::check(kit::core().string_new(kit::str(group_of(g).history()), out)); });
}
aj_status* engine_caps(aj_str engine, aj_str device, aj_comm_caps* io) {
  return guard("", [&] {
    const aj_comm* found = find_engine(kit::view_of(engine), copy(device));
    kit::check(found->caps(found->self, {kDLCPU, 0}, io));
  });
}
void group_close(void* g) {
  group_of(g).close();
  delete static_cast<Held*>(g);
}
aj_status* work_test(void* w, int32_t* done) {
  return guard("", [&] { *done = work_of(w).group->test(work_of(w)); });
}
aj_status* work_wait(void* w, int64_t timeout_ms) {
  return guard("", [&] { work_of(w).group->wait(work_of(w), timeout_ms); });
}
void work_drop(void* w) { delete static_cast<Work*>(w); }

std::vector<std::string> given(const aj_str* words, uint32_t n) {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < n; i++) all.push_back(copy(words[i]));
  return all;
}
aj_status* launch_words(const aj_str* words, uint32_t n, int32_t* code) {
  return guard("launch", [&] { *code = launch(given(words, n)); });
}
aj_status* explain_words(const aj_str* words, uint32_t n, int32_t* code) {
  return guard("explain-hang", [&] { *code = explain_hang(given(words, n)); });
}

Reducer& reducer_of(void* r) { return *static_cast<Reducer*>(r); }
aj_status* reducer_new(const aj_reducer_def* def, void** out) {
  return guard("", [&] {
    *out = new Reducer(def->group ? *static_cast<Held*>(def->group) : nullptr, *def);
  });
}
aj_status* reducer_arm(void* r, aj_tensor* const* roots, uint32_t n, uint8_t* reached) {
  return guard("", [&] { reducer_of(r).arm(roots, n, reached); });
}
aj_status* reducer_go(void* r) {
  return guard("", [&] { reducer_of(r).go(); });
}
aj_status* reducer_wait(void* r) {
  return guard("", [&] { reducer_of(r).wait(); });
}
void reducer_missing(void* r, uint8_t* missing, int32_t* waits) {
  *waits = reducer_of(r).waits_for(missing);
}
void reducer_hook(void* r, int32_t on) { reducer_of(r).hook(on); }
void reducer_drop(void* r) { delete &reducer_of(r); }

const aj_distributed table = {
    .struct_size = sizeof(aj_distributed),
    .minor = 0,
    .serve = serve,
    .end_server = end_server,
    .connect = connect,
    .store = store,
    .disconnect = disconnect,
    .join = join,
    .tell = tell,
    .leave = leave,
    .group_open = group_open,
    .group_start = group_start,
    .group_engine = group_engine,
    .group_history = group_history,
    .group_close = group_close,
    .work_test = work_test,
    .work_wait = work_wait,
    .work_drop = work_drop,
    .launch = launch_words,
    .explain_hang = explain_words,
    .reducer_new = reducer_new,
    .reducer_arm = reducer_arm,
    .reducer_go = reducer_go,
    .reducer_wait = reducer_wait,
    .reducer_missing = reducer_missing,
    .reducer_hook = reducer_hook,
    .reducer_drop = reducer_drop,
    .engine_caps = engine_caps,
};

}  // namespace
}  // namespace adjoin::distributed

AJ_PLUGIN(.name = "distributed", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:x.distributed") {
  plugin.service("x.distributed", "distributed", &adjoin::distributed::table, 0);
}

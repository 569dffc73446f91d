// extensions/distributed/group.cpp: starting, waiting, and saying what is wrong.
#include "group.hpp"

#include <algorithm>
#include <atomic>

namespace adjoin::distributed {

using kit::raise;
using kit::raise_as;
using kit::text;

namespace {

constexpr size_t kHistory = 2048;
constexpr int64_t kTell = 500;  // a work that waits so long is compared with the others'
constexpr int64_t kAsk = 200;   // how often the server is asked who has ended
// What is on its way from a process that has ended arrives while it is asked so often.
constexpr int64_t kLeft = 5;
constexpr int64_t kWarn = 10000;
constexpr int64_t kClose = 2000;
constexpr int64_t kCause = 1500;  // the watch's word on what an engine has found
constexpr int64_t kGlance = 100;  // within that, for the user's
constexpr const char* kError = "DistBackendError";

constexpr const char* kKinds[] = {"barrier",     "broadcast", "all_reduce",     "reduce",
                                  "all_gather",  "gather",    "reduce_scatter", "scatter",
                                  "all_to_all",  "send",      "recv",           "all_gather_v",
                                  "all_to_all_v"};
constexpr const char* kOps[] = {"sum",  "avg", "product", "min",       "max",
                                "band", "bor", "bxor",    "premul_sum"};

bool reduces(int32_t kind) {
  return kind == AJ_COLL_ALL_REDUCE || kind == AJ_COLL_REDUCE || kind == AJ_COLL_REDUCE_SCATTER;
}
bool has_root(int32_t kind) {
  return kind == AJ_COLL_BROADCAST || kind == AJ_COLL_REDUCE || kind == AJ_COLL_GATHER ||
         kind == AJ_COLL_SCATTER;
}
bool of_a_pair(int32_t kind) { return kind == AJ_COLL_SEND || kind == AJ_COLL_RECV; }

// FNV-1a: the same on every machine.
uint64_t hash(std::string_view s, uint64_t h = 0xcbf29ce484222325u) {
  for (char c : s) h = (h ^ uint8_t(c)) * 0x100000001b3u;
  return h;
}

std::string size_text(const aj_coll& c) {
  if (c.kind == AJ_COLL_BARRIER) return "";
  if (c.kind == AJ_COLL_ALL_TO_ALL_V) return text(" ", c.dtype);
  std::string sizes = text(c.count);
  if (c.kind == AJ_COLL_ALL_GATHER_V) sizes = "parts of several sizes";
  return text(" ", c.dtype, "[", sizes, "]");
}

// wanted "": the first one. Threads that ask while another one's question loads the plugins would
// find few.
const aj_comm* engine_named(const std::string& slot, std::string_view wanted, std::string* known) {
  static std::mutex& lock = *new std::mutex;
  std::lock_guard hold(lock);
  const uint32_t n = kit::services().count(kit::str(slot));
  for (uint32_t i = 0; i < n; i++) {
    aj_service_def d = {};
    d.struct_size = sizeof d;
    kit::check(kit::services().at(kit::str(slot), i, &d));
    if (wanted.empty() || kit::view_of(d.name) == wanted)
      return static_cast<const aj_comm*>(d.table);
    *known += text(known->empty() ? "" : ", ", d.name);
  }
  return nullptr;
}

// Of threads that are processes each has the same ones.
std::shared_ptr<const std::vector<int32_t>> shared_ranks(const aj_group_def& def) {
  static std::mutex& lock = *new std::mutex;
  static auto& last = *new std::weak_ptr<const std::vector<int32_t>>;
  std::vector<int32_t> wanted(def.ranks, def.ranks + def.size);
  std::lock_guard hold(lock);
  auto found = last.lock();
  if (!found || *found != wanted) {
    found = std::make_shared<const std::vector<int32_t>>(std::move(wanted));
    last = found;
  }
  return found;
}

}  // namespace

const aj_comm* find_engine(std::string_view wanted, const std::string& device) {
  std::string known;
  // Who offers itself by name, too, is loaded alone, without the libraries of all others.
  if (!wanted.empty())
    if (const aj_comm* found = engine_named(text("aj.comm/", device, "/", wanted), wanted, &known))
      return found;
  if (const aj_comm* found = engine_named("aj.comm/" + device, wanted, &known)) return found;
  if (wanted.empty())
    raise(AJ_NOT_FOUND, "no plugin offers an engine for collectives of '", device,
          "'; apt-get install libgloo-dev and ./run build make the plugin gloo (adjoin plugins why "
          "gloo)");
  raise(AJ_NOT_FOUND, "no plugin offers the engine '", wanted, "' for ", device,
        "; there are: ", known.empty() ? "none" : known.c_str(), " (adjoin plugins why ", wanted,
        ")");
}

Work::~Work() {
  if (group) group->forget(*this);
}

Group::Group(std::shared_ptr<Link> link, const aj_group_def& def)
    : link_(std::move(link)),
      name_(kit::view_of(def.name)),
      label_(def.label.len ? kit::view_of(def.label) : kit::view_of(def.name)),
      device_name_(kit::view_of(def.device)),
      held_ranks_(shared_ranks(def)),
      rank_(def.rank),
      timeout_ms_(def.timeout_ms) {
  if (device_name_ != "cpu") {
    int32_t type = 0;
    kit::check(kit::core().device_find(def.device, &type));
    device_ = {DLDeviceType(type),
               AJ_HAS_FIELD(&def, aj_group_def, device_index) ? def.device_index : 0};
  }
  engine_ = find_engine(kit::view_of(def.engine), device_name_);
  can_.struct_size = sizeof can_;
  kit::check(engine_->caps(engine_->self, device_, &can_));
  aj_comm_config config = {};
  config.struct_size = sizeof config;
  config.device = device_;
  config.rank = rank_;
  config.size = def.size;
  config.name = kit::str(name_);
  config.host = kit::str(link_->address());
  config.store = link_->store();
  config.timeout_ms = timeout_ms_;
  kit::check(engine_->open(engine_->self, &config, &comm_));
  teller_ = link_->tells([this] { return ring(); });
}

Group::~Group() { close(); }

std::unique_ptr<Work> Group::start(const aj_coll& given, int32_t tag, aj_tensor* const* keep,
                                   uint32_t n) {
  auto w = std::make_unique<Work>();
  aj_coll c = given;
  auto record = std::make_shared<Record>();
  uint32_t site = 0;
  kit::core().get_line(&record->line, &site);
  if (site) record->line = site;
  line_text(record->line);  // for threads that cannot make it
  std::lock_guard hold(lock_);
  if (std::string why = aborted_ ? why_ : link_->broken(); !why.empty()) {
    const bool known = c.kind >= 0 && size_t(c.kind) < std::size(kKinds);
    raise_as(kError, AJ_ABORTED, why, " [rank ", ranks_[size_t(rank_)], " was about to start ",
             known ? kKinds[c.kind] : "a collective", " at ", line_text(record->line), "]");
  }
  if (!comm_) raise(AJ_PRECONDITION, "the group ", label_, " is destroyed");
  refuse_what_it_cannot(c);
  std::string sides = label_;
  if (of_a_pair(c.kind)) {
    const int32_t from = c.kind == AJ_COLL_SEND ? rank_ : c.peer,
                  to = c.kind == AJ_COLL_SEND ? c.peer : rank_;
    sides = text(label_, " ", from, ">", to, " tag ", tag);
    w->order = sides;
    c.seq = ++pairs_[sides];
  } else {
    w->order = label_;
    c.seq = ++next_;
  }
  std::string agreed =
      text(reduces(c.kind) ? kOps[c.op] : "", size_text(c), " ", has_root(c.kind) ? c.peer : -1);
  if (of_a_pair(c.kind))
    agreed = "pair" + agreed;
  else
    agreed = kKinds[c.kind] + agreed;
  if (c.kind == AJ_COLL_ALL_GATHER_V)
    for (size_t i = 0; i < ranks_.size(); i++) agreed += text(" ", c.out_counts[i]);
  const uint64_t h = hash(agreed, hash(text(c.seq, sides)));
  c.fingerprint = uint32_t(h ^ h >> 32);
  record->seq = c.seq;
  record->fingerprint = c.fingerprint;
  record->transfer = of_a_pair(c.kind);
  record->what = text(kKinds[c.kind], " #", c.seq, reduces(c.kind) ? text(" ", kOps[c.op]) : "",
                      size_text(c), has_root(c.kind) ? text(" root ", c.peer) : "",
                      c.kind == AJ_COLL_SEND   ? text(" to rank ", ranks_[size_t(c.peer)])
                      : c.kind == AJ_COLL_RECV ? text(" from rank ", ranks_[size_t(c.peer)])
                                               : "",
                      label_ == "default" ? "" : text(" of group ", label_));
  w->record = record;
  if (aj_status* s = engine_->start(comm_, &c, 1, &w->work)) not_started(s, *record);
  w->group = shared_from_this();
  w->keep.assign(keep, keep + n);
  for (aj_tensor* t : w->keep) kit::core().retain(t);
  if (!unwatched_.empty()) sweep();
  history_.push_back(record);
  if (history_.size() > kHistory) history_.pop_front();
  link_->doing(record->what, record->line);
  return w;
}

void Group::refuse_what_it_cannot(const aj_coll& c) const {
  const bool known = c.kind >= 0 && size_t(c.kind) < std::size(kKinds) &&
                     (!reduces(c.kind) || (c.op >= 0 && size_t(c.op) < std::size(kOps)));
  if (!known)
    raise(AJ_INVALID_ARGUMENT, "there is no collective of kind ", c.kind, " and op ", c.op);
  if (!(can_.kinds >> c.kind & 1))
    raise(AJ_UNIMPLEMENTED, kKinds[c.kind], ": the engine ", engine_->name, " does not have it");
  const DLDevice d = c.device;
  if (d.device_type != device_.device_type || d.device_id != device_.device_id)
    raise(AJ_INVALID_ARGUMENT, kKinds[c.kind], ": the group has the engine ", engine_->name,
          " for ", device_name_, ":", device_.device_id, "; its tensors are on ",
          kit::core().device_name(int32_t(d.device_type)), ":", d.device_id,
          ": a process uses one device of a kind");
  if (!reduces(c.kind)) return;
  aj_dtype_info info = {};
  info.struct_size = sizeof info;
  kit::check(kit::core().dtype_info(c.dtype, &info));
  if (info.index < 64 && can_.dtypes[c.op] >> info.index & 1) return;
  raise(AJ_UNIMPLEMENTED, kKinds[c.kind], " ", kOps[c.op], ": the engine ", engine_->name,
        " does not compute it in ", info.name, "; cast with .to(), or reduce what the dtype has");
}

bool Group::test(Work& w) {
  int32_t done = 0;
  if (aj_status* s = engine_->test(w.work, &done)) engine_failed(w, s);
  if (done) {
    w.record->state = Record::done;
  } else if (std::string why = link_->broken(); !why.empty()) {
    fail(w, why);
  }
  return done;
}

void Group::wait(Work& w, int64_t timeout_ms) {
  if (timeout_ms < 0) timeout_ms = timeout_ms_;
  const int64_t began = now_ms();
  int64_t waited = w.asked = 0;
  const Waiting counted;
  for (;;) {
    aj_status* s = engine_->wait(
        w.work, std::clamp<int64_t>(timeout_ms - waited, 1, Waiting::pause_after(waited)));
    if (!s) {
      w.record->state = Record::done;
      link_->waits(false);
      return;
    }
    if (kit::core().status_code(s) != AJ_DEADLINE) engine_failed(w, s);
    kit::core().status_free(s);
    link_->waits(true);
    waited = now_ms() - began;
    look(w, waited, timeout_ms);
  }
}

// What an engine cannot do is the caller's mistake and keeps its class; a failure has the class of
// failures wherever it is met, in a hook of the tape as well.
void Group::not_started(aj_status* s, const Record& record) const {
  if (kit::core().status_code(s) != AJ_UNAVAILABLE) throw kit::Error(s);
  const std::string said(kit::view_of(kit::core().status_message(s)));
  kit::core().status_free(s);
  raise_as(kError, AJ_UNAVAILABLE, said, " [rank ", ranks_[size_t(rank_)], " was about to start ",
           describe(record), "]");
}

// Of the threads of a process that wait one warns, and not for each work.
bool Group::warns() {
  static std::atomic<int64_t> last = -kWarn;
  int64_t before = last.load(), now = now_ms();
  return now - before >= kWarn && last.compare_exchange_strong(before, now);
}

// What may be wrong with a work that is not done.
void Group::look(Work& w, int64_t waited, int64_t timeout_ms) {
  if (std::string why = link_->broken(); !why.empty()) fail(w, why);
  if (kit::core().interrupted()) raise(AJ_CANCELLED, "interrupted");
  if (waited - w.asked > std::max(kAsk, int64_t(ranks_.size()) / 4)) {
    w.asked = waited;
    // Whoever ended first: others may have ended because of that one.
    const int r = link_->first_left(ranks_, ranks_[size_t(rank_)]);
    if (r >= 0 && ++w.left >= kLeft)
      fail(w, text("rank ", r,
                   " has ended its part (destroy_process_group, or the end of its program), and "
                   "does not take part; every process must start the same collectives: has one "
                   "more batches than the other?"));
  }
  if (!w.told && waited > kTell) {
    w.told = true;
    tell_that_it_waits(w);
  }
  if (waited > timeout_ms || (!w.warned && waited > kWarn && warns())) {
    std::string others;
    try {
      others = link_->others();
    } catch (const kit::Error&) {  // the next look says why
      return;
    }
    if (waited > timeout_ms)
      fail(w, text("nothing came within ", double(timeout_ms) / 1000, " s; the others: ", others),
           AJ_DEADLINE);
    w.warned = true;
    std::string said = text("rank ", ranks_[size_t(rank_)], " waits for ", waited / 1000, " s in ",
                            describe(*w.record), "; the others: ", others);
    kit::core().log(1, AJ_STR_LIT("distributed"), kit::str(said));
  }
}

void Group::fail(Work& w, const std::string& why, int32_t code) {
  w.record->state = Record::failed;
  if (code == AJ_ABORTED) abort(why);
  raise_as(kError, code, why, " [rank ", ranks_[size_t(rank_)], " was in ", describe(*w.record),
           "]");
}

// An engine says that a connection broke; the watch knows whose, and why.
void Group::engine_failed(Work& w, aj_status* s) {
  std::string said(kit::view_of(kit::core().status_message(s)));
  kit::core().status_free(s);
  std::string why = link_->broken();
  for (const int64_t until = now_ms() + kCause; why.empty() && now_ms() < until;) {
    if (kit::core().interrupted()) raise(AJ_CANCELLED, "interrupted");
    why = link_->broken_within(kGlance);
  }
  if (why.empty())
    if (const int r = link_->first_left(ranks_, ranks_[size_t(rank_)]); r >= 0)
      why = text("rank ", r, " has ended its part");
  if (!why.empty()) fail(w, why);
  // The others cannot know: they would wait for this process.
  why = text(engine_->name, ": ", said);
  try {
    link_->tell(text("has an engine that failed: ", why, ", in ", describe(*w.record)));
  } catch (const kit::Error&) {  // then they hear that it ends
  }
  fail(w, why);
}

void Group::abort(const std::string& why) {
  std::lock_guard hold(lock_);
  if (aborted_) return;
  aborted_ = true;
  why_ = why;
  if (comm_) kit::core().status_free(engine_->abort(comm_, kit::str(why)));
}

// Whose tensors an engine may still write to, or read: they live until it is done. Those of a work
// that was broken off are never given back.
void Group::forget(Work& w) {
  std::lock_guard hold(lock_);
  unwatched_.push_back({w.work, std::move(w.keep)});
  sweep();
}

void Group::sweep() {
  std::erase_if(unwatched_, [&](Unwatched& u) {
    int32_t done = 0;
    kit::core().status_free(engine_->test(u.work, &done));
    if (!done) return false;
    for (aj_tensor* t : u.keep) kit::core().release(t);
    engine_->drop(u.work);
    return true;
  });
}

void Group::capabilities(aj_comm_caps* io) {
  kit::check(engine_->caps(engine_->self, device_, io));
}

void Group::close() {
  link_->forgets(std::exchange(teller_, 0));
  std::lock_guard hold(lock_);
  if (!comm_) return;
  if (!link_->broken().empty() && !aborted_) {
    aborted_ = true;
    why_ = link_->broken();
    kit::core().status_free(engine_->abort(comm_, kit::str(why_)));
  }
  kit::core().status_free(engine_->close(comm_, kClose));
  sweep();
  // A thread of the engine's that does not come back may still use the store.
  if (aborted_ || !unwatched_.empty()) new std::shared_ptr<Link>(link_);
  comm_ = nullptr;
}

}  // namespace adjoin::distributed

// frontends/cli/conform/comm.cpp: `adjoin conform --comm ENGINE`: every collective that the engine
// says it has, in threads that each are a process of it; then deadlines, mismatches and an end in
// between.
#include "comm.hpp"

#include <unistd.h>

#include <adjoin/kit/dtype.hpp>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <thread>

#include "../cli.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int64_t kPatience = 20000;
constexpr size_t kTold = 20;    // failures that are printed
constexpr size_t kMargin = 64;  // bytes beside a result, which nobody may write to
constexpr char kUntouched = 0x5a;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

struct Told {  // by all threads
  std::mutex lock;
  std::vector<std::string> failures;
  std::atomic<int64_t> passed = 0;

  void expect(bool good, const std::string& what) {
    if (good) {
      passed++;
      return;
    }
    std::lock_guard hold(lock);
    failures.push_back(what);
    if (failures.size() <= kTold) std::cout << "failed: " << what << std::endl;
  }
};

class Rank {
 public:
  Rank(const aj_comm& engine, Told& told, const aj_store* store, const std::string& name, int rank,
       int size)
      : engine_(engine), told_(told), rank_(rank), size_(size) {
    aj_comm_config c = {};
    c.struct_size = sizeof c;
    c.device = {kDLCPU, 0};
    c.rank = rank, c.size = size;
    c.name = kit::str(name), c.host = AJ_STR_LIT("127.0.0.1");
    c.store = store;
    c.timeout_ms = kPatience;
    kit::check(engine_.open(engine_.self, &c, &comm_));
  }
  ~Rank() { kit::core().status_free(engine_.close(comm_, 2000)); }

  void expect(bool good, const std::string& what) {
    told_.expect(good, kit::text(what, " (rank ", rank_, " of ", size_, ")"));
  }
  void* start(aj_coll c) {
    void* work = nullptr;
    kit::check(engine_.start(comm_, &c, 1, &work));
    return work;
  }
  // The code of what wait says; 0: done.
  int32_t wait(void* work, int64_t ms, std::string* said = nullptr) {
    aj_status* s = engine_.wait(work, ms);
    const int32_t code = s ? kit::core().status_code(s) : 0;
    if (s && said) *said = kit::view_of(kit::core().status_message(s));
    kit::core().status_free(s);
    return code;
  }
  // By asking again and again.
  bool poll(void* work, int64_t ms) {
    const auto until = Clock::now() + milliseconds(ms);
    for (int32_t done = 0; Clock::now() < until;) {
      kit::check(engine_.test(work, &done));
      if (done) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
  void drop(void* work) { engine_.drop(work); }

  aj_coll of(int32_t kind, DLDataType dtype, uint64_t count) {
    aj_coll c = {};
    c.struct_size = sizeof c;
    c.kind = kind, c.peer = -1;
    c.dtype = dtype, c.count = count;
    c.device = {kDLCPU, 0};
    c.scale = 0.5;
    c.seq = ++seq_;
    c.fingerprint = uint32_t(c.seq) * 2654435761u;
    return c;
  }
  void one(const CollectiveCase& k);
  void without_order();
  void late();
  void transfers();
  void mismatch_and_abort(bool tagged, const std::function<void()>& all_here);

 private:
  const aj_comm& engine_;
  Told& told_;
  int rank_, size_;
  uint64_t seq_ = 0;
  void* comm_ = nullptr;
};

void Rank::one(const CollectiveCase& k) {
  const size_t item = size_t(kit::bytes_of(k.dtype));
  const size_t nin = k.in_size(rank_, size_), nout = k.out_size(rank_, size_);
  std::vector<char> in(nin * item),
      out(2 * kMargin + std::max(nout, k.in_place ? nin : 0) * item, kUntouched);
  char* at = out.data() + kMargin;
  const bool here = k.in_place && nin;
  for (size_t i = 0; i < nin; i++)
    write_number(k.dtype, here ? at : in.data(), i, k.given(rank_, i));
  const std::vector<uint64_t> in_counts = k.in_counts(rank_, size_),
                              out_counts = k.out_counts(rank_, size_);
  aj_coll c = of(k.kind, k.dtype, k.count);
  c.op = k.op, c.peer = k.root;
  if (k.kind == AJ_COLL_ALL_GATHER_V) c.count = nin;
  c.in = nin ? (here ? at : in.data()) : nullptr;
  c.out = nout || here ? at : nullptr;
  c.in_counts = in_counts.empty() ? nullptr : in_counts.data();
  c.out_counts = out_counts.empty() ? nullptr : out_counts.data();
  const std::string name = k.name(size_);
  void* work = nullptr;
  try {
    work = start(c);
  } catch (const kit::Error& e) {
    return expect(false, name + ": " + e.what());
  }
  std::string said = "it is not done after 20 s";
  const bool done = seq_ % 7 ? wait(work, kPatience, &said) == 0 : poll(work, kPatience);
  drop(work);
  if (!done) {  // the ranks are not together any more
    expect(false, name + ": " + said);
    throw std::runtime_error("the rest is given up");
  }
  const std::vector<Number> wanted = k.wanted(rank_, size_);
  for (size_t i = 0; i < wanted.size(); i++) {
    const Number got = read_number(k.dtype, at, i);
    if (!k.same(got, wanted[i]))
      return expect(false, kit::text(name, ": element ", i, " is ", got.real(), ", wanted is ",
                                     wanted[i].real()));
  }
  for (size_t i = 0; i < kMargin; i++)
    if (out[i] != kUntouched || out[out.size() - 1 - i] != kUntouched)
      return expect(false, name + ": it wrote beside the result");
  expect(true, name);
}

// Several at once, waited for from the last one on.
void Rank::without_order() {
  constexpr size_t kWorks = 8;
  std::vector<std::vector<double>> x(kWorks);
  std::vector<void*> works;
  for (size_t i = 0; i < kWorks; i++) {
    x[i].assign(100 * i, rank_ + double(i));
    aj_coll c = of(AJ_COLL_ALL_REDUCE, kit::dtype_of<double>, x[i].size());
    c.in = c.out = x[i].data();
    works.push_back(start(c));
  }
  for (size_t i = kWorks; i-- > 0;) {
    bool good = wait(works[i], kPatience) == 0;
    for (double v : x[i]) good = good && v == size_ * (size_ - 1) / 2.0 + double(i) * size_;
    expect(good, kit::text("all_reduce ", i, " of several at once"));
    drop(works[i]);
  }
}

void Rank::late() {
  if (rank_ == 0) std::this_thread::sleep_for(milliseconds(200));
  std::vector<double> x(10, 1.0);
  aj_coll c = of(AJ_COLL_ALL_REDUCE, kit::dtype_of<double>, x.size());
  c.in = c.out = x.data();
  void* work = start(c);
  if (rank_) expect(wait(work, 20) == AJ_DEADLINE, "a wait whose time is over says AJ_DEADLINE");
  expect(wait(work, kPatience) == 0 && x[9] == size_, "and the work goes on");
  drop(work);
}

void Rank::transfers() {
  const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
  constexpr size_t kCounts[] = {0, 3, 50'000};
  std::vector<std::vector<float>> from, to;
  std::vector<void*> works;
  for (size_t n : kCounts) {
    from.emplace_back(n, float(rank_) + float(n));
    to.emplace_back(n, -1.0f);
  }
  auto tag = [&](int sender, size_t i) { return uint32_t(1000 + 10 * sender + int(i)); };
  for (size_t i = 3; i-- > 0;) {  // in another order than they are sent
    aj_coll c = of(AJ_COLL_RECV, kit::dtype_of<float>, kCounts[i]);
    c.peer = left, c.out = to[i].data(), c.fingerprint = tag(left, i), c.seq = 1;
    works.push_back(start(c));
  }
  for (size_t i = 0; i < 3; i++) {
    aj_coll c = of(AJ_COLL_SEND, kit::dtype_of<float>, kCounts[i]);
    c.peer = right, c.in = from[i].data(), c.fingerprint = tag(rank_, i), c.seq = 1;
    works.push_back(start(c));
  }
  for (void* w : works) {
    expect(wait(w, kPatience) == 0, "send and recv to both neighbours");
    drop(w);
  }
  bool good = true;
  for (size_t i = 0; i < 3; i++)
    for (float v : to[i]) good = good && v == float(left) + float(kCounts[i]);
  expect(good, "what was received is what was sent");
}

// The last thing that a communicator does.
void Rank::mismatch_and_abort(bool tagged, const std::function<void()>& all_here) {
  std::vector<double> x(1000, rank_);
  const bool takes_part = tagged || rank_ != 0;
  void* work = nullptr;
  aj_coll c = of(AJ_COLL_ALL_REDUCE, kit::dtype_of<double>, x.size());
  c.in = c.out = x.data();
  if (tagged && rank_ == 0) c.fingerprint ^= 0x5555;
  if (takes_part) {
    work = start(c);
    expect(wait(work, 200) == AJ_DEADLINE, tagged ? "collectives that differ do not meet: all wait"
                                                  : "who waits for one that does not come waits");
  }
  all_here();
  std::thread breaks([this] {
    std::this_thread::sleep_for(milliseconds(100));
    kit::core().status_free(engine_.abort(comm_, AJ_STR_LIT("rank 7 was killed")));
  });
  if (takes_part) {
    const auto began = Clock::now();
    std::string said;
    const int32_t code = wait(work, kPatience, &said);
    const double took = seconds_since(began);
    expect(code != 0 && code != AJ_DEADLINE && said.find("rank 7 was killed") != std::string::npos,
           "a work that is broken off says why: " + said);
    expect(took < 1.1, kit::text("abort ends works within a second, it took ", took));
  }
  breaks.join();
  void* later = nullptr;
  aj_status* s = engine_.start(comm_, &c, 1, &later);
  int32_t refused = s ? kit::core().status_code(s) : 0;
  kit::core().status_free(s);
  if (later) refused = wait(later, 1000);
  expect(refused != 0 && refused != AJ_DEADLINE, "nothing starts after abort");
  if (work) drop(work);
  if (later) drop(later);
}

class Suite {
 public:
  Suite(const aj_comm& engine, int ranks, int own_rank)
      : engine_(engine), ranks_(ranks), own_(own_rank) {
    caps_.struct_size = sizeof caps_;
    kit::check(engine.caps(engine.self, {kDLCPU, 0}, &caps_));
  }

  bool run() {
    for (int n = own_ < 0 ? 1 : ranks_; n <= ranks_; n++) in_processes(n);
    const size_t failed = told_.failures.size();
    std::cout << kit::view_of(caps_.engine) << ": " << told_.passed.load() << " checks passed, "
              << failed << " failed; up to " << ranks_ << " processes"
              << (failed ? "" : "; conforms") << std::endl;
    return !failed && told_.passed > 0;
  }

 private:
  bool has(int32_t kind) const { return caps_.kinds >> kind & 1; }

  void in_processes(int n) {
    auto store = local_store();
    std::atomic<int> here = 0;
    std::vector<std::thread> threads;
    auto one = [&](int rank) {
      try {
        Rank r(engine_, told_, store.get(), kit::text("conform/", n), rank, n);
        for (const CollectiveCase& k : collective_cases(caps_, n)) r.one(k);
        const bool sums = has(AJ_COLL_ALL_REDUCE) && caps_.dtypes[AJ_RED_SUM] >> AJ_DT_FLOAT64 & 1;
        if (sums) r.without_order();
        if (sums && n > 1) r.late();
        if (n > 1 && has(AJ_COLL_SEND) && has(AJ_COLL_RECV)) r.transfers();
        if (sums && n > 1)
          r.mismatch_and_abort(caps_.flags & AJ_COMM_TAGGED, [&] {
            here++;
            while (own_ < 0 && here < n) std::this_thread::sleep_for(milliseconds(1));
          });
      } catch (const std::exception& e) {
        told_.expect(false, kit::text(e.what(), " (rank ", rank, " of ", n, ")"));
        here += n;
      }
    };
    if (own_ >= 0) return one(own_);
    for (int rank = 0; rank < n; rank++) threads.emplace_back(one, rank);
    for (std::thread& t : threads) t.join();
  }

  const aj_comm& engine_;
  int ranks_, own_;
  aj_comm_caps caps_ = {};
  Told told_;
};

const aj_comm& engine_named(const std::string& name) {
  const uint32_t n = kit::services().count(AJ_STR_LIT("aj.comm/cpu"));
  std::string known;
  for (uint32_t i = 0; i < n; i++) {
    aj_service_def d = {};
    d.struct_size = sizeof d;
    kit::check(kit::services().at(AJ_STR_LIT("aj.comm/cpu"), i, &d));
    if (kit::view_of(d.name) == name) return *static_cast<const aj_comm*>(d.table);
    known += kit::text(known.empty() ? "" : ", ", d.name);
  }
  throw std::runtime_error("conform: no plugin offers the engine '" + name +
                           "' for collectives; there are: " + known);
}

}  // namespace

int conform_comm(const Words& words) {
  Arguments args(
      "adjoin conform --comm ENGINE|FILE.so [--ranks N]",
      "Drives an engine for collectives between processes (abi/comm.h) through every kind, "
      "dtype, reduction and\nsize that it says it has, in 1 to N threads that each are a "
      "process of it, and compares with plain loops. Then\ndeadlines, collectives that do "
      "not fit together, and an end in between. Under mpirun each process is one rank.");
  args.add()("comm", options::value<std::string>(), "the engine's name, or a plugin's file");
  args.add()("ranks", options::value<int>()->default_value(4), "processes at most");
  if (!args.parse(words)) return 0;
  std::string name = args.get<std::string>("comm");
  kit::bind(aj_get_interface);
  if (name.ends_with(".so")) {
    aj_plugin_info info = {};
    info.struct_size = sizeof info;
    check(plugins().inspect(borrow(name), &info));
    check(aj_load_plugin(name.c_str()));
    name = text(info.name);
  }
  const char *rank = secure_getenv("OMPI_COMM_WORLD_RANK"),
             *size = secure_getenv("OMPI_COMM_WORLD_SIZE");
  const bool alone = rank && size;
  Suite suite(engine_named(name), alone ? std::atoi(size) : args.get<int>("ranks"),
              alone ? std::atoi(rank) : -1);
  const bool good = suite.run();
  // An engine's thread may never come back from a call.
  std::cout.flush();
  _exit(good ? 0 : 1);
}

}  // namespace adjoin::cli::conform

// plugins/cpu/tune/tuner.cpp: what was measured in this process or read from a file, and measuring.
#include "tuner.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <adjoin/kit/convert.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>

#include "cpu/product/gemm.hpp"
#include "cpu/product/providers.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

// A provider has to be so much faster than our own code to serve in its place.
constexpr double kMargin = 0.97;
constexpr int kFewestRuns = 3;

struct Store {
  std::mutex lock;
  bool asked = false;  // the file at its place was read, or something else took its place
  bool changed = false;
  std::string place, state = "nothing was measured";
  Choices draft;
  std::shared_ptr<const Choices> published;

  // With the lock held.
  void take(Choices choices, std::string new_state) {
    asked = true;
    draft = std::move(choices);
    state = std::move(new_state);
    publish();
  }
  void publish() {
    changed = false;
    published = draft.rows().empty() ? nullptr : std::make_shared<const Choices>(draft);
  }
  void ask() {
    if (std::exchange(asked, true)) return;
    place = tuning_place();
    if (place.empty()) return;
    if (!exists(place)) {
      state = "absent";
      return;
    }
    try {
      Choices read = read_choices(place);
      check_is_of_here(read);
      take(std::move(read), "used");
    } catch (const std::exception& e) {
      state = text("ignored, ", e.what());
      std::string message = text("tuning: ", place, " is ignored: ", e.what());
      core().log(2, AJ_STR_LIT("cpu"), str(message));
    }
  }
};
Store& store() {
  static auto* one = new Store;  // threads may still multiply while the process exits
  return *one;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What is timed: one product, by each of those who can.
struct Candidate {
  const Providers::One* who;
  double best = HUGE_VAL, spent = 0;
  int runs = 0;
};

template <class T>
class Measured {
 public:
  explicit Measured(const aj_gemm& g)
      : a_(new T[size_t(g.m * g.k)]), b_(new T[size_t(g.k * g.n)]), c_(new T[size_t(g.m * g.n)]) {
    std::fill_n(a_.get(), g.m * g.k, cast<T>(0.5));
    std::fill_n(b_.get(), g.k * g.n, cast<T>(0.25));
    g_ = {g.m, g.n, g.k};
    g_.a = {a_.get(), g.trans_a ? g.m : g.k, g.trans_a != 0};
    g_.b = {b_.get(), g.trans_b ? g.k : g.n, g.trans_b != 0};
    g_.c = c_.get(), g_.ldc = g.n;
  }
  aj_gemm seen(aj_gemm g) const {
    g.batch = 1, g.a = a_.get(), g.b = b_.get(), g.c = c_.get();
    g.lda = g_.a.ld, g.ldb = g_.b.ld, g.ldc = g_.ldc;
    g.alpha = 1, g.beta = 0;
    return g;
  }
  // Seconds of one product, from as many as one look at the clock is worth.
  void run(Candidate& c, int64_t products) const {
    const aj_blas* who = c.who->table == &own_blas ? nullptr : c.who->table;
    double begin = now();
    for (int64_t i = 0; i < products; ++i) multiply_by(who, g_, false);
    double took = now() - begin;
    c.best = std::min(c.best, took / double(products));
    c.spent += took, ++c.runs;
  }

 private:
  std::unique_ptr<T[]> a_, b_, c_;
  Gemm<T> g_{};
};

template <class T>
std::vector<Candidate> timed(const aj_gemm& g, const Providers& from, double seconds) {
  Measured<T> one(g);
  std::vector<Candidate> all;
  aj_gemm seen = one.seen(g);
  for (const Providers::One& who : from.list())
    if (AJ_HAS_FN(who.table, aj_blas, score) && who.table->score(who.table->self, &seen) > 0)
      all.push_back({&who});
  for (Candidate& c : all) {
    one.run(c, 1);  // opens a library, makes what is kept
    c = {c.who};
    one.run(c, 1);
  }
  // In turn, so that a disturbance meets all of them; who is three times slower is left behind.
  for (bool again = true; again;) {
    again = false;
    double best = HUGE_VAL;
    for (const Candidate& c : all) best = std::min(best, c.best);
    for (Candidate& c : all) {
      if (c.best > 3 * best || (c.runs >= kFewestRuns && c.spent >= seconds)) continue;
      again = true;
      one.run(c, std::clamp<int64_t>(int64_t(2e-5 / c.best), 1, 1000));
    }
  }
  auto rank = [](const Candidate& c) {
    return c.who->table == &own_blas ? c.best * kMargin : c.best;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Candidate& x, const Candidate& y) { return rank(x) < rank(y); });
  return all;
}

int number_of(Choices& choices, const Providers::One& one) {
  Choices::Provider p = described(one);
  for (size_t i = 0; i < choices.providers.size(); ++i)
    if (choices.providers[i].name == p.name) return choices.providers[i] = p, int(i);
  if (choices.providers.size() == Choices::kMostProviders)
    raise(AJ_INVALID_ARGUMENT, "more than ", Choices::kMostProviders, " providers");
  choices.providers.push_back(p);
  return int(choices.providers.size()) - 1;
}

void check_problem(const aj_gemm& g) {
  if (g.m < 1 || g.n < 1 || g.k < 1 || std::max({g.m, g.n, g.k}) > 1 << 20 ||
      (g.m * g.n + g.n * g.k + g.m * g.k) > int64_t(1) << 31)
    raise(AJ_INVALID_ARGUMENT, "a product of ", g.m, " x ", g.k, " with ", g.k, " x ", g.n,
          " is not measured; sizes are 1 to ", 1 << 20, " and operands fit into memory");
}

aj_status* measure(void*, const aj_gemm* g, double seconds, aj_object** out) {
  return guard("tuner", [&] {
    check_problem(*g);
    const Providers& from = Providers::now();
    if (from.rest())
      raise(AJ_INVALID_ARGUMENT,
            "one provider was chosen to serve alone; unset ADJOIN_BLAS to compare");
    std::vector<Candidate> all;
    visit<Join<floating_complex, halves>>(g->dtype, [&]<class T>() {
      if (is_half<T> && !has_vectors(g->dtype))
        raise(AJ_UNIMPLEMENTED, g->dtype, " is multiplied as float32 on this processor");
      all = timed<T>(*g, from, seconds);
    });
    std::string lines;
    for (const Candidate& c : all) lines += text(c.who->name, " ", c.best, "\n");
    Store& s = store();
    std::lock_guard held(s.lock);
    Choices::Row row = {
        {g->dtype, g->trans_a != 0, g->trans_b != 0, g->m, g->n, g->k, core().num_threads()},
        number_of(s.draft, *all.front().who),
        all.front().best};
    s.draft.processor = this_processor();
    s.draft.add(row);
    s.changed = s.asked = true;
    check(core().string_new(str(lines), out));
  });
}

void publish_changes() {
  Store& s = store();
  {
    std::lock_guard held(s.lock);
    if (!s.changed) return;
    s.state = "measured by this process";
    s.publish();
  }
  forget_providers();
}

aj_status* serving_name(void*, const aj_gemm* g, aj_object** out) {
  return guard("tuner", [&] {
    publish_changes();
    Problem p = {g->dtype, g->trans_a != 0,     g->trans_b != 0, g->m, g->n,
                 g->k,     core().num_threads()};
    const aj_blas* who = serving(p, has_vectors(g->dtype), [&] { return *g; });
    std::string name = Providers::now().name_of(who);
    check(core().string_new(str(name), out));
  });
}

aj_status* load(void*, aj_str path) {
  return guard("tuner", [&] {
    std::string file(view_of(path));
    Choices read;
    if (!file.empty()) {
      try {
        read = read_choices(file);
        check_is_of_here(read);
      } catch (const Error& e) {
        raise(e.code(), file, ": ", e.message());
      }
    }
    Store& s = store();
    {
      std::lock_guard held(s.lock);
      s.place = file;
      s.take(std::move(read), file.empty() ? "nothing was measured" : "used");
    }
    forget_providers();
  });
}

aj_status* save(void*, aj_str path) {
  return guard("tuner", [&] {
    publish_changes();
    std::shared_ptr<const Choices> choices = measured();
    if (!choices) raise(AJ_INVALID_ARGUMENT, "nothing was measured, so nothing is written");
    write_file(std::string(view_of(path)), choices->text());
  });
}

aj_str place(void*) {
  static const std::string found = tuning_place();
  return str(found);
}

aj_status* show(void*, int32_t all, aj_object** out) {
  return guard("tuner", [&] {
    publish_changes();
    const Providers& now = Providers::now();
    std::shared_ptr<const Choices> choices = measured();
    Store& s = store();
    std::lock_guard held(s.lock);
    std::string lines = text("file: ", s.place.empty() ? "none" : s.place, "\nstate: ", s.state,
                             "\nprocessor: ", this_processor(), "\n");
    if (now.rest())
      lines += text("override: ", now.wish(), " serves alone (ADJOIN_BLAS or a call chose it)\n");
    for (size_t i = 0; choices && i < choices->providers.size(); ++i) {
      const Choices::Provider& p = choices->providers[i];
      auto is = [&](const Choices::Row& row) { return row.provider == int(i); };
      auto count = std::count_if(choices->rows().begin(), choices->rows().end(), is);
      bool here = now.rest() || now.here(int(i));
      lines += text("provider ", p.name, ": ", count, " classes, ", p.file, ", ", p.bytes, " bytes",
                    here ? "\n" : "; not the one that is here, so not used\n");
    }
    for (size_t i = 0; all && choices && i < choices->rows().size(); ++i) {
      const Choices::Row& row = choices->rows()[i];
      lines +=
          text("class ", name_of(row.problem), ": ", choices->providers[size_t(row.provider)].name,
               ", ", float(row.seconds * 1e6), " us\n");
    }
    check(core().string_new(str(lines), out));
  });
}

// The products of a program, one of each class, for `adjoin tune --shapes`.
class Record {
 public:
  explicit Record(const char* path) : path_(path) {}
  ~Record() {
    std::string lines;
    for (const auto& [key, g] : seen_) {
      std::string name = name_of({g.dtype, g.trans_a != 0, g.trans_b != 0, g.m, g.n, g.k, 1});
      lines += name.substr(0, name.rfind(' ')) + "\n";
    }
    int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return;
    // Appended in one call: several processes of one program may record into one file.
    if (write(fd, lines.data(), lines.size()) < 0) core().log(1, AJ_STR_LIT("cpu"), str(path_));
    close(fd);
  }
  void add(const aj_gemm& g) {
    std::array<int64_t, 6> key = {g.dtype.code << 8 | g.dtype.bits,
                                  g.trans_a,
                                  g.trans_b,
                                  class_of(g.m),
                                  class_of(g.n),
                                  class_of(g.k)};
    std::lock_guard held(lock_);
    seen_.emplace(key, g);
  }

 private:
  std::mutex lock_;
  std::string path_;
  std::map<std::array<int64_t, 6>, aj_gemm> seen_;
};
Record* the_record() {
  static const char* path = secure_getenv("ADJOIN_TUNE_RECORD");
  if (!path || !*path) return nullptr;
  static Record one(path);
  return &one;
}

}  // namespace

bool recording() {
  static const bool wanted = the_record() != nullptr;
  return wanted;
}
void record(const aj_gemm& g) { the_record()->add(g); }

std::shared_ptr<const Choices> measured() {
  Store& s = store();
  std::lock_guard held(s.lock);
  s.ask();
  return s.published;
}

const aj_tuner tuner = {
    .struct_size = sizeof(aj_tuner),
    .minor = 0,
    .self = nullptr,
    .measure = measure,
    .serving = serving_name,
    .load = load,
    .save = save,
    .place = place,
    .show = show,
};

}  // namespace adjoin::cpu

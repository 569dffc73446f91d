// plugins/cpu/product/providers.cpp: the list of providers, kept until a service comes, goes or is
// chosen.
#include "providers.hpp"

#include <sys/stat.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr aj_str kSlot = {"aj.blas/cpu", 11};
std::atomic<const Providers*> current{nullptr};
constexpr aj_blas kAnother = {};

// The core of another version may have no such function: then nothing ever changes.
uint64_t revision() {
  static const bool tells = env.services && AJ_HAS_FN(env.services, aj_services, revision);
  return tells ? env.services->revision() : 0;
}

// What the program chose, else what ADJOIN_BLAS says; "": nothing.
std::string said() {
  if (env.services && AJ_HAS_FN(env.services, aj_services, chosen)) {
    std::string_view chosen = view_of(env.services->chosen(kSlot));
    if (!chosen.empty()) return std::string(chosen);
  }
  const char* set = secure_getenv("ADJOIN_BLAS");
  return set ? set : "";
}

// As BLAS calls them; the last two are those of half types.
constexpr std::string_view kRoutineNames[] = {"sgemm", "dgemm", "cgemm", "zgemm", "hgemm", "bgemm"};

int routine_of(DLDataType d) {
  if (d.code == kDLFloat) return d.bits == 32 ? 0 : d.bits == 64 ? 1 : d.bits == 16 ? 4 : -1;
  if (d.code == kDLComplex) return d.bits == 64 ? 2 : d.bits == 128 ? 3 : -1;
  return d.code == kDLBfloat ? 5 : -1;
}

bool is_named_library(std::string_view name) {
  return std::find(std::begin(kLibraries), std::end(kLibraries), name) != std::end(kLibraries);
}

}  // namespace

// What is the name of no provider is one of a library.
const aj_blas* Providers::named(const std::string& name) const {
  for (const One& one : list_)
    if (one.name == name) return one.table;
  return library_blas(name);
}

// What ADJOIN_BLAS names that is neither a provider nor a library's file; "": nothing.
std::string Providers::unknown() const {
  for (std::string_view left = wish_; !left.empty();) {
    std::string_view one = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    size_t equals = one.find('=');
    auto at = std::find(std::begin(kRoutineNames), std::end(kRoutineNames), one.substr(0, equals));
    if (equals != one.npos && at != std::end(kRoutineNames)) one.remove_prefix(equals + 1);
    auto same = [&](const One& known) { return known.name == one; };
    if (std::none_of(list_.begin(), list_.end(), same) && one.find('/') == one.npos &&
        one.find(".so") == one.npos)
      return std::string(one);
  }
  return "";
}

// Raises for programs that choose; the environment can only be answered.
void Providers::tell_of_unknown() const {
  static std::atomic<bool> told{false};
  const char* set = secure_getenv("ADJOIN_BLAS");
  std::string name = set && wish_ == set ? unknown() : "";
  if (name.empty() || told.exchange(true)) return;
  std::string known;
  for (const One& one : list_) known += one.name + ", ";
  std::string message =
      text("ADJOIN_BLAS is '", std::string_view(wish_).substr(0, 100), "', and there is no '",
           std::string_view(name).substr(0, 100), "': ", known,
           "a library's path, or ROUTINE=NAME of these are possible; our own products serve");
  core().log(1, AJ_STR_LIT("blas"), str(message));
}

void Providers::understand() {
  const aj_blas* rest = nullptr;
  const aj_blas* chosen[kRoutines] = {};
  for (std::string_view left = wish_; !left.empty();) {
    std::string_view one = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    size_t equals = one.find('=');
    auto at = std::find(std::begin(kRoutineNames), std::end(kRoutineNames), one.substr(0, equals));
    if (equals == one.npos || at == std::end(kRoutineNames))
      rest = named(std::string(one));
    else
      chosen[at - std::begin(kRoutineNames)] = named(std::string(one.substr(equals + 1)));
  }
  rest_ = rest;
  for (int i = 0; i < kRoutines; ++i) chosen_[i] = chosen[i] ? chosen[i] : rest;
}

std::string Providers::name_of(const aj_blas* table) const {
  if (!table) return "own";
  for (const One& one : list_)
    if (one.table == table) return one.name;
  return std::string(view_of(table->name));
}

const Providers& Providers::now() {
  const Providers* p = current.load(std::memory_order_acquire);
  return p && p->revision_ == revision() ? *p : make();
}

namespace {

bool has_lapack(const aj_blas* by, aj_str routine, void** out) {
  *out = AJ_HAS_FN(by, aj_blas, lapack) ? by->lapack(by->self, routine) : nullptr;
  return *out != nullptr;
}

// Who chose our own code wants no library.
void* chosen_lapack(void*, aj_str routine) {
  void* found = nullptr;
  const aj_blas* by = Providers::now().rest();
  if (by == found_library()) by = nullptr;
  if (by != &own_blas && !(by && has_lapack(by, routine, &found)))
    has_lapack(library_blas(""), routine, &found);
  return found;
}

}  // namespace

const aj_blas* found_library() {
  static const aj_blas table = [] {
    aj_blas t = *library_blas("");
    t.lapack = chosen_lapack;
    return t;
  }();
  return &table;
}

void forget_providers() { current.store(nullptr, std::memory_order_release); }

const Providers& Providers::make() {
  static std::mutex lock;
  auto* p = new Providers;  // old ones stay: somebody may be reading them, and they are few
  if (env.services) {
    // Counting loads who offers the service, which moves the revision.
    uint32_t n = services().count(kSlot);
    p->revision_ = revision();
    for (uint32_t i = 0; i < n && p->list_.size() < Choices::kMostProviders; ++i) {
      aj_service_def def = {};
      def.struct_size = sizeof def;
      aj_status* gone = services().at(kSlot, i, &def);  // since it was counted
      if (gone)
        core().status_free(gone);
      else
        p->list_.push_back(
            {std::string(view_of(def.name)), static_cast<const aj_blas*>(def.table)});
    }
  }
  p->wish_ = said();
  p->tell_of_unknown();
  p->understand();
  // Libraries that have a name are not compared with the others: each would be opened.
  std::erase_if(p->list_, [](const One& one) { return is_named_library(one.name); });
  if (!p->rest_) p->choices_ = measured();
  p->recorded_ = recording();
  p->plain_ = p->wish_.empty() && !p->choices_ && !p->recorded_;
  std::lock_guard held(lock);
  const Providers* other = current.load(std::memory_order_acquire);
  if (other && other->revision_ == p->revision_ && other->wish_ == p->wish_ &&
      other->choices_ == p->choices_) {
    delete p;
    return *other;
  }
  current.store(p, std::memory_order_release);
  return *p;
}

namespace {

// What somebody else's function lets out, or fails with, is told with the name that he gave
// himself.
template <class F>
auto by(const aj_blas* who, F f) {
  auto name = [who] { return text("the BLAS provider '", who->name, "': "); };
  try {
    return f();
  } catch (const Error& e) {
    throw Error(e.code(), e.kind(), name() + e.message());
  } catch (const std::exception& e) {
    raise(AJ_INTERNAL, name(), "it let an exception out: ", e.what());
  }
}

}  // namespace

int32_t score_of(const aj_blas* who, const aj_gemm& g) {
  if (!AJ_HAS_FN(who, aj_blas, score) || !AJ_HAS_FN(who, aj_blas, gemm)) return 0;
  return by(who, [&] { return who->score(who->self, &g); });
}

void product_by(const aj_blas* who, const aj_gemm& g) {
  by(who, [&] { check(who->gemm(who->self, &g)); });
}

const aj_blas* Providers::here(int number) const {
  const aj_blas* table = here_[number].load(std::memory_order_acquire);
  if (!table) {
    const Choices::Provider& wanted = choices_->providers[size_t(number)];
    table = &kAnother;
    for (const One& one : list_) {
      if (one.name != wanted.name) continue;
      Choices::Provider found = described(one);
      if (found.file == wanted.file && found.bytes == wanted.bytes) table = one.table;
    }
    here_[number].store(table, std::memory_order_release);
  }
  return table == &kAnother ? nullptr : table;
}

const aj_blas* Providers::serving(const aj_gemm& g, int threads, bool vectors) const {
  auto score = [&](const aj_blas* table) { return score_of(table, g); };
  if (recorded_) record(g);
  if (int r = routine_of(g.dtype); r >= 0 && chosen_[r])
    return chosen_[r] == &own_blas || score(chosen_[r]) <= 0 ? nullptr : chosen_[r];
  if (rest_) return nullptr;
  int number = -1;
  if (choices_)
    number = choices_->find({g.dtype, g.trans_a != 0, g.trans_b != 0, g.m, g.n, g.k, threads});
  if (number >= 0) {
    const aj_blas* table = here(number);
    if (table) return table == &own_blas || score(table) <= 0 ? nullptr : table;
  }
  if (vectors) return nullptr;
  const aj_blas* best = nullptr;
  int32_t top = 0;
  for (const One& one : list_) {
    int32_t s = score(one.table);
    if (s > top) top = s, best = one.table;
  }
  return best == &own_blas ? nullptr : best;
}

Choices::Provider described(const Providers::One& one) {
  Choices::Provider p = {one.name, "", 0};
  aj_str path = AJ_HAS_FN(one.table, aj_blas, path) ? one.table->path(one.table->self) : aj_str{};
  std::string file(view_of(path));
  if (file.empty()) return p;
  std::unique_ptr<char, decltype(&std::free)> real(realpath(file.c_str(), nullptr), &std::free);
  if (real) file = real.get();
  struct stat found;
  if (stat(file.c_str(), &found) == 0) p.bytes = uint64_t(found.st_size);
  p.file = file.substr(file.rfind('/') + 1);
  return p;
}

}  // namespace adjoin::cpu

// plugins/cpu/providers.cpp: the list of providers, kept until a service comes, goes or is chosen.
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

// Who serves alone: what the program chose, else what ADJOIN_BLAS names; "": nobody does. What is
// the name of no provider is one of a library.
std::string wish() {
  if (env.services && AJ_HAS_FN(env.services, aj_services, chosen)) {
    std::string_view chosen = view_of(env.services->chosen(kSlot));
    if (!chosen.empty()) return std::string(chosen);
  }
  const char* set = std::getenv("ADJOIN_BLAS");
  return set ? set : "";
}

}  // namespace

const Providers& Providers::now() {
  const Providers* p = current.load(std::memory_order_acquire);
  return p && p->revision_ == revision() ? *p : make();
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
  std::string who = wish();
  p->alone_ = !who.empty();
  if (p->alone_) {
    auto is = [&](const One& one) { return one.name == who; };
    bool known = std::any_of(p->list_.begin(), p->list_.end(), is);
    if (!known) who = "library";
    std::erase_if(p->list_, [&](const One& one) { return !is(one); });
  } else {
    p->choices_ = measured();
  }
  p->recorded_ = recording();
  p->plain_ = !p->alone_ && !p->choices_ && !p->recorded_;
  std::lock_guard held(lock);
  const Providers* other = current.load(std::memory_order_acquire);
  if (other && other->revision_ == p->revision_ && other->choices_ == p->choices_) {
    delete p;
    return *other;
  }
  current.store(p, std::memory_order_release);
  return *p;
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
  auto score = [&](const aj_blas* table) {
    return AJ_HAS_FN(table, aj_blas, score) ? table->score(table->self, &g) : 0;
  };
  if (recorded_) record(g);
  int number = -1;
  if (choices_)
    number = choices_->find({g.dtype, g.trans_a != 0, g.trans_b != 0, g.m, g.n, g.k, threads});
  if (number >= 0) {
    const aj_blas* table = here(number);
    if (table) return table == &own_blas || score(table) <= 0 ? nullptr : table;
  }
  if (vectors && !alone_) return nullptr;
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

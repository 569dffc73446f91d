// plugins/cpu/providers.hpp: who offers "aj.blas/cpu", and who of them serves a product.
//
// ADJOIN_BLAS or a call of choose() says who, alone. Else what was measured says it for the
// product's class (choices.hpp). Else our own code serves where it has vector code for the type,
// and whoever scores highest where it has none.
#ifndef ADJOIN_PLUGINS_CPU_PROVIDERS_HPP
#define ADJOIN_PLUGINS_CPU_PROVIDERS_HPP
#include <adjoin/abi/service.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "choices.hpp"

namespace adjoin::cpu {

// Never changes once made, so it is read without a lock; a change makes another one.
class Providers {
 public:
  struct One {
    std::string name;
    const aj_blas* table;
  };
  static const Providers& now();

  const std::vector<One>& list() const { return list_; }
  // Nobody chose, nothing was measured: our own code serves all that it has vector code for.
  bool plain() const { return plain_; }
  bool alone() const { return alone_; }  // one was chosen: it is the list
  // Null: our own code. vectors: has it vector code for this type?
  const aj_blas* serving(const aj_gemm& g, int threads, bool vectors) const;
  // Is the provider that was measured the one that is here? Asked when it is first chosen, as that
  // opens its library.
  const aj_blas* here(int number) const;

 private:
  friend void forget_providers();
  static const Providers& make();

  uint64_t revision_ = 0;
  std::vector<One> list_;  // by falling priority
  bool alone_ = false, plain_ = false;
  std::shared_ptr<const Choices> choices_;
  enum : uint8_t { kUnknown, kHere, kAnother };
  mutable std::atomic<uint8_t> state_[Choices::kMostProviders] = {};
};

// After what was measured has changed.
void forget_providers();

// m * n * k of products for which asking would take longer than multiplying.
constexpr int64_t kTiny = 8 * 8 * 8;

// problem() makes the aj_gemm, if somebody wants to see it.
template <class F>
const aj_blas* serving(int64_t work, bool vectors, int threads, F&& problem) {
  if (work <= kTiny) return nullptr;
  const Providers& p = Providers::now();
  return p.plain() && vectors ? nullptr : p.serving(problem(), threads, vectors);
}

// The name and the file by which a provider is known in files.
Choices::Provider described(const Providers::One& one);

// What tuner.cpp knows of the classes: null before anything was measured or read. The first call
// reads the file at its place.
std::shared_ptr<const Choices> measured();
bool recording();
void record(const aj_gemm& g);  // the program's products, for who asked by ADJOIN_TUNE_RECORD

}  // namespace adjoin::cpu
#endif

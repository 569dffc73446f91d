// plugins/cpu/product/providers.hpp: who offers "aj.blas/cpu", and who of them serves a product.
//
// ADJOIN_BLAS or a call of choose() says who: "openblas", "/path/to/lib.so", or several by routine,
// "blis,dgemm=openblas,cgemm=own"; who is named first without a routine serves the rest, alone.
// Else what was measured says it for the product's class (choices.hpp). Else our own code serves
// where it has vector code for the type, and whoever scores highest where it has none.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_PROVIDERS_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_PROVIDERS_HPP
#include <adjoin/abi/service.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "choices.hpp"
#include "gemm.hpp"

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
  // Who was chosen for whatever has no choice of its own; null: nobody.
  const aj_blas* rest() const { return rest_; }
  const std::string& wish() const { return wish_; }  // what was chosen, as it was said
  std::string name_of(const aj_blas* table) const;
  // Was our own code measured to be the fastest? The quick way to the most frequent answer.
  bool is_ours(const Problem& p) const {
    if (!choices_ || recorded_ || !wish_.empty()) return false;
    int number = choices_->find(p);
    return number >= 0 && here_[number].load(std::memory_order_acquire) == &own_blas;
  }
  // Null: our own code. vectors: has it vector code for this type?
  const aj_blas* serving(const aj_gemm& g, int threads, bool vectors) const;
  // Is the provider that was measured the one that is here? Asked when it is first chosen, as that
  // opens its library.
  const aj_blas* here(int number) const;

 private:
  friend void forget_providers();
  static const Providers& make();
  void understand();  // the wish
  std::string unknown() const;
  void tell_of_unknown() const;
  const aj_blas* named(const std::string& name) const;

  static constexpr int kRoutines = 6;
  uint64_t revision_ = 0;
  std::vector<One> list_;  // by falling priority
  std::string wish_;
  const aj_blas* chosen_[kRoutines] = {};  // by dtype; null: by the rules below
  const aj_blas* rest_ = nullptr;
  bool plain_ = false, recorded_ = false;
  std::shared_ptr<const Choices> choices_;
  // By their numbers: null was not asked for yet; a table without functions: it is another one.
  mutable std::atomic<const aj_blas*> here_[Choices::kMostProviders] = {};
};

// The service "library": whichever is found, with LAPACK of the one that was chosen, if it has any.
const aj_blas* found_library();

// After what was measured has changed.
void forget_providers();

// m * n * k of products for which asking would take longer than multiplying.
constexpr int64_t kTiny = 8 * 8 * 8;

// problem() makes the aj_gemm, if somebody wants to see it.
template <class F>
const aj_blas* serving(const Problem& p, bool vectors, F&& problem) {
  if (p.m * p.n * p.k <= kTiny) return nullptr;
  const Providers& now = Providers::now();
  if (now.plain() ? vectors : now.is_ours(p)) return nullptr;
  return now.serving(problem(), p.threads, vectors);
}

// The name and the file by which a provider is known in files.
Choices::Provider described(const Providers::One& one);

// What tuner.cpp knows of the classes: null before anything was measured or read. The first call
// reads the file at its place.
std::shared_ptr<const Choices> measured();
bool recording();
void record(const aj_gemm& g);  // the program's products, for who asked by ADJOIN_TUNE_RECORD

// Of who has to be somebody else; what fails there is told with his name. 0: he cannot.
int32_t score_of(const aj_blas* who, const aj_gemm& g);
void product_by(const aj_blas* who, const aj_gemm& g);

}  // namespace adjoin::cpu
#endif

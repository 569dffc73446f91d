// plugins/ops_linalg/cpu/products.cpp: who multiplies the parts of matrices that are factored.
#include "products.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

// Who serves all that has no choice of its own, of "blis,dgemm=openblas"; "": nobody was named.
std::string_view named_in(std::string_view wish) {
  std::string_view rest;
  while (!wish.empty()) {
    const std::string_view one = wish.substr(0, wish.find(','));
    wish.remove_prefix(std::min(wish.size(), one.size() + 1));
    if (one.find('=') == one.npos) rest = one;
  }
  return rest;
}

}  // namespace

const Products& Products::now() {
  static std::atomic<const Products*> kept{nullptr};
  const Products* found = kept.load(std::memory_order_acquire);
  const uint64_t revision = services_revision();
  if (found && found->revision == revision) return *found;
  auto* made = new Products{revision, {}, false};  // the old one stays: others may read it
  constexpr aj_str slot = {"aj.blas/cpu", 11};
  // As the provider reads them: what the program chose, else the variable.
  std::string_view wish;
  if (AJ_HAS_FN(&services(), aj_services, chosen)) wish = view_of(services().chosen(slot));
  if (const char* set = secure_getenv("ADJOIN_BLAS"); set && wish.empty()) wish = set;
  const std::string_view name = named_in(wish);
  made->named = !name.empty() && name != "own";
  // Our own products, which know this processor, unless somebody chose.
  for (uint32_t i = 0; i < services().count(slot); ++i) {
    aj_service_def def{};
    def.struct_size = sizeof def;
    if (aj_status* status = services().at(slot, i, &def))
      core().status_free(status);
    else if (wish.empty() && view_of(def.name) == "own" && isa() >= Isa::avx2)
      made->all.assign(1, static_cast<const aj_blas*>(def.table)), i = UINT32_MAX - 1;
    else if (i == 0 || def.priority >= 0)
      made->all.push_back(static_cast<const aj_blas*>(def.table));
  }
  kept.store(made, std::memory_order_release);
  return *made;
}

void Products::run(const aj_gemm& g) const {
  const aj_blas* best = nullptr;
  int32_t most = 0;
  for (const aj_blas* one : all)
    if (const int32_t score = one->score(one->self, &g); score > most) best = one, most = score;
  if (!best) raise(AJ_UNIMPLEMENTED, "no service of aj.blas/cpu multiplies ", g.dtype);
  check(best->gemm(best->self, &g));
}

}  // namespace adjoin::cpu

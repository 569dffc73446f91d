// plugins/ops_linalg/cpu/kernels.cpp: the processor's kernels of linear algebra: stacks of small
// matrices go to vectors of them, each other problem to the offer that thinks most of it, cut over
// the pool; our own offer is plain loops.
#include <adjoin/kit/indefinite.hpp>
#include <adjoin/kit/parallel.hpp>
#include <atomic>
#include <vector>

#include "offers.hpp"
#include "small.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

int32_t own_score(void*, const aj_linalg_problem*) { return 10; }
uint64_t own_workspace(void*, const aj_linalg_problem*) { return 0; }
aj_status* own_run(void*, const aj_linalg_problem* p, void*) {
  return guard("linalg", [&] { plain_linalg(*p); });
}

// The tables in the slot, kept until a service comes or goes.
struct Offers {
  uint64_t revision;
  bool chosen;  // the program chose the first
  std::vector<const aj_linalg*> all;

  static const Offers& now() {
    static std::atomic<const Offers*> kept{nullptr};
    const Offers* offers = kept.load(std::memory_order_acquire);
    const uint64_t revision = services_revision();
    if (offers && offers->revision == revision) return *offers;
    auto* made = new Offers{revision, false, {}};  // the old one stays: others may read it
    const aj_services& s = services();
    for (uint32_t i = 0; i < s.count(kLinalgSlot); ++i) {
      aj_service_def def{};
      def.struct_size = sizeof def;
      if (aj_status* status = s.at(kLinalgSlot, i, &def))
        core().status_free(status);
      else
        made->all.push_back(static_cast<const aj_linalg*>(def.table));
    }
    made->chosen = AJ_HAS_FN(&s, aj_services, chosen) && !view_of(s.chosen(kLinalgSlot)).empty();
    kept.store(made, std::memory_order_release);
    return *made;
  }
  const aj_linalg& best(const aj_linalg_problem& p) const {
    const aj_linalg* best = nullptr;
    int32_t most = 0;
    for (const aj_linalg* one : all) {
      const int32_t score = one->score(one->self, &p);
      if (score > most) best = one, most = score;
      if (best && chosen) break;
    }
    if (!best) raise(AJ_UNIMPLEMENTED, "no service of aj.linalg/cpu takes ", p.dtype);
    return *best;
  }
};

void move_on(aj_linalg_matrix& m, int64_t matrices, int64_t element) {
  if (m.data) m.data = static_cast<char*>(m.data) + matrices * m.stride * element;
}

struct Served {
  static void run(const aj_linalg_problem& p) {
    if (p.batch == 0) return;
    const aj_linalg& who = Offers::now().best(p);
    const int64_t size = std::max<int64_t>(std::max(p.m, p.n), 1);
    parallel_for(p.batch, grain_of(size * size * size), [&](int64_t lo, int64_t hi) {
      aj_linalg_problem part = p;
      const bool b_is_real = p.routine == AJ_LINALG_HEEVD || p.routine == AJ_LINALG_GESDD;
      const int64_t element = bytes_of(p.dtype), half = p.dtype.code == kDLComplex ? 2 : 1;
      const bool makes_complex = p.routine == AJ_LINALG_GEEV && half == 1;
      part.batch = hi - lo;
      move_on(part.a, lo, element);
      move_on(part.b, lo, b_is_real ? element / half : makes_complex ? element * 2 : element);
      move_on(part.c, lo, makes_complex ? element * 2 : element);
      move_on(part.d, lo, element);
      if (part.info) part.info += lo;
      if (part.pivots) part.pivots += lo * std::min(p.m, p.n);
      const uint64_t bytes = who.workspace(who.self, &part);
      constexpr size_t line = 64;
      std::unique_ptr<char[]> work(bytes ? new char[bytes + line] : nullptr);
      const auto place = reinterpret_cast<uintptr_t>(work.get());
      check(who.run(who.self, &part, work.get() + (line - place % line) % line));
    });
  }
};

using On = Factorings<Served>;

// As lanes of vectors, unless the program chose who serves.
template <bool (*lanes)(Args), void (*others)(Args)>
void either(Args args) {
  if (Offers::now().chosen || !lanes(args)) others(args);
}

}  // namespace

const aj_linalg own_linalg = {.struct_size = sizeof(aj_linalg),
                              .minor = AJ_ABI_MINOR,
                              .name = AJ_STR_LIT("own"),
                              .self = nullptr,
                              .score = own_score,
                              .workspace = own_workspace,
                              .run = own_run};

AJ_KERNELS(factoring_kernels) = {
    {"_::eig_stack", custom<On::eig, floating_complex>},
    {"_::eigh_stack", custom<either<Small::eigh, On::eigh>, floating_complex>},
    {"_::ldl_solve_stack", custom<Indefinite::solve, floating_complex>},
    {"_::pivot_order", custom<On::pivot_order>},
    {"_::solve_stack", custom<either<Small::solve, On::solve>, floating_complex>},
    {"_::solve_triangular_stack", custom<On::solve_triangular, floating_complex>},
    {"_::svd_stack", custom<either<Small::svd, On::svd>, floating_complex>},
    {"geqrf", custom<On::geqrf, floating_complex>},
    {"linalg::cholesky_ex", custom<either<Small::cholesky, On::cholesky>, floating_complex>},
    {"linalg::det", custom<either<Small::det, On::det>, floating_complex>},
    {"linalg::householder_product", custom<On::householder_product, floating_complex>},
    {"linalg::inv_ex", custom<either<Small::inverse, On::inverse>, floating_complex>},
    {"linalg::ldl_factor_ex", custom<Indefinite::factorize, floating_complex>},
    {"linalg::lu_factor_ex", custom<either<Small::lu, On::lu>, floating_complex>},
    {"linalg::qr", custom<either<Small::qr, On::qr>, floating_complex>},
    {"linalg::slogdet", custom<On::slogdet, floating_complex>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/reference/linalg.cpp: factorisations of matrices, one after the other.
#include <adjoin/kit/indefinite.hpp>

#include "element.hpp"

namespace adjoin::reference {
namespace {

struct Plain {
  static void run(const aj_linalg_problem& p) { kit::plain_linalg(p); }
};
using On = kit::Factorings<Plain>;

}  // namespace

AJ_KERNELS(linalg_kernels) = {
    {"_::eig_stack", custom<On::eig, floating_complex>},
    {"_::eigh_stack", custom<On::eigh, floating_complex>},
    {"_::ldl_solve_stack", custom<kit::Indefinite::solve, floating_complex>},
    {"_::pivot_order", custom<On::pivot_order>},
    {"_::solve_stack", custom<On::solve, floating_complex>},
    {"_::solve_triangular_stack", custom<On::solve_triangular, floating_complex>},
    {"_::svd_stack", custom<On::svd, floating_complex>},
    {"geqrf", custom<On::geqrf, floating_complex>},
    {"linalg::cholesky_ex", custom<On::cholesky, floating_complex>},
    {"linalg::det", custom<On::det, floating_complex>},
    {"linalg::householder_product", custom<On::householder_product, floating_complex>},
    {"linalg::inv_ex", custom<On::inverse, floating_complex>},
    {"linalg::ldl_factor_ex", custom<kit::Indefinite::factorize, floating_complex>},
    {"linalg::lu_factor_ex", custom<On::lu, floating_complex>},
    {"linalg::qr", custom<On::qr, floating_complex>},
    {"linalg::slogdet", custom<On::slogdet, floating_complex>},
    {nullptr, {}},
};

}  // namespace adjoin::reference

// plugins/gpu/kernels/binary.cuh: arithmetic of two and three elements.
#include <adjoin/kit/scalar_rows.hpp>

#include "../pointwise.cuh"

namespace adjoin::gpu {
namespace {

// A kernel cannot raise: a whole number over zero is reported, and gives 0.
template <class F>
struct Checked {
  Fault* fault;
  template <class T>
  AJ_HD T operator()(T a, T b) const {
    if constexpr (is_integer<T>) {
      if (b == T(0)) {
        report(fault, kDivisionFault, 0, 0, 0);
        return T(0);
      }
    }
    return F()(a, b);
  }
};
template <class F>
struct CheckedChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    go(Checked<F>{fault_of(call)});
  }
};
struct CheckedDivChooser {
  template <class T>
  static void choose(const aj_call* call, auto go) {
    std::string_view mode = Args(call).string(2);
    if constexpr (is_integer<T>) {
      if (mode == "floor") return go(Checked<scalar::FloorDivide>{fault_of(call)});
      if (mode == "trunc") return go(Checked<scalar::TruncDivide>{fault_of(call)});
    }
    DivChooser::choose<T>(call, go);
  }
};

}  // namespace

AJ_KERNELS(binary_kernels) = {
    AJ_BINARY_ROWS(two, three),
    {"div", two<CheckedDivChooser, numeric>},
    {"remainder", two<CheckedChooser<scalar::Remainder>, reals>},
    {"fmod", two<CheckedChooser<scalar::FMod>, reals>},
    {"floor_divide", two<CheckedChooser<scalar::FloorDivide>, reals>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

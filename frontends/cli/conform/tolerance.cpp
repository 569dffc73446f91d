// frontends/cli/conform/tolerance.cpp: what each pointwise row may be off, in units of the last
// place.
//
// A function of the kit keeps to 1 or 2 ULP (special ones to 8 in float32, 16 in float64); a device
// and the reference may each use that up. `floor` is for what cancels: terms of this size are
// rounded before they nearly vanish.
#include "tolerance.hpp"

#include <algorithm>

namespace adjoin::cli::conform {
namespace {

struct Exception {
  const char* row;
  double narrow, wide;  // steps in float32, and in float64 and complex numbers
  double floor;
};
constexpr Exception kExceptions[] = {
    {"add", 4, 4, 4},
    {"sub", 4, 4, 4},
    {"rsub", 4, 4, 4},
    {"lerp", 4, 8, 4},
    {"addcmul", 4, 8, 4},
    {"addcdiv", 4, 8, 4},
    {"nn::gelu", 4, 8, 1},
    {"nn::silu", 4, 8, 1},
    {"nn::mish", 4, 8, 1},
    {"logaddexp", 4, 8, 1},
    {"logaddexp2", 4, 8, 1},
    {"erfc", 6, 8, 0},
    {"lgamma", 16, 32, 1},
    {"digamma", 16, 32, 1},
    {"mvlgamma", 16, 32, 1},
    {"i0", 16, 32, 0},
    {"igamma", 16, 64, 1},
    {"igammac", 16, 64, 1},
    {"_::polygamma", 16, 32, 1},
    {"_::bce_logits_each", 4, 8, 1},
};

}  // namespace

bool has_steps(DLDataType dtype) {
  return dtype.code == kDLFloat || dtype.code == kDLBfloat || dtype.code == kDLComplex;
}

Tolerance tolerance_of(const Row& row, DLDataType dtype) {
  bool half = dtype.code != kDLComplex && dtype.bits < 32;  // computed in float32 and rounded once
  bool wide = dtype.code == kDLComplex || dtype.bits == 64;
  Exception e = {"", 4, 8, 0};
  if (row.name.starts_with("special::")) e = {"", 16, 32, 1};
  if (row.name.ends_with("_backward")) e = {"", 8, 16, 1};
  for (const Exception& known : kExceptions)
    if (row.name == known.row) e = known;
  Tolerance t{0, half ? 2 : wide ? e.wide : e.narrow, e.floor};
  // A complex power goes by a logarithm: what that is off by grows with the exponent.
  bool power = row.name == "pow" || row.name == "float_power";
  if (power && dtype.code == kDLComplex) t.steps = 32;
  if (const Json* own = row.test.find("ulp")) t.steps = std::max(t.steps, own->to_double());
  if (const Json* own = row.test.find("ulp_floor")) t.floor = own->to_double();
  return t;
}

}  // namespace adjoin::cli::conform

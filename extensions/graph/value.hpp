// extensions/graph/value.hpp: constants of a program as arguments of calls, and back.
#pragma once
#include "ir.hpp"

namespace adjoin::graph {

// What a call was given, kept: no tensors. Raises for what a program cannot hold.
Arg constant_of(const aj_value& v, const char* who);
// The constant, borrowed from `a`.
aj_value value_of(const Arg& a);
// The default of a parameter; None where it has none.
inline Arg default_of(const aj_param& p) {
  return p.flags & AJ_PARAM_HAS_DEFAULT ? constant_of(p.value, "default") : Arg();
}
// Is this what the op takes if nothing is given?
bool is_default(const aj_param& p, const Arg& a);
// Arguments at the end that have their default go.
void trim(const OpFacts& f, std::vector<Arg>& args);

}  // namespace adjoin::graph

// extensions/graph/rewrite.hpp: a program gets other inputs; see number, lift and view of
// abi/program.h.
#pragma once
#include "ir.hpp"

namespace adjoin::graph {

void find_number(const Program& p, std::string_view parameter, uint32_t* call, aj_value* value,
                 uint32_t* first);
void lift(Program& p, uint32_t call, std::string_view parameter, uint32_t input);
void make_view(Program& p, uint32_t input, uint32_t base, const DLTensor& from, const DLTensor& as);

}  // namespace adjoin::graph

// extensions/graph/script/door.hpp: scripted programs from outside: the table "x.script", and what
// the table "x.program" asks of them.
#pragma once
#include <adjoin/abi/script.h>

#include "../ir.hpp"

namespace adjoin::graph::script {

extern const aj_scripts table;
void register_values();
void print_to(aj_script_print print, void* self);  // functions.cpp

// Of a scripted program: inputs of its first function; results as far as it says.
uint32_t inputs(const Program& p);
uint32_t results(const Program& p);
std::string_view input_name(const Program& p, uint32_t i);
// The first function, called with tensors; the tensors of its result.
void run(Program& p, aj_tensor* const* args, uint32_t nargs, aj_tensor** rets, uint32_t nrets);
std::string print(const Program& p);
void weights_to_fields(Program& p);
void fields_to_weights(Program& p);

}  // namespace adjoin::graph::script

namespace adjoin::graph {
Program& program_in(const aj_object* o);  // plugin.cpp
}

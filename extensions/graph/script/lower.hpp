// extensions/graph/script/lower.hpp: captured programs and scripted ones, mixed.
#pragma once
#include "code.hpp"

namespace adjoin::graph::script {

// A call of scripted code in a capture. Where a tensor stood there is a mark: a Callee of kind
// method whose self is the number of the value.
struct ScriptCall {
  std::string callee;  // as the text of a program calls it: "fn:f"
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> named;
  Value result;
};

// Is it a module? Else functions, of which the first has the program's name.
bool is_module(const Program& p);
// Values on their way out (owned) and in; the program knows their classes.
aj_value boxed(const Value& v, const Unit* u, int depth = 0);
Value unboxed(const aj_value& v, const Unit* u);
// The values that are marked.
void marks(const Value& v, std::vector<uint32_t>& out);
// The text of a function that does what the captured program does.
std::string lowered(const Program& p, const std::string& name);

}  // namespace adjoin::graph::script

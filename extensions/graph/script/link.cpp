// extensions/graph/script/link.cpp: names in a scripted program become what they stand for.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

void link(Code& c, const Unit& u, const std::string& where) {
  for (Instruction& i : c) {
    for (Code& inner : i.blocks) link(inner, u, where);
    if (i.what != Instruction::What::call) continue;
    const std::string& n = i.name;
    if (n[0] == '$') {
      i.builtin = find_builtin(std::string_view(n).substr(1));
      if (!i.builtin)
        raise(AJ_NOT_FOUND, "program: '", where, "' calls the builtin '", n,
              "', which this library does not have; a newer one is needed");
    } else if (n.starts_with("fn:")) {
      i.function = u.function(n.substr(3));
      if (!i.function)
        raise(AJ_NOT_FOUND, "program: '", where, "' calls the function '", n.substr(3),
              "', which is not there");
    } else if (n[0] == '.') {
      // Of a tensor, where it is an op.
      const std::string_view name = std::string_view(n).substr(1);
      if (!find_tensor_method(name)) i.op = find_op(name, &i.in_place);
    } else {
      i.op = find_op(n, &i.in_place);
      if (!i.op)
        raise(AJ_NOT_FOUND, "program: there is no op '", n, "', which '", where,
              "' calls; `adjoin ops` lists those that are known here, its plugin may be missing");
    }
  }
}

}  // namespace

void link(Program& p) {
  Unit& u = *p.script;
  for (auto& f : u.functions) link(f->body, u, f->name);
  for (auto& c : u.classes)
    for (auto& [name, called] : c->method_names) {
      const Function* f = u.function(called);
      if (!f)
        raise(AJ_NOT_FOUND, "program: the class '", c->name, "' has the method '", name,
              "', a function '", called, "' that is not there");
      c->methods[name] = f;
    }
  for (auto& c : u.classes)
    for (const std::string& name : c->properties)
      if (!c->method(name))
        raise(AJ_NOT_FOUND, "program: the property '", name, "' of the class '", c->name,
              "' has no method");
}

}  // namespace adjoin::graph::script

// extensions/graph/script/code.hpp: a scripted program: functions over variables, with decisions
// and loops. Unlike a captured program it knows no shapes and no dtypes: a variable holds any
// value, and every call is bound when it is made, as in Python.
#pragma once
#include <set>

#include "value.hpp"

namespace adjoin::graph {
class Lexer;
}

namespace adjoin::graph::script {

struct Call;
using Builtin = Value (*)(Call&);
struct Signature;

struct Operand {
  uint32_t reg = kNone;  // a variable; kNone: the constant
  Value constant = None{};
  std::string name;    // of a keyword argument
  uint8_t spread = 0;  // 1: *list, 2: **dict
};

struct Instruction;
using Code = std::vector<Instruction>;

// `each` walks over argument 0; `test` has a condition's block and a body; `grad` sets whether
// calls are recorded in its block; `cast` is an autocast: device, enabled, dtype or None, and
// whether casts are kept or None.
struct Instruction {
  enum class What { call, branch, test, each, grad, cast, leave, next, give };
  What what = What::call;
  std::string name;  // of what is called: "add", "$len" (a builtin), ".append" (a method), "fn:f"
  std::vector<Operand> args;
  std::vector<uint32_t> targets;  // variables; several: the result is taken apart
  uint32_t star = kNone;          // of the targets, the one that takes the rest
  std::vector<Code> blocks;
  uint32_t line = 0;
  // Found once the program is read.
  Builtin builtin = nullptr;
  const struct Function* function = nullptr;
  const std::vector<Signature>* op = nullptr;
  bool in_place = false;
};

// What an annotation says: Optional[List[int]].
struct Kind {
  std::string name;  // "": anything
  std::vector<Kind> of;
};
Kind read_kind(std::string_view text);
// The value as the annotation wants it (an int becomes a float); false: it does not fit.
bool admit(Value& v, const Kind& k);

struct Param {
  enum class How : uint8_t { any, keyword, rest, named };  // x, *, x; *args; **kwargs
  std::string name, kind_text;
  Kind kind;
  How how = How::any;
  bool has_default = false;
  Value value = None{};
};

struct Function {
  std::string name;
  std::vector<Param> params;  // the first variables
  std::string kind_text;      // of the result; "": not said
  Kind kind;
  std::vector<std::string> variables;
  Code body;
};

struct Class {
  enum class Container : uint8_t { none, list, dict };
  std::string name;
  bool module = false;
  Container container = Container::none;
  std::vector<std::string> bases;
  std::set<std::string> properties;
  std::vector<std::pair<std::string, std::string>> method_names;  // method -> function
  std::vector<std::pair<std::string, Value>> constants;
  std::map<std::string, const Function*, std::less<>> methods;

  const Function* method(std::string_view called) const {
    auto found = methods.find(called);
    return found == methods.end() ? nullptr : found->second;
  }
};
// The modules in a container, by name.
std::vector<std::pair<std::string, Value>> children(const Object& o);

struct Unit {
  std::vector<std::unique_ptr<Class>> classes;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::shared_ptr<Object>> objects;  // the first is the module, if there is one
  // Where weights stand: a field of an object, or a constant of the code.
  struct Place {
    uint32_t weight;
    Object* object;
    std::string field;
  };
  std::vector<Place> places;

  const Function* function(std::string_view name) const {
    for (auto& f : functions)
      if (f->name == name) return f.get();
    return nullptr;
  }
  Class* type(std::string_view name) const {
    for (auto& c : classes)
      if (c->name == name) return c.get();
    return nullptr;
  }
};

// Text.
std::string print(const Program& p);
void parse(Lexer& in, Program& into);  // what follows `scripted`
// Names become what they stand for; raises for what is not known here.
void link(Program& p);

// A call from outside: "f" of a function, "forward" or "layers.0.forward" of the module.
Value call(Program& p, std::string_view name, std::vector<Value> args,
           std::vector<std::pair<std::string, Value>> named);
// Weights have other values: the fields of the objects follow; and back.
void weights_to_fields(Program& p);
void fields_to_weights(Program& p);

}  // namespace adjoin::graph::script

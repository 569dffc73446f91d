// extensions/graph/script/machine.hpp: a scripted program under way.
#pragma once
#include "code.hpp"
#include "signature.hpp"

namespace adjoin::graph::script {

using Named = std::vector<std::pair<std::string, Value>>;

class Machine {
 public:
  explicit Machine(Program& p) : p_(p), unit_(*p.script) {}

  Value run(const Function& f, std::vector<Value> args, Named named);
  // Whatever is called: a function, a class, a module, a method.
  Value invoke(const Value& callee, std::vector<Value> args, Named named);
  Value method(const Value& self, const std::string& name, std::vector<Value> args, Named named);
  Value attribute(const Value& self, const std::string& name);
  bool has_attribute(const Value& self, const std::string& name);
  // len, ==, bool, str, iteration: those of a class come first.
  const Function* special(const Value& v, const char* name) const {
    auto* o = in<Object>(v);
    return o ? o->of->method(name) : nullptr;
  }
  bool is_true(const Value& v);
  std::vector<Value> items(const Value& v);
  std::string text_of(const Value& v);

  const Unit& unit() const { return unit_; }
  Tensor weight(const std::string& name) const {
    for (const Weight& w : p_.weights)
      if (w.name == name && w.tensor.defined()) return w.tensor;
    raise(AJ_PRECONDITION, p_.name, ": the constant '", name, "' has no values");
  }

 private:
  enum class Flow { on, leave, next, give };
  struct Frame {
    const Function* f;
    std::vector<Value> vars;
    Value result = None{};
  };
  Flow code(const Code& c, Frame& frame);
  Flow step(const Instruction& i, Frame& frame);
  Flow each(const Instruction& i, Frame& frame);
  Value called(const Instruction& i, Frame& frame);
  const Value& read(const Operand& a, const Frame& frame) const;
  void assign(const Instruction& i, Frame& frame, Value v);
  void bind(const Function& f, Frame& frame, std::vector<Value>& args, Named& named);
  Value make(const Class& c, std::vector<Value> args, Named named);

  Program& p_;
  const Unit& unit_;
  int depth_ = 0;
};

// A call of a builtin or of a method of a value.
struct Call {
  Machine& machine;
  const char* who;
  std::vector<Value>& args;
  Named& named;

  const Value& at(size_t i) const {
    if (i >= args.size()) type_error(who, "() takes at least ", uint64_t(i + 1), " arguments");
    return args[i];
  }
  // A positional argument, or the keyword of the name; nullptr: not given.
  const Value* find(size_t i, std::string_view name) const {
    if (i < args.size()) return &args[i];
    for (auto& [n, v] : named)
      if (n == name) return &v;
    return nullptr;
  }
  void most(size_t n) const {
    if (args.size() > n)
      type_error(who, "() takes at most ", uint64_t(n), " arguments, ", uint64_t(args.size()),
                 " are given");
  }
};

Builtin find_builtin(std::string_view name);  // without the $; nullptr: none
Builtin find_method(const Value& self, std::string_view name);
Builtin find_tensor_method(std::string_view name);

// Ops of the registry: all overloads of a name. "add_" is add in place. any: functions and methods.
const std::vector<Signature>* find_op(std::string_view name, bool* in_place);
Value call_op(const std::vector<Signature>& op, bool in_place, const char* name,
              std::vector<Value>& args, Named& named, bool any = false);
Value call_named(const char* name, std::vector<Value> args, Named named = {});
bool tensor_attribute(const Tensor& t, std::string_view name, Value* out);

// Arithmetic of numbers and tensors.
Value arithmetic(char op, const Value& a, const Value& b);
// x[key], x[key] = value.
Value item(Machine& m, const Value& self, const Value& key);
void set_item(Machine& m, const Value& self, const Value& key, const Value& v);
Value index_tensor(const Tensor& t, const Value& key);
void set_tensor(const Tensor& t, const Value& key, const Value& v);
// Nested lists of numbers as a tensor.
Tensor tensor_of(const Value& data, const Value* dtype, const Value* device);
Value tensor_items(const Tensor& t);  // tolist
Value converted(const Value& t, const Value& dtype, const Value& place = None{});
std::string formatted(const Value& v, std::string_view spec, std::string_view text);
std::string character(int64_t code);  // chr

}  // namespace adjoin::graph::script

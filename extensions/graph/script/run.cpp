// extensions/graph/script/run.cpp: carries out a scripted program.
#include <algorithm>

#include "lower.hpp"
#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

constexpr int kDeepest = 400;     // calls in calls
thread_local uint32_t turns = 0;  // of loops: now and then one asks whether the user has stopped it

class GradMode {
 public:
  explicit GradMode(bool on) : before_(autograd().set_grad_mode(on)) {}
  ~GradMode() { autograd().set_grad_mode(before_); }
  GradMode(const GradMode&) = delete;

 private:
  int32_t before_;
};

// Autocast as long as it lives. A device that is not there casts nothing.
class Autocast {
 public:
  Autocast(const std::string& device, bool enabled, const Value& dtype, const Value& keep) {
    int32_t devices = 0;
    if (!found(core().device_find(str(device), &kind_))) {
      kind_ = kDLCPU;
      enabled = false;
    } else if (enabled) {
      enabled = found(core().device_count(kind_, &devices)) && devices;
    }
    before_.struct_size = sizeof before_;
    check(dispatch().autocast(kind_, &before_, nullptr));
    aj_autocast next = before_;
    if (device == view_of(core().device_name(kind_))) next.enabled = enabled;
    if (auto* d = std::get_if<DLDataType>(&dtype)) {
      if (d->bits == 16 && (d->code == kDLFloat || d->code == kDLBfloat))
        next.dtype = *d;
      else
        next.enabled = false;
    }
    if (!is<None>(keep)) next.keep = truth(keep);
    next.depth++;
    check(dispatch().autocast(kind_, nullptr, &next));
  }
  ~Autocast() { found(dispatch().autocast(kind_, nullptr, &before_)); }
  Autocast(const Autocast&) = delete;

 private:
  static bool found(aj_status* s) {
    if (s) core().status_free(s);
    return !s;
  }

  int32_t kind_ = kDLCPU;
  aj_autocast before_{};
};

// Operators that numbers have without a call: the commonest ones of loops.
struct Quick {
  Builtin copy = find_builtin("copy"), lt = find_builtin("lt"), le = find_builtin("le"),
          gt = find_builtin("gt"), ge = find_builtin("ge"), eq = find_builtin("eq"),
          ne = find_builtin("ne");
  std::pair<Builtin, char> arithmetic[10] = {
      {find_builtin("add"), '+'},  {find_builtin("iadd"), '+'}, {find_builtin("sub"), '-'},
      {find_builtin("isub"), '-'}, {find_builtin("mul"), '*'},  {find_builtin("imul"), '*'},
      {find_builtin("mod"), '%'},  {find_builtin("imod"), '%'}, {find_builtin("floordiv"), 'f'},
      {find_builtin("div"), '/'}};

  bool run(Builtin b, const Value& x, const Value& y, Value* out) const {
    auto *i = std::get_if<int64_t>(&x), *j = std::get_if<int64_t>(&y);
    auto *d = std::get_if<double>(&x), *e = std::get_if<double>(&y);
    if (!(i && j) && !(d && e)) return false;
    for (auto& [known, op] : arithmetic)
      if (b == known) return *out = script::arithmetic(op, x, y), true;
    auto compare = [&](auto p, auto q) {
      if (b == lt) return *out = p < q, true;
      if (b == le) return *out = p <= q, true;
      if (b == gt) return *out = p > q, true;
      if (b == ge) return *out = p >= q, true;
      if (b == eq) return *out = p == q, true;
      if (b == ne) return *out = p != q, true;
      return false;
    };
    return i ? compare(*i, *j) : compare(*d, *e);
  }
};
const Quick& quick() {
  static const Quick found;
  return found;
}

}  // namespace

const Value& Machine::read(const Operand& a, const Frame& frame) const {
  if (a.reg == kNone) return a.constant;
  const Value& v = frame.vars[a.reg];
  if (is<Unset>(v))
    raise_as("UnboundLocalError", AJ_PRECONDITION, "the variable '", frame.f->variables[a.reg],
             "' has no value here");
  return v;
}

Machine::Flow Machine::code(const Code& c, Frame& frame) {
  for (const Instruction& i : c)
    if (Flow f = step(i, frame); f != Flow::on) return f;
  return Flow::on;
}

Machine::Flow Machine::step(const Instruction& i, Frame& frame) try {
  switch (i.what) {
    case Instruction::What::call:
      assign(i, frame, called(i, frame));
      return Flow::on;
    case Instruction::What::branch:
      return code(i.blocks[is_true(read(i.args[0], frame)) ? 0 : 1], frame);
    case Instruction::What::test:
      for (;;) {
        code(i.blocks[0], frame);
        if (!is_true(read(i.args[0], frame))) return Flow::on;
        const Flow f = code(i.blocks[1], frame);
        if (f == Flow::give) return f;
        if (f == Flow::leave) return Flow::on;
        if (++turns % 256 == 0 && core().interrupted())
          raise(AJ_CANCELLED, p_.name, ": interrupted in a loop");
      }
    case Instruction::What::each:
      return each(i, frame);
    case Instruction::What::grad: {
      GradMode mode(is_true(read(i.args[0], frame)));
      return code(i.blocks[0], frame);
    }
    case Instruction::What::cast: {
      Autocast casts(str_of(read(i.args[0], frame)), is_true(read(i.args[1], frame)),
                     read(i.args[2], frame), read(i.args[3], frame));
      return code(i.blocks[0], frame);
    }
    case Instruction::What::leave:
      return Flow::leave;
    case Instruction::What::next:
      return Flow::next;
    case Instruction::What::give:
      frame.result = i.args.empty() ? Value(None{}) : read(i.args[0], frame);
      return Flow::give;
  }
  return Flow::on;
} catch (const Error& e) {
  // The innermost line is told, once.
  if (!i.line || i.line >= p_.lines.size() ||
      e.message().find(" (scripted at ") != std::string::npos)
    throw;
  raise_as(e.kind(), e.code(), e.message(), " (scripted at ", p_.lines[i.line], ")");
}

Machine::Flow Machine::each(const Instruction& i, Frame& frame) {
  const Value over = read(i.args[0], frame);
  auto turn = [&](Value v) {
    assign(i, frame, std::move(v));
    if (++turns % 256 == 0 && core().interrupted())
      raise(AJ_CANCELLED, p_.name, ": interrupted in a loop");
    return code(i.blocks[0], frame);
  };
  if (auto* r = std::get_if<Range>(&over)) {
    for (int64_t k = 0, n = r->count(); k < n; k++) {
      const Flow f = turn(r->start + k * r->step);
      if (f == Flow::give) return f;
      if (f == Flow::leave) break;
    }
    return Flow::on;
  }
  if (List* l = in<List>(over)) {  // which may grow under way
    for (size_t k = 0; k < l->items.size(); k++) {
      const Flow f = turn(l->items[k]);
      if (f == Flow::give) return f;
      if (f == Flow::leave) break;
    }
    return Flow::on;
  }
  for (Value& v : items(over)) {
    const Flow f = turn(std::move(v));
    if (f == Flow::give) return f;
    if (f == Flow::leave) break;
  }
  return Flow::on;
}

Value Machine::called(const Instruction& i, Frame& frame) {
  static const Quick& fast = quick();
  if (i.builtin && i.args.size() == 2) {
    Value out;
    if (fast.run(i.builtin, read(i.args[0], frame), read(i.args[1], frame), &out)) return out;
  } else if (i.builtin == fast.copy) {
    return read(i.args[0], frame);
  }
  std::vector<Value> args;
  Named named;
  args.reserve(i.args.size());
  for (const Operand& a : i.args) {
    const Value& v = read(a, frame);
    if (a.spread == 1) {
      for (Value& x : items(v)) args.push_back(std::move(x));
    } else if (a.spread == 2) {
      Dict* d = in<Dict>(v);
      if (!d) type_error("argument after ** must be a mapping, not ", type_name(v));
      for (auto& [k, x] : d->items) named.emplace_back(str_of(k), x);
    } else if (!a.name.empty()) {
      named.emplace_back(a.name, v);
    } else {
      args.push_back(v);
    }
  }
  if (i.builtin) {
    Call c{*this, i.name.c_str() + 1, args, named};
    return i.builtin(c);
  }
  const bool method_of_tensor = i.name[0] == '.' && !args.empty() && is<Tensor>(args[0]);
  if (i.op && (i.name[0] != '.' || method_of_tensor))
    return call_op(*i.op, i.in_place, i.name.c_str(), args, named);
  if (i.function) return run(*i.function, std::move(args), std::move(named));
  // A method.
  if (args.empty()) raise(AJ_INVALID_ARGUMENT, i.name, ": a method of nothing is called");
  Value self = std::move(args[0]);
  args.erase(args.begin());
  return method(self, i.name.substr(1), std::move(args), std::move(named));
}

void Machine::assign(const Instruction& i, Frame& frame, Value v) {
  if (i.targets.empty()) return;
  if (i.targets.size() == 1 && i.star == kNone) {
    frame.vars[i.targets[0]] = std::move(v);
    return;
  }
  std::vector<Value> parts = items(v);
  const size_t n = i.targets.size();
  if (i.star == kNone ? parts.size() != n : parts.size() + 1 < n) {
    if (parts.size() < n)
      value_error("not enough values to unpack (expected ", i.star == kNone ? "" : "at least ",
                  uint64_t(n - (i.star != kNone)), ", got ", uint64_t(parts.size()), ")");
    value_error("too many values to unpack (expected ", uint64_t(n), ")");
  }
  const size_t rest = parts.size() - n + 1;
  for (size_t k = 0, from = 0; k < n; k++) {
    if (k == i.star) {
      auto at = parts.begin() + std::ptrdiff_t(from);
      frame.vars[i.targets[k]] = list({at, at + std::ptrdiff_t(rest)});
      from += rest;
    } else {
      frame.vars[i.targets[k]] = std::move(parts[from++]);
    }
  }
}

void Machine::bind(const Function& f, Frame& frame, std::vector<Value>& args, Named& named) {
  frame.vars.resize(f.variables.size());
  size_t next = 0;
  Named rest;
  for (size_t k = 0; k < f.params.size(); k++) {
    const Param& p = f.params[k];
    if (p.how == Param::How::any && next < args.size())
      frame.vars[k] = std::move(args[next++]);
    else if (p.how == Param::How::rest)
      frame.vars[k] = tuple({std::make_move_iterator(args.begin() + std::ptrdiff_t(next)),
                             std::make_move_iterator(args.end())}),
      next = args.size();
  }
  if (next < args.size())
    type_error(f.name, "() takes ", uint64_t(next), " positional arguments but ",
               uint64_t(args.size()), " were given");
  for (auto& [name, v] : named) {
    size_t k = 0;
    while (k < f.params.size() &&
           (f.params[k].name != name || f.params[k].how > Param::How::keyword))
      k++;
    if (k == f.params.size()) {
      if (f.params.empty() || f.params.back().how != Param::How::named)
        type_error(f.name, "() got an unexpected keyword argument '", name, "'");
      rest.emplace_back(name, std::move(v));
    } else if (!is<Unset>(frame.vars[k])) {
      type_error(f.name, "() got multiple values for argument '", name, "'");
    } else {
      frame.vars[k] = std::move(v);
    }
  }
  for (size_t k = 0; k < f.params.size(); k++) {
    const Param& p = f.params[k];
    if (p.how == Param::How::named) {
      auto all = std::make_shared<Dict>();
      for (auto& [name, v] : rest) all->set(name, std::move(v));
      frame.vars[k] = all;
      continue;
    }
    if (is<Unset>(frame.vars[k])) {
      if (!p.has_default) type_error(f.name, "() missing 1 required argument: '", p.name, "'");
      frame.vars[k] = p.value;
      if (List* l = in<List>(p.value)) frame.vars[k] = list(l->items);
    }
    if (!p.kind.name.empty() && p.how != Param::How::rest && !admit(frame.vars[k], p.kind))
      type_error(f.name, "() expects '", p.name, "' to be ", p.kind_text, ", not ",
                 type_name(frame.vars[k]));
  }
}

Value Machine::run(const Function& f, std::vector<Value> args, Named named) {
  struct Depth {
    int& d;
    explicit Depth(int& depth) : d(depth) { d++; }
    ~Depth() { d--; }
  } deeper(depth_);
  if (depth_ > kDeepest)
    raise_as("RecursionError", AJ_PRECONDITION, f.name, ": calls lie deeper than ", kDeepest);
  Frame frame{&f, {}};
  bind(f, frame, args, named);
  code(f.body, frame);
  if (!f.kind.name.empty() && !admit(frame.result, f.kind))
    type_error(f.name, "() is said to give ", f.kind_text, " and gives ", type_name(frame.result));
  return std::move(frame.result);
}

Value Machine::make(const Class& c, std::vector<Value> args, Named named) {
  auto o = std::make_shared<Object>();
  o->of = &c;
  if (const Function* init = c.method("__init__")) {
    args.insert(args.begin(), o);
    run(*init, std::move(args), std::move(named));
  } else if (!args.empty() || !named.empty()) {
    type_error(c.name, "() takes no arguments");
  }
  return o;
}

Value Machine::invoke(const Value& callee, std::vector<Value> args, Named named) {
  if (auto* o = in<Object>(callee)) {
    const Function* f = o->of->method(o->of->module ? "forward" : "__call__");
    if (!f) type_error("'", o->of->name, "' object is not callable");
    args.insert(args.begin(), callee);
    return run(*f, std::move(args), std::move(named));
  }
  auto* c = in<Callee>(callee);
  if (!c) type_error("'", type_name(callee), "' object is not callable");
  switch (c->kind) {
    case Callee::Kind::method:
      return method(c->self, c->name, std::move(args), std::move(named));
    case Callee::Kind::function: {
      const Function* f = unit_.function(c->name);
      if (!f) raise(AJ_NOT_FOUND, "the program has no function '", c->name, "'");
      return run(*f, std::move(args), std::move(named));
    }
    case Callee::Kind::type: {
      const Class* k = unit_.type(c->name);
      if (!k) raise(AJ_NOT_FOUND, "the program has no class '", c->name, "'");
      return make(*k, std::move(args), std::move(named));
    }
    case Callee::Kind::builtin: {
      Builtin b = find_builtin(c->name);
      if (!b) raise(AJ_NOT_FOUND, "there is no builtin '", c->name, "'");
      Call call{*this, c->name.c_str(), args, named};
      return b(call);
    }
    default:
      return call_named(c->name.c_str(), std::move(args), std::move(named));
  }
}

Value Machine::method(const Value& self, const std::string& name, std::vector<Value> args,
                      Named named) {
  if (auto* o = in<Object>(self)) {
    if (const Function* f = o->of->method(name)) {
      args.insert(args.begin(), self);
      return run(*f, std::move(args), std::move(named));
    }
    if (!o->find(name))
      if (Builtin b = find_method(self, name)) {
        args.insert(args.begin(), self);
        Call c{*this, name.c_str(), args, named};
        return b(c);
      }
    return invoke(attribute(self, name), std::move(args), std::move(named));
  }
  if (auto* t = in<Tuple>(self); t && t->named)
    for (size_t i = 0; i < t->named->fields.size(); i++)
      if (t->named->fields[i] == name)
        return invoke(t->items[i], std::move(args), std::move(named));
  if (auto* c = in<Callee>(self); c && c->kind == Callee::Kind::type) {  // Class.method(...)
    const Class* k = unit_.type(c->name);
    if (const Function* f = k ? k->method(name) : nullptr)
      return run(*f, std::move(args), std::move(named));
  }
  args.insert(args.begin(), self);
  if (Builtin b = find_method(self, name)) {
    Call c{*this, name.c_str(), args, named};
    return b(c);
  }
  if (is<Tensor>(self)) {
    bool in_place = false;
    if (const auto* op = find_op(name, &in_place))
      return call_op(*op, in_place, ("." + name).c_str(), args, named);
  }
  raise_as("AttributeError", AJ_NOT_FOUND, "'", type_name(self), "' object has no method '", name,
           "' in the subset that is scripted");
}

Value Machine::attribute(const Value& self, const std::string& name) {
  if (auto* o = in<Object>(self)) {
    if (Value* v = o->find(name)) return *v;
    if (o->of->properties.contains(name)) return run(*o->of->method(name), {self}, {});
    for (auto& [n, v] : o->of->constants)
      if (n == name) return v;
    if (o->of->method(name))
      return std::make_shared<Callee>(Callee{Callee::Kind::method, name, self});
    raise_as("AttributeError", AJ_NOT_FOUND, "'", o->of->name, "' object has no attribute '", name,
             "' in the scripted program");
  }
  if (auto* t = std::get_if<Tensor>(&self)) {
    Value v;
    if (tensor_attribute(*t, name, &v)) return v;
  }
  if (auto* t = in<Tuple>(self); t && t->named)
    for (size_t i = 0; i < t->named->fields.size(); i++)
      if (t->named->fields[i] == name) return t->items[i];
  if (auto* d = std::get_if<DLDevice>(&self)) {
    std::string kind(view_of(core().device_name(d->device_type)));
    if (name == "type") return kind;
    if (name == "index") return kind == "cpu" ? Value(None{}) : Value(int64_t(d->device_id));
  }
  if (auto* d = std::get_if<DLDataType>(&self)) {
    if (name == "is_floating_point") return d->code == kDLFloat || d->code == kDLBfloat;
    if (name == "is_complex") return d->code == kDLComplex;
    if (name == "itemsize") return int64_t(d->bits / 8);
  }
  if (is<std::complex<double>>(self)) {
    if (name == "real") return std::get<std::complex<double>>(self).real();
    if (name == "imag") return std::get<std::complex<double>>(self).imag();
  }
  if (auto* c = in<Callee>(self); c && c->kind == Callee::Kind::type)
    if (const Class* k = unit_.type(c->name))
      for (auto& [n, v] : k->constants)
        if (n == name) return v;
  bool in_place;
  if (find_method(self, name) || (is<Tensor>(self) && find_op(name, &in_place)))
    return std::make_shared<Callee>(Callee{Callee::Kind::method, name, self});
  raise_as("AttributeError", AJ_NOT_FOUND, "'", type_name(self), "' object has no attribute '",
           name, "'");
}

bool Machine::has_attribute(const Value& self, const std::string& name) {
  if (auto* o = in<Object>(self)) {
    if (o->find(name) || o->of->method(name)) return true;
    return std::any_of(o->of->constants.begin(), o->of->constants.end(),
                       [&](const auto& c) { return c.first == name; });
  }
  try {
    attribute(self, name);
    return true;
  } catch (const Error& e) {
    if (e.kind() == "AttributeError") return false;
    throw;
  }
}

bool Machine::is_true(const Value& v) {
  if (const Function* f = special(v, "__bool__")) return truth(run(*f, {v}, {}));
  if (const Function* f = special(v, "__len__")) return truth(run(*f, {v}, {}));
  return truth(v);
}

std::vector<Value> Machine::items(const Value& v) {
  if (auto* o = in<Object>(v); o && o->of->container == Class::Container::none) {
    if (const Function* f = o->of->method("__iter__")) return items(run(*f, {v}, {}));
    const Function *n = o->of->method("__len__"), *at = o->of->method("__getitem__");
    if (n && at) {
      std::vector<Value> out;
      for (int64_t i = 0, count = whole(run(*n, {v}, {}), "len"); i < count; i++)
        out.push_back(run(*at, {v, i}, {}));
      return out;
    }
  }
  return items_of(v);
}

std::string Machine::text_of(const Value& v) {
  for (const char* name : {"__str__", "__repr__"})
    if (const Function* f = special(v, name)) return str_of(run(*f, {v}, {}));
  return str_of(v);
}

bool is_module(const Program& p) {
  return !p.script->objects.empty() && !p.script->function(p.name);
}

Value call(Program& p, std::string_view name, std::vector<Value> args, Named named) {
  Machine m(p);
  const Unit& u = *p.script;
  if (is_module(p)) {
    Value at = u.objects[0];
    std::string_view path = name;
    for (size_t dot; (dot = path.find('.')) != path.npos; path.remove_prefix(dot + 1)) {
      Object* o = in<Object>(at);
      Value* next = o ? o->find(path.substr(0, dot)) : nullptr;
      if (!next) raise(AJ_NOT_FOUND, p.name, ": there is no '", name, "'");
      at = Value(*next);
    }
    if (Object* o = in<Object>(at); o && o->of->method(path))
      return m.method(at, std::string(path), std::move(args), std::move(named));
  }
  const Function* f = u.function(name);
  if (!f && name == "forward") f = u.function(p.name);
  if (!f) raise(AJ_NOT_FOUND, p.name, ": the program has no function '", name, "'");
  return m.run(*f, std::move(args), std::move(named));
}

}  // namespace adjoin::graph::script

// extensions/graph/script/lower.cpp: a captured program as a function of a scripted one, so that
// the two call each other. The calls are the same; shapes are no longer known.
#include "lower.hpp"

#include <algorithm>

#include "../text/literal.hpp"
#include "../value.hpp"

namespace adjoin::graph::script {
namespace {

class Lower {
 public:
  Lower(const Program& p, Function& f) : p_(p), f_(f), vars_(p.values.size(), kNone) {}

  void whole() {
    for (uint32_t v : p_.body.inputs) {
      if (v == p_.draw) continue;
      Param one;
      one.name = p_.values[v].name;
      f_.params.push_back(std::move(one));
      var(v);
    }
    for (const Weight& w : p_.weights) {
      Instruction& i = add(f_.body, "$weight", {text_of(w.name)});
      i.targets = {var(w.value)};
    }
    code(p_.body, f_.body);
    Instruction made;
    made.name = "$tuple";
    for (uint32_t v : p_.body.results) made.args.push_back(use(v));
    made.targets = {temp()};
    Instruction give;
    give.what = Instruction::What::give;
    give.args = {reg(made.targets[0])};
    f_.body.push_back(std::move(made));
    f_.body.push_back(std::move(give));
  }

 private:
  uint32_t var(uint32_t v) {
    if (vars_[v] == kNone) {
      vars_[v] = uint32_t(f_.variables.size());
      f_.variables.push_back(p_.values[v].name);
    }
    return vars_[v];
  }
  uint32_t temp() {
    f_.variables.push_back("_t" + std::to_string(temps_++));
    return uint32_t(f_.variables.size() - 1);
  }
  static Operand reg(uint32_t r) {
    Operand a;
    a.reg = r;
    return a;
  }
  Operand use(uint32_t v) { return reg(var(v)); }
  static Operand text_of(const std::string& s) {
    Operand a;
    a.constant = s;
    return a;
  }
  Instruction& add(Code& c, std::string name, std::vector<Operand> args, uint32_t line = 0) {
    Instruction i;
    i.name = std::move(name), i.args = std::move(args), i.line = line;
    c.push_back(std::move(i));
    return c.back();
  }

  // Containers are made by calls; what is in them may be a variable.
  Operand operand(const Value& v, Code& c) {
    if (auto* mark = in<Callee>(v); mark && mark->kind == Callee::Kind::method)
      return use(uint32_t(std::get<int64_t>(mark->self)));
    std::vector<Operand> parts;
    const char* name = "$list";
    if (auto* d = in<Dict>(v)) {
      name = "$dict";
      for (auto& [k, x] : d->items) parts.push_back(operand(k, c)), parts.push_back(operand(x, c));
    } else if (auto* t = in<Tuple>(v)) {
      name = "$tuple";
      if (t->named) {
        name = "$named";
        std::vector<Value> fields(t->named->fields.begin(), t->named->fields.end());
        parts.push_back(text_of(t->named->written()));
        Operand all;
        all.constant = tuple(std::move(fields));
        parts.push_back(std::move(all));
      }
      for (const Value& x : t->items) parts.push_back(operand(x, c));
    } else if (auto* l = in<List>(v)) {
      for (const Value& x : l->items) parts.push_back(operand(x, c));
    } else {
      Operand plain;
      plain.constant = v;
      return plain;
    }
    const uint32_t to = temp();
    add(c, name, std::move(parts)).targets = {to};
    return reg(to);
  }

  Operand argument(const Arg& a, Code& c) {
    if (a.kind == Arg::Kind::value) return a.ref == p_.draw ? Operand{} : use(a.ref);
    if (a.kind == Arg::Kind::device_of) {
      const uint32_t to = temp();
      add(c, "$getattr", {use(a.ref), text_of("device")}).targets = {to};
      return reg(to);
    }
    if (a.kind == Arg::Kind::values) {
      std::vector<Operand> parts;
      for (uint32_t v : a.refs) parts.push_back(v == kNone ? Operand{} : use(v));
      const uint32_t to = temp();
      add(c, "$list", std::move(parts)).targets = {to};
      return reg(to);
    }
    if (!a.sizes.empty())
      raise(AJ_UNIMPLEMENTED, p_.name,
            ": a traced function with dynamic sizes calls scripted code, or is called by it; trace "
            "it for the sizes that it has, or script it");
    Operand out;
    out.constant = constant(a);
    return out;
  }

  static Value constant(const Arg& a) {
    std::vector<Value> all;
    switch (a.tag) {
      case AJ_BOOL:
        return a.i != 0;
      case AJ_INT:
        return a.i;
      case AJ_FLOAT:
        return a.re;
      case AJ_COMPLEX:
        return std::complex<double>(a.re, a.im);
      case AJ_DTYPE:
        return a.dtype;
      case AJ_DEVICE:
        return device(a.text);
      case AJ_STRING:
        return a.text;
      case AJ_LAYOUT:
      case AJ_MEMORY_FORMAT:
        return Tag{a.tag, a.i};
      case AJ_INTS:
        all.assign(a.ints.begin(), a.ints.end());
        return list(std::move(all));
      case AJ_FLOATS:
        all.assign(a.reals.begin(), a.reals.end());
        return list(std::move(all));
      case AJ_BOOLS:
        for (uint8_t b : a.bools) all.emplace_back(b != 0);
        return list(std::move(all));
      default:
        return None{};
    }
  }

  void call(const Node& n, Code& c) {
    const OpFacts& facts = facts_of(n.op);
    std::vector<Operand> args;
    for (size_t i = 0; i < n.args.size(); i++) {
      Operand a = argument(n.args[i], c);
      if (facts.params[i].flags & AJ_PARAM_KEYWORD_ONLY) a.name = view_of(facts.params[i].name);
      args.push_back(std::move(a));
    }
    std::string name = facts.name;
    for (size_t i = 0; i < n.into.size(); i++) {
      if (n.into[i] == kNone || (i == 0 && facts.writes_first)) continue;
      if (i || n.args.empty() || n.args[0].ref != n.into[0])
        raise(AJ_UNIMPLEMENTED, p_.name, ": ", facts.name,
              " writes into an argument of out=, which a scripted program does not do");
      name += '_';
    }
    std::vector<uint32_t> targets;
    bool any = false;
    for (size_t i = 0; i < n.results.size(); i++) {
      if (facts.results[i].flags & AJ_PARAM_AUX) continue;
      const Result& r = n.results[i];
      any |= !r.values.empty();
      if (r.list) {
        for (uint32_t v : r.values) targets.push_back(var(v));
        if (n.results.size() == 1 && targets.size() == 1) {  // a list of one
          const uint32_t all = temp();
          add(c, name, std::move(args), n.line).targets = {all};
          add(c, "$getitem", {reg(all), whole(0)}).targets = targets;
          return;
        }
      } else {
        targets.push_back(r.values.empty() ? temp() : var(r.values[0]));
      }
    }
    Instruction& i = add(c, std::move(name), std::move(args), n.line);
    if (any) i.targets = std::move(targets);
  }

  static Operand whole(int64_t n) {
    Operand a;
    a.constant = n;
    return a;
  }

  // The tensors in what a scripted function gave.
  void parts(const Value& shape, const Operand& from, Code& c) {
    if (auto* mark = in<Callee>(shape); mark && mark->kind == Callee::Kind::method) {
      add(c, "$copy", {from}).targets = {var(uint32_t(std::get<int64_t>(mark->self)))};
      return;
    }
    auto inner = [&](Operand key, const Value& x) {
      std::vector<uint32_t> found;
      marks(x, found);
      if (found.empty()) return;
      const uint32_t to = temp();
      add(c, "$getitem", {from, std::move(key)}).targets = {to};
      parts(x, reg(to), c);
    };
    if (Dict* d = in<Dict>(shape)) {
      for (auto& [k, x] : d->items) {
        Operand key;
        key.constant = k;
        inner(std::move(key), x);
      }
    } else if (holds<List>(shape) || holds<Tuple>(shape)) {
      int64_t i = 0;
      for (const Value& x : items_of(shape)) inner(whole(i++), x);
    }
  }

  void scripted(const Node& n, Code& c) {
    const ScriptCall& s = *n.scripted;
    std::vector<Operand> args;
    for (const Value& v : s.args) args.push_back(operand(v, c));
    for (auto& [name, v] : s.named) {
      args.push_back(operand(v, c));
      args.back().name = name;
    }
    const uint32_t to = temp();
    add(c, s.callee, std::move(args), n.line).targets = {to};
    parts(s.result, reg(to), c);
  }

  void copies(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to, Code& c) {
    std::vector<uint32_t> held;
    for (uint32_t v : from) {
      held.push_back(temp());
      add(c, "$copy", {use(v)}).targets = {held.back()};
    }
    for (size_t i = 0; i < to.size(); i++) add(c, "$copy", {reg(held[i])}).targets = {var(to[i])};
  }

  void blocks(const Node& n, Code& c) {
    std::vector<uint32_t> results, carried;
    for (const Result& r : n.results) results.push_back(r.values[0]);
    Instruction i;
    i.blocks.resize(2);
    i.line = n.line;
    if (n.what == Node::What::branch) {
      i.what = Instruction::What::branch;
      i.args = {use(n.args[0].ref)};
      for (size_t b = 0; b < 2; b++) {
        code(n.blocks[b], i.blocks[b]);
        copies(n.blocks[b].results, results, i.blocks[b]);
      }
      c.push_back(std::move(i));
      return;
    }
    for (const Arg& a : n.args) carried.push_back(a.ref);
    copies(carried, n.blocks[0].inputs, c);
    i.what = Instruction::What::test;
    code(n.blocks[0], i.blocks[0]);
    i.args = {use(n.blocks[0].results[0])};
    code(n.blocks[1], i.blocks[1]);
    copies(n.blocks[1].results, n.blocks[0].inputs, i.blocks[1]);
    c.push_back(std::move(i));
    copies(n.blocks[0].inputs, results, c);
  }

  void node(const Node& n, Code& c) {
    if (n.what == Node::What::call)
      call(n, c);
    else if (n.what == Node::What::scripted)
      scripted(n, c);
    else if (n.what == Node::What::detach)
      add(c, ".detach", {use(n.args[0].ref)}, n.line).targets = {var(n.results[0].values[0])};
    else
      blocks(n, c);
  }

  void code(const Block& b, Code& c) {
    for (const Node& n : b.nodes) {
      if (!n.no_grad) {
        node(n, c);
        continue;
      }
      Instruction i;
      i.what = Instruction::What::grad;
      i.args.emplace_back();
      i.args[0].constant = false;
      i.blocks.resize(1);
      node(n, i.blocks[0]);
      c.push_back(std::move(i));
    }
  }

  const Program& p_;
  Function& f_;
  std::vector<uint32_t> vars_;
  uint32_t temps_ = 0;
};

}  // namespace

void marks(const Value& v, std::vector<uint32_t>& out) {
  if (auto* c = in<Callee>(v); c && c->kind == Callee::Kind::method)
    out.push_back(uint32_t(std::get<int64_t>(c->self)));
  else if (Dict* d = in<Dict>(v))
    for (auto& [k, x] : d->items) marks(x, out);
  else if (holds<List>(v) || holds<Tuple>(v))
    for (const Value& x : items_of(v)) marks(x, out);
}

std::string lowered(const Program& p, const std::string& name) {
  Program made;
  made.script = std::make_shared<Unit>();
  auto f = std::make_unique<Function>();
  f->name = name;
  Lower(p, *f).whole();
  made.script->functions.push_back(std::move(f));
  std::string all = script::print(made);
  return all.substr(all.find("fn "));
}

}  // namespace adjoin::graph::script

// extensions/graph/script/text/print.cpp: a scripted program as text, which parse.cpp reads back.
#include <cmath>

#include "../../text/literal.hpp"
#include "../code.hpp"

namespace adjoin::graph::script {

namespace {

std::string real_literal(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::string s = text(x);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p), u_(*p.script) {}

  std::string whole() {
    out_ = "adjoin.program 1\nscripted " + p_.name + "\n";
    for (const Weight& w : p_.weights) {
      out_ += text(w.constant ? "const " : "param ", quoted(w.name), " : ",
                   print_type(p_, p_.values[w.value].type), "\n");
    }
    for (auto& c : u_.classes) klass(*c);
    for (size_t i = 0; i < u_.objects.size(); i++) object(i);
    for (auto& f : u_.functions) function(*f);
    return out_;
  }

 private:
  void klass(const Class& c) {
    out_ += "class " + c.name;
    if (c.module) out_ += " module";
    if (c.container == Class::Container::list) out_ += " list";
    if (c.container == Class::Container::dict) out_ += " dict";
    for (const std::string& b : c.bases) out_ += " is " + quoted(b);
    out_ += " {\n";
    for (auto& [name, f] : c.method_names) out_ += "  method " + quoted(name) + " = " + f + "\n";
    for (const std::string& name : c.properties) out_ += "  property " + quoted(name) + "\n";
    for (auto& [name, v] : c.constants)
      out_ += "  value " + quoted(name) + " = " + literal(v) + "\n";
    out_ += "}\n";
  }

  void object(size_t i) {
    const Object& o = *u_.objects[i];
    out_ += text("object &", uint64_t(i), " ", o.of->name, " {\n");
    for (auto& [name, v] : o.fields) {
      std::string shown;
      for (const Unit::Place& at : u_.places)
        if (at.object == &o && at.field == name)
          shown = "weight(" + quoted(p_.weights[at.weight].name) + ")";
      out_ += "  " + quoted(name) + " = " + (shown.empty() ? literal(v) : shown) + "\n";
    }
    out_ += "}\n";
  }

  std::string items(const std::vector<Value>& list) {
    std::string out;
    for (const Value& v : list) out += (out.empty() ? "" : ", ") + literal(v);
    return out;
  }

  std::string literal(const Value& v) {
    if (is<None>(v)) return "None";
    if (auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
    if (auto* i = std::get_if<int64_t>(&v)) return text(*i);
    if (auto* d = std::get_if<double>(&v)) return real_literal(*d);
    if (auto* s = std::get_if<std::string>(&v)) return quoted(*s);
    if (auto* z = std::get_if<std::complex<double>>(&v))
      return "complex(" + real_literal(z->real()) + ", " + real_literal(z->imag()) + ")";
    if (auto* d = std::get_if<DLDataType>(&v)) return text("dtype(", *d, ")");
    if (auto* d = std::get_if<DLDevice>(&v))
      return text("device(\"", core().device_name(d->device_type), ":", d->device_id, "\")");
    if (auto* t = std::get_if<Tag>(&v))
      return text(t->tag == AJ_LAYOUT ? "layout(" : "format(", t->i, ")");
    if (is<Ellipsis>(v)) return "...";
    if (auto* r = std::get_if<Range>(&v))
      return text("range(", r->start, ", ", r->stop, ", ", r->step, ")");
    if (auto* l = in<List>(v)) return "[" + items(l->items) + "]";
    if (auto* t = in<Tuple>(v)) {
      std::string named;
      if (t->named) {
        named = " " + quoted(t->named->written());
        for (const std::string& f : t->named->fields) named += " " + quoted(f);
      }
      return "tuple" + named + "(" + items(t->items) + ")";
    }
    if (auto* d = in<Dict>(v)) {
      std::string out;
      for (auto& [k, x] : d->items)
        out += (out.empty() ? "" : ", ") + literal(k) + ": " + literal(x);
      return "{" + out + "}";
    }
    if (auto* s = in<Slice>(v)) {
      auto part = [](const std::optional<int64_t>& i) {
        return i ? text(*i) : std::string("None");
      };
      return "slice(" + part(s->start) + ", " + part(s->stop) + ", " + part(s->step) + ")";
    }
    if (auto* c = in<Callee>(v)) {
      static const char* const kinds[] = {"op", "builtin", "function", "type"};
      if (c->kind != Callee::Kind::method)
        return text(kinds[int(c->kind)], "(", quoted(c->name), ")");
    }
    if (auto* o = in<Object>(v))
      for (size_t i = 0; i < u_.objects.size(); i++)
        if (u_.objects[i].get() == o) return text("&", uint64_t(i));
    // A field that is a value of the run's, not the program's.
    raise(AJ_UNIMPLEMENTED, p_.name, ": an attribute holds a ", type_name(v),
          ", which a program's text cannot show; register tensors as buffers");
  }

  std::string variable(const Function& f, uint32_t v) { return "%" + f.variables[v]; }

  void function(const Function& f) {
    out_ += "fn " + f.name + "(";
    for (size_t i = 0; i < f.params.size(); i++) {
      const Param& p = f.params[i];
      static const char* const how[] = {"", "only ", "*", "**"};
      out_ += text(i ? ", " : "", how[int(p.how)], "%", p.name);
      if (!p.kind_text.empty()) out_ += ": " + quoted(p.kind_text);
      if (p.has_default) out_ += " = " + literal(p.value);
    }
    out_ += ")";
    if (!f.kind_text.empty()) out_ += " -> " + quoted(f.kind_text);
    out_ += " {\n";
    code(f, f.body, "  ");
    out_ += "}\n";
  }

  std::string operand(const Function& f, const Operand& a) {
    static const char* const spread[] = {"", "*", "**"};
    std::string out = spread[a.spread];
    if (!a.name.empty()) out += a.name + "=";
    return out + (a.reg == kNone ? literal(a.constant) : variable(f, a.reg));
  }

  void targets(const Function& f, const Instruction& i) {
    for (size_t k = 0; k < i.targets.size(); k++)
      out_ += (k ? ", " : "") + std::string(k == i.star ? "*" : "") + variable(f, i.targets[k]);
    // One name alone that takes the result apart.
    if (i.targets.size() == 1 && i.star != kNone) out_ += ",";
  }

  void block(const Function& f, const Code& c, const std::string& indent) {
    out_ += "{\n";
    code(f, c, indent + "  ");
    out_ += indent + "}";
  }

  void code(const Function& f, const Code& c, const std::string& indent) {
    for (const Instruction& i : c) {
      out_ += indent;
      switch (i.what) {
        case Instruction::What::call:
          targets(f, i);
          out_ += (i.targets.empty() ? "" : " = ") + i.name + "(";
          for (size_t k = 0; k < i.args.size(); k++)
            out_ += (k ? ", " : "") + operand(f, i.args[k]);
          out_ += ")";
          break;
        case Instruction::What::branch:
          out_ += "if " + operand(f, i.args[0]) + " ";
          block(f, i.blocks[0], indent);
          if (!i.blocks[1].empty()) {
            out_ += " else ";
            block(f, i.blocks[1], indent);
          }
          break;
        case Instruction::What::test:
          out_ += "while ";
          block(f, i.blocks[0], indent);
          out_ += " " + operand(f, i.args[0]) + " do ";
          block(f, i.blocks[1], indent);
          break;
        case Instruction::What::each:
          out_ += "for ";
          targets(f, i);
          out_ += " in " + operand(f, i.args[0]) + " ";
          block(f, i.blocks[0], indent);
          break;
        case Instruction::What::grad:
          out_ += "grad " + operand(f, i.args[0]) + " ";
          block(f, i.blocks[0], indent);
          break;
        case Instruction::What::cast:
          for (size_t k = 0; k < i.args.size(); k++)
            out_ += (k ? ", " : "autocast ") + operand(f, i.args[k]);
          out_ += " ";
          block(f, i.blocks[0], indent);
          break;
        case Instruction::What::leave:
          out_ += "break";
          break;
        case Instruction::What::next:
          out_ += "continue";
          break;
        case Instruction::What::give:
          out_ += "return";
          if (!i.args.empty()) out_ += " " + operand(f, i.args[0]);
          break;
      }
      if (i.line) out_ += text(" @", i.line);
      out_ += "\n";
    }
  }

  const Program& p_;
  const Unit& u_;
  std::string out_;
};

}  // namespace

std::string print(const Program& p) { return Printer(p).whole(); }

}  // namespace adjoin::graph::script

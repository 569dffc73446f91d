// extensions/graph/text/print.cpp: a program as text, which parse.cpp reads back without a loss.
#include <cmath>

#include "../script/door.hpp"
#include "../value.hpp"
#include "literal.hpp"

namespace adjoin::graph {

std::string quoted(std::string_view s) {
  std::string out = "\"";
  constexpr char digits[] = "0123456789abcdef";
  for (char c : s) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (uint8_t(c) < 32 || c == 127)
      ((out += "\\x") += digits[uint8_t(c) >> 4]) += digits[c & 15];
    else
      out += c;
  }
  return out + '"';
}

namespace {

// The shortest text that is the number again, told from whole numbers by a point or an exponent.
std::string real(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::string s = text(x);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

template <class List, class F>
std::string list(const List& items, const F& show) {
  std::string out = "[";
  for (const auto& item : items) (out += out.size() > 1 ? ", " : "") += show(item);
  return out + "]";
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p) {}

  std::string whole() {
    out_ = "adjoin.program 1\n";
    for (size_t i = 0; i < p_.symbols.size(); i++) out_ += (i ? ", " : "sizes ") + p_.symbols[i];
    if (!p_.symbols.empty()) out_ += "\n";
    if (!p_.form_in.empty() || !p_.form_out.empty())
      out_ += text("form ", quoted(p_.form_in), " -> ", quoted(p_.form_out), "\n");
    out_ += "fn " + p_.name + "(";
    for (size_t i = 0; i < p_.body.inputs.size(); i++) {
      const Value& v = p_.values[p_.body.inputs[i]];
      out_ += text(i ? ", %" : "%", v.name, ": ", print_type(p_, v.type));
    }
    out_ += ") {\n";
    for (const Weight& w : p_.weights)
      out_ += text("  ", ref(w.value), " = ", w.constant ? "const " : "param ", quoted(w.name),
                   " : ", print_type(p_, p_.values[w.value].type), "\n");
    block(p_.body, "  ", "return");
    return out_ + "}\n";
  }

 private:
  std::string ref(uint32_t v) const { return v == kNone ? "_" : "%" + p_.values[v].name; }
  std::string item(uint32_t v) const { return v == kNone ? "None" : "%" + p_.values[v].name; }

  void block(const Block& b, const std::string& indent, const char* end) {
    for (const Node& n : b.nodes) node(n, indent);
    out_ += indent + end;
    for (size_t i = 0; i < b.results.size(); i++) out_ += (i ? ", " : " ") + ref(b.results[i]);
    out_ += "\n";
  }

  std::string whole_number(const Arg& a, size_t i, int64_t n) const {
    return a.sizes.empty() || a.sizes[i] == kNone ? text(n) : print_size(p_, p_.sizes[a.sizes[i]]);
  }
  std::string integers(const Arg& a) const {
    std::string out = "[";
    for (size_t i = 0; i < a.ints.size(); i++)
      out += (i ? ", " : "") + whole_number(a, i, a.ints[i]);
    return out + "]";
  }

  std::string constant(const Arg& a) const {
    switch (a.tag) {
      case AJ_NONE:
        return "None";
      case AJ_BOOL:
        return a.i ? "true" : "false";
      case AJ_INT:
        return whole_number(a, 0, a.i);
      case AJ_LAYOUT:
        return text("layout(", a.i, ")");
      case AJ_MEMORY_FORMAT:
        return text("format(", a.i, ")");
      case AJ_FLOAT:
        return real(a.re);
      case AJ_COMPLEX:
        return "complex(" + real(a.re) + ", " + real(a.im) + ")";
      case AJ_DTYPE:
        return text("dtype(", a.dtype, ")");
      case AJ_DEVICE:
        return "device(" + quoted(a.text) + ")";
      case AJ_STRING:
        return quoted(a.text);
      case AJ_INTS:
        return integers(a);
      case AJ_FLOATS:
        return (a.reals.empty() ? "floats" : "") + list(a.reals, real);
      case AJ_BOOLS:
        return (a.bools.empty() ? "bools" : "") +
               list(a.bools, [](uint8_t b) { return std::string(b ? "true" : "false"); });
      default:
        raise(AJ_INTERNAL, "a program holds a constant of tag ", a.tag);
    }
  }

  std::string argument(const Arg& a) const {
    switch (a.kind) {
      case Arg::Kind::value:
        return ref(a.ref);
      case Arg::Kind::device_of:
        return "device(" + ref(a.ref) + ")";
      case Arg::Kind::values: {
        bool plain = !a.refs.empty() && a.refs[0] != kNone;
        return (plain ? "" : "values") + list(a.refs, [&](uint32_t v) { return item(v); });
      }
      default:
        return constant(a);
    }
  }

  void call(const Node& n) {
    const OpFacts& f = facts_of(n.op);
    out_ += f.name + "(";
    bool named = false, first = true;
    for (size_t i = 0; i < n.args.size(); i++) {
      const aj_param& p = f.params[i];
      named |= (p.flags & AJ_PARAM_KEYWORD_ONLY) != 0;
      if (is_default(p, n.args[i])) {
        named = true;  // left out, so those behind it need their names
        continue;
      }
      out_ += first ? "" : ", ";
      if (named) out_ += text(p.name, "=");
      out_ += argument(n.args[i]);
      first = false;
    }
    out_ += ")";
    if (!n.into.empty()) {
      out_ += " into";
      for (size_t i = 0; i < n.into.size(); i++) out_ += (i ? ", " : " ") + ref(n.into[i]);
    }
  }

  void blocks(const Node& n, const std::string& indent) {
    const bool loop = n.what == Node::What::loop;
    if (loop) {
      out_ += "while (";
      for (size_t i = 0; i < n.args.size(); i++)
        out_ += text(i ? ", " : "", ref(n.blocks[0].inputs[i]), " = ", ref(n.args[i].ref));
      out_ += ") {\n";
    } else {
      out_ += "if " + ref(n.args[0].ref) + " {\n";
    }
    block(n.blocks[0], indent + "  ", "yield");
    out_ += indent + (loop ? "} do {\n" : "} else {\n");
    block(n.blocks[1], indent + "  ", "yield");
    out_ += indent + "}";
  }

  void node(const Node& n, const std::string& indent) {
    std::string names, types;
    bool any = false;
    for (size_t i = 0; i < n.results.size(); i++) {
      const Result& r = n.results[i];
      auto show = [&](uint32_t v) { return ref(v); };
      auto type = [&](uint32_t v) { return print_type(p_, p_.values[v].type); };
      names += i ? ", " : "";
      types += any && (r.list || !r.values.empty()) ? ", " : "";
      any |= r.list || !r.values.empty();
      if (r.list) {
        names += list(r.values, show);
        types += list(r.values, type);
      } else {
        names += r.values.empty() ? "_" : ref(r.values[0]);
        types += r.values.empty() ? "" : type(r.values[0]);
      }
    }
    out_ += indent + (any ? names + " = " : "");
    if (n.what == Node::What::call)
      call(n);
    else if (n.what == Node::What::detach)
      out_ += "detach(" + ref(n.args[0].ref) + ")";
    else if (n.what == Node::What::scripted)
      raise(AJ_PRECONDITION, p_.name,
            ": the program calls scripted code; print what lowered() gives");
    else
      blocks(n, indent);
    if (any) out_ += " : " + types;
    if (n.no_grad) out_ += " no_grad";
    if (n.keep) out_ += " effect";
    if (n.line) out_ += text(" @", n.line);
    out_ += "\n";
  }

  const Program& p_;
  std::string out_;
};

}  // namespace

std::string print_size(const Program& p, const Size& s) {
  std::string out;
  for (const Size::Term& t : s.terms) {
    out += out.empty() ? "" : " + ";
    for (size_t i = 0; i < t.symbols.size(); i++) out += (i ? "*" : "") + p.symbols[t.symbols[i]];
    if (t.symbols.empty() || t.by != 1) out += (t.symbols.empty() ? "" : "*") + text(t.by);
  }
  return out;
}

std::string print_type(const Program& p, const Type& t) {
  if (t.draws()) return "draw";
  if (t.number()) return t.dtype.code == kDLInt ? "int" : "float";
  return text(t.dtype) + list(t.shape, [&](int64_t n) {
           return n < 0 ? print_size(p, p.sizes[size_t(-1 - n)]) : text(n);
         });
}

std::string print(const Program& p) { return p.script ? script::print(p) : Printer(p).whole(); }

}  // namespace adjoin::graph

// extensions/graph/script/text/parse.cpp: the text of a scripted program, read. Nothing runs.
#include "../../text/lexer.hpp"
#include "../code.hpp"

namespace adjoin::graph::script {
namespace {

constexpr int kDeepest = 64;  // blocks in blocks, lists in lists

class Parser {
 public:
  Parser(Lexer& in, Program& p) : in_(in), p_(p) { p.script = std::make_shared<Unit>(); }

  void whole() {
    Unit& u = *p_.script;
    p_.name = in_.name();
    if (in_.eat("lines")) lines();
    while (!in_.at_end()) {
      if (in_.eat("param"))
        weight(false);
      else if (in_.eat("const"))
        weight(true);
      else if (in_.eat("class"))
        klass(u);
      else if (in_.eat("object"))
        object(u);
      else if (in_.eat("fn"))
        function(u);
      else
        in_.wrong("param, const, class, object or fn is wanted, there is ", in_.seen());
    }
    for (size_t i = 0; i < u.objects.size(); i++)
      if (!u.objects[i]->of) in_.wrong("the object &", uint64_t(i), " is named and not described");
  }

 private:
  void lines() {
    in_.need("[");
    while (!in_.eat("]")) {
      if (p_.lines.size() > 1) in_.need(",");
      p_.lines.push_back(in_.string());
    }
  }

  void weight(bool constant) {
    Weight w{0, in_.string(), constant, {}};
    for (const Weight& other : p_.weights)
      if (other.name == w.name) in_.wrong("the weight '", w.name, "' is there already");
    in_.need(":");
    Type t;
    std::string name = in_.name();
    if (aj_status* s = core().dtype_find(str(name), &t.dtype)) {
      core().status_free(s);
      in_.wrong("there is no dtype '", name, "'");
    }
    in_.need("[");
    while (!in_.eat("]")) {
      if (!t.shape.empty()) in_.need(",");
      int64_t n = in_.integer();
      if (n < 0 || t.shape.size() == 64) in_.wrong("a shape has up to 64 sizes, none below 0");
      t.shape.push_back(n);
    }
    w.value = p_.add(std::move(t));
    p_.weights.push_back(std::move(w));
  }

  void klass(Unit& u) {
    auto c = std::make_unique<Class>();
    c->name = in_.name();
    if (u.type(c->name)) in_.wrong("the class '", c->name, "' is there already");
    c->module = in_.eat("module");
    if (in_.eat("list")) c->container = Class::Container::list;
    if (in_.eat("dict")) c->container = Class::Container::dict;
    while (in_.eat("is")) c->bases.push_back(in_.string());
    in_.need("{");
    Class& made = *c;
    u.classes.push_back(std::move(c));
    while (!in_.eat("}")) {
      if (in_.eat("property")) {
        made.properties.insert(in_.string());
      } else if (in_.eat("method")) {
        std::string name = in_.string();
        in_.need("=");
        made.method_names.emplace_back(std::move(name), in_.name());
      } else {
        in_.need("value");
        std::string name = in_.string();
        in_.need("=");
        made.constants.emplace_back(std::move(name), literal(0));
      }
    }
  }

  std::shared_ptr<Object> object_at() {
    in_.need("&");
    const int64_t i = in_.integer();
    auto& all = p_.script->objects;
    if (i < 0 || i > int64_t(all.size()) + 100'000) in_.wrong("the object &", i, " is none");
    while (int64_t(all.size()) <= i) all.push_back(std::make_shared<Object>(Object{nullptr, {}}));
    return all[size_t(i)];
  }

  void object(Unit& u) {
    auto o = object_at();
    if (o->of) in_.wrong("this object is described already");
    const std::string type = in_.name();
    o->of = u.type(type);
    if (!o->of) in_.wrong("there is no class '", type, "' before");
    in_.need("{");
    while (!in_.eat("}")) {
      std::string name = in_.string();
      in_.need("=");
      if (in_.eat("weight")) {
        in_.need("(");
        std::string called = in_.string();
        in_.need(")");
        uint32_t at = 0;
        while (at < p_.weights.size() && p_.weights[at].name != called) at++;
        if (at == p_.weights.size()) in_.wrong("there is no weight '", called, "' before");
        u.places.push_back({at, o.get(), name});
        o->set(name, None{});
      } else {
        o->set(name, literal(0));
      }
    }
  }

  std::vector<Value> items(std::string_view end, int depth) {
    std::vector<Value> out;
    while (!in_.eat(end)) {
      if (!out.empty()) in_.need(",");
      if (in_.eat(end)) break;
      out.push_back(literal(depth + 1));
    }
    return out;
  }

  bool word(std::string_view w) { return in_.eat(w) && (in_.need("("), true); }

  Value literal(int depth) {
    if (depth > kDeepest) in_.wrong("values lie deeper than ", kDeepest);
    if (in_.looks('&')) return object_at();
    if (in_.looks('"')) return in_.string();
    if (in_.eat("None")) return None{};
    if (in_.eat("true")) return true;
    if (in_.eat("false")) return false;
    if (in_.eat("...")) return Ellipsis{};
    if (in_.eat("[")) return list(items("]", depth));
    if (in_.eat("tuple")) {
      const Names* named = nullptr;
      if (in_.looks('"')) {
        std::string type = in_.string();
        std::vector<std::string> fields;
        while (in_.looks('"')) fields.push_back(in_.string());
        named = names(type, fields);
      }
      in_.need("(");
      std::vector<Value> all = items(")", depth);
      if (named && all.size() != named->fields.size())
        in_.wrong("a tuple has a name for each field");
      return tuple(std::move(all), named);
    }
    if (in_.eat("{")) {
      auto d = std::make_shared<Dict>();
      for (bool first = true; !in_.eat("}"); first = false) {
        if (!first) in_.need(",");
        Value k = literal(depth + 1);
        in_.need(":");
        d->set(k, literal(depth + 1));
      }
      return d;
    }
    if (word("complex")) {
      const double re = in_.real();
      in_.need(",");
      const double im = in_.real();
      in_.need(")");
      return std::complex<double>(re, im);
    }
    if (word("dtype")) {
      DLDataType d{};
      std::string name = in_.name();
      if (aj_status* s = core().dtype_find(str(name), &d)) {
        core().status_free(s);
        in_.wrong("there is no dtype '", name, "'");
      }
      in_.need(")");
      return d;
    }
    if (word("device")) {
      std::string name = in_.string();
      in_.need(")");
      return device(name);
    }
    const bool layout = word("layout");
    if (layout || word("format")) {
      const int64_t i = in_.integer();
      in_.need(")");
      return Tag{layout ? AJ_LAYOUT : AJ_MEMORY_FORMAT, i};
    }
    if (word("slice")) {
      Slice s;
      for (auto* part : {&s.start, &s.stop, &s.step}) {
        if (part != &s.start) in_.need(",");
        if (!in_.eat("None")) *part = in_.integer();
      }
      in_.need(")");
      return std::make_shared<Slice>(s);
    }
    if (word("range")) {
      Range r{};
      r.start = in_.integer(), in_.need(",");
      r.stop = in_.integer(), in_.need(",");
      r.step = in_.integer(), in_.need(")");
      if (!r.step) in_.wrong("a range has a step");
      return r;
    }
    int kind = 0;
    for (const char* name : {"op", "builtin", "function", "type"}) {
      if (word(name)) {
        std::string called = in_.string();
        in_.need(")");
        return std::make_shared<Callee>(Callee{Callee::Kind(kind), std::move(called), None{}});
      }
      kind++;
    }
    return number();
  }

  Value number() {
    std::string_view s = in_.number();
    if (s.empty()) in_.wrong("a value is wanted, there is ", in_.seen());
    const char* end = s.data() + s.size();
    if (s.find_first_of(".enf") == s.npos) {
      int64_t i = 0;
      if (std::from_chars(s.data(), end, i).ptr != end)
        in_.wrong("'", s, "' is no number of 64 bits");
      return i;
    }
    double d = 0;
    auto read = std::from_chars(s.data(), end, d);
    if (read.ptr != end || read.ec != std::errc()) in_.wrong("'", s, "' is no number");
    return d;
  }

  Kind kind(std::string& text) {
    text = in_.string();
    return read_kind(text);
  }

  uint32_t variable() {
    in_.need("%");
    std::string name = in_.name();
    auto [at, fresh] = variables_.emplace(name, uint32_t(f_->variables.size()));
    if (fresh) f_->variables.push_back(name);
    return at->second;
  }

  void function(Unit& u) {
    auto made = std::make_unique<Function>();
    f_ = made.get();
    variables_.clear();
    f_->name = in_.name();
    if (u.function(f_->name)) in_.wrong("the function '", f_->name, "' is there already");
    in_.need("(");
    while (!in_.eat(")")) {
      if (!f_->params.empty()) in_.need(",");
      Param p;
      p.how = in_.eat("only") ? Param::How::keyword
              : in_.eat("**") ? Param::How::named
              : in_.eat("*")  ? Param::How::rest
                              : Param::How::any;
      if (variable() != f_->params.size()) in_.wrong("a parameter is named twice");
      p.name = f_->variables.back();
      if (in_.eat(":")) p.kind = kind(p.kind_text);
      if (in_.eat("=")) p.has_default = true, p.value = literal(0);
      f_->params.push_back(std::move(p));
    }
    if (in_.eat("->")) f_->kind = kind(f_->kind_text);
    code(f_->body, 0);
    u.functions.push_back(std::move(made));
  }

  void code(Code& c, int depth) {
    if (depth > kDeepest) in_.wrong("blocks lie deeper than ", kDeepest);
    in_.need("{");
    while (!in_.eat("}")) {
      Instruction i;
      statement(i, depth);
      if (in_.eat("@")) {
        const int64_t line = in_.integer();
        if (line < 1 || line > 100'000'000) in_.wrong("line ", line, " is none");
        i.line = uint32_t(line);
      }
      c.push_back(std::move(i));
    }
  }

  Operand operand() {
    Operand a;
    a.spread = in_.eat("**") ? 2 : in_.eat("*") ? 1 : 0;
    if (!a.spread) a.name = in_.keyword();
    if (in_.looks('%'))
      a.reg = variable();
    else
      a.constant = literal(0);
    return a;
  }

  void targets(Instruction& i) {
    do {
      if (!in_.looks('%') && !in_.looks('*')) break;
      if (in_.eat("*")) {
        if (i.star != kNone) in_.wrong("two names take the rest");
        i.star = uint32_t(i.targets.size());
      }
      i.targets.push_back(variable());
    } while (in_.eat(","));
  }

  void statement(Instruction& i, int depth) {
    using What = Instruction::What;
    if (in_.eat("if")) {
      i.what = What::branch;
      i.args.push_back(operand());
      i.blocks.resize(2);
      code(i.blocks[0], depth + 1);
      if (in_.eat("else")) code(i.blocks[1], depth + 1);
    } else if (in_.eat("while")) {
      i.what = What::test;
      i.blocks.resize(2);
      code(i.blocks[0], depth + 1);
      i.args.push_back(operand());
      in_.need("do");
      code(i.blocks[1], depth + 1);
    } else if (in_.eat("for")) {
      i.what = What::each;
      targets(i);
      in_.need("in");
      i.args.push_back(operand());
      i.blocks.resize(1);
      code(i.blocks[0], depth + 1);
    } else if (in_.eat("grad")) {
      i.what = What::grad;
      i.args.push_back(operand());
      i.blocks.resize(1);
      code(i.blocks[0], depth + 1);
    } else if (in_.eat("autocast")) {
      i.what = What::cast;
      for (int k = 0; k < 4; k++) {
        if (k) in_.need(",");
        i.args.push_back(operand());
      }
      i.blocks.resize(1);
      code(i.blocks[0], depth + 1);
    } else if (in_.eat("break")) {
      i.what = What::leave;
    } else if (in_.eat("continue")) {
      i.what = What::next;
    } else if (in_.eat("return")) {
      i.what = What::give;
      if (!in_.looks('}') && !in_.looks('@')) i.args.push_back(operand());
    } else {
      targets(i);
      if (!i.targets.empty()) in_.need("=");
      call(i);
    }
  }

  void call(Instruction& i) {
    if (in_.eat("$"))
      i.name = "$" + in_.name();
    else if (in_.eat("fn:"))
      i.name = "fn:" + in_.name();
    else
      i.name = in_.name();  // an op, or a method behind its point
    in_.need("(");
    while (!in_.eat(")")) {
      if (!i.args.empty()) in_.need(",");
      i.args.push_back(operand());
    }
  }

  Lexer& in_;
  Program& p_;
  Function* f_ = nullptr;
  std::unordered_map<std::string, uint32_t> variables_;
};

}  // namespace

void parse(Lexer& in, Program& into) {
  Parser(in, into).whole();
  link(into);
}

}  // namespace adjoin::graph::script

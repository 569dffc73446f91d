// extensions/graph/text/parse.cpp: the text of a program, read. Nothing runs; ops are only looked
// up.
#include <algorithm>
#include <unordered_map>

#include "../script/code.hpp"
#include "../value.hpp"
#include "lexer.hpp"

namespace adjoin::graph {
namespace {

constexpr int kDeepest = 64;  // blocks in blocks
constexpr size_t kMostDims = 64;

class Parser {
 public:
  Parser(std::string_view text, Program& p) : in_(text), p_(p) {}

  void whole() {
    in_.need("adjoin.program");
    if (int64_t version = in_.integer(); version != 1)
      in_.wrong("the format is ", version, ", this library reads 1; a newer one is needed");
    if (in_.eat("scripted")) return script::parse(in_, p_);
    if (in_.eat("sizes")) {
      do symbol();
      while (in_.eat(","));
    }
    if (in_.eat("form")) {
      p_.form_in = in_.string();
      in_.need("->");
      p_.form_out = in_.string();
    }
    in_.need("fn");
    p_.name = in_.name();
    in_.need("(");
    while (!in_.eat(")")) {
      if (!p_.body.inputs.empty()) in_.need(",");
      if (p_.draw != kNone) in_.wrong("the generator is the last input");
      std::string name = new_name();
      in_.need(":");
      Type t = type(true);
      uint32_t v = define(name, t);
      p_.body.inputs.push_back(v);
      if (t.draws()) p_.draw = v;
    }
    bind_symbols();
    in_.need("{");
    block(p_.body, "return", 0);
    in_.need("}");
    if (!in_.at_end()) in_.wrong("the program has ended, there is ", in_.seen());
  }

 private:
  void symbol() {
    std::string name = in_.name();
    static const std::string_view words[] = {"None",   "true",  "false",  "values",  "floats",
                                             "bools",  "dtype", "device", "complex", "layout",
                                             "format", "inf",   "nan"};
    if (std::find(std::begin(words), std::end(words), name) != std::end(words) ||
        symbols_.count(name) || Lexer::is_digit(name[0]) || name.find_first_of(".:") != name.npos)
      in_.wrong("'", name, "' cannot be the name of a size");
    if (symbols_.size() == 64) in_.wrong("more than 64 sizes are named");
    symbols_.emplace(name, uint32_t(p_.symbols.size()));
    p_.symbols.push_back(std::move(name));
  }
  // Each is a size of an input, from which it is known.
  void bind_symbols() {
    std::vector<bool> bound(p_.symbols.size());
    for (uint32_t v : p_.body.inputs)
      for (int64_t n : p_.values[v].type.shape)
        if (uint32_t s = n < 0 ? alone(p_.sizes[size_t(-1 - n)]) : kNone; s != kNone)
          bound[s] = true;
    for (size_t i = 0; i < bound.size(); i++)
      if (!bound[i]) in_.wrong("no input has the size '", p_.symbols[i], "'");
  }
  // b*t*2 + 1; a symbol comes first.
  Size size() {
    Size s;
    do {
      Size::Term t{{}, 1};
      bool first = true;
      do {
        if (in_.looks('-') || Lexer::is_digit(in_.peek())) {
          t.by = in_.integer();
          break;
        }
        auto found = symbols_.find(in_.name());
        if (found == symbols_.end()) in_.wrong("no size has this name");
        if (t.symbols.size() == 64) in_.wrong("a product of more than 64 sizes");
        t.symbols.push_back(found->second);
        first = false;
      } while (in_.eat("*"));
      if (first && s.terms.empty()) in_.wrong("a size begins with a name");
      s.terms.push_back(std::move(t));
      if (s.terms.size() > 256) in_.wrong("a sum of more than 256 products");
    } while (in_.eat("+"));
    return s;
  }

  std::string new_name() {
    in_.need("%");
    std::string name = in_.name();
    if (by_name_.count(name)) in_.wrong("%", name, " is there already");
    return name;
  }
  uint32_t define(const std::string& name, Type t) {
    uint32_t v = p_.add(std::move(t), name);
    by_name_[name] = v;
    defined_.push_back(name);
    return v;
  }
  uint32_t use() {
    in_.need("%");
    std::string name = in_.name();
    auto found = by_name_.find(name);
    if (found == by_name_.end() || found->second == kNone)
      in_.wrong("there is no value %", name, " here");
    return found->second;
  }

  Type type(bool of_input = false) {
    Type t;
    std::string name = in_.name();
    if (name == "draw") {
      if (!of_input) in_.wrong("a generator is an input alone");
      t.other = true;
      return t;
    }
    if (!in_.looks('[') && (name == "int" || name == "float")) {
      if (!of_input) in_.wrong("a number is an input alone");
      t.other = true;
      t.dtype = {uint8_t(name == "int" ? kDLInt : kDLFloat), 64, 1};
      return t;
    }
    t.dtype = dtype(name);
    in_.need("[");
    while (!in_.eat("]")) {
      if (!t.shape.empty()) in_.need(",");
      const bool number = Lexer::is_digit(in_.peek()) || in_.looks('-');
      int64_t n = number ? in_.integer() : -1 - int64_t(p_.size(size()));
      if (number && n < 0) in_.wrong("a size of ", n);
      t.shape.push_back(n);
      if (t.shape.size() > kMostDims) in_.wrong("more than 64 dimensions");
    }
    return t;
  }
  DLDataType dtype(const std::string& name) {
    DLDataType d{};
    if (aj_status* s = core().dtype_find(str(name), &d)) {
      core().status_free(s);
      in_.wrong("there is no dtype '", name, "'");
    }
    return d;
  }

  struct Names {
    std::vector<std::string> names;  // empty: _
    bool list = false;
  };

  void block(Block& b, const char* end, int depth) {
    if (depth > kDeepest) in_.wrong("blocks lie deeper than ", kDeepest);
    while (!in_.eat(end)) statement(b, depth);
    if (!in_.looks('%')) return;
    do b.results.push_back(use());
    while (in_.eat(","));
  }

  void statement(Block& b, int depth) {
    std::vector<Names> names;
    if (in_.looks('%') || in_.looks('[') || Lexer(in_).eat("_")) {
      do names.push_back(result());
      while (in_.eat(","));
      in_.need("=");
    }
    if (in_.eat("param")) return weight(b, names, depth, false);
    if (in_.eat("const")) return weight(b, names, depth, true);
    Node n;
    if (in_.eat("if"))
      branch(n, depth);
    else if (in_.eat("while"))
      loop(n, depth);
    else if (in_.eat("detach"))
      detach(n);
    else
      call(n);
    results(n, names);
    if (in_.eat("no_grad")) n.no_grad = true;
    if (in_.eat("effect")) n.keep = true;
    if (in_.eat("@")) {
      int64_t line = in_.integer();
      if (line < 1 || line > 100'000'000) in_.wrong("line ", line, " is none");
      n.line = uint32_t(line);
    }
    b.nodes.push_back(std::move(n));
  }

  Names result() {
    Names r;
    if (in_.eat("_")) return r;
    r.list = in_.eat("[");
    if (!r.list) {
      r.names.push_back(new_name());
      return r;
    }
    while (!in_.eat("]")) {
      if (!r.names.empty()) in_.need(",");
      r.names.push_back(new_name());
    }
    return r;
  }

  void weight(const Block&, const std::vector<Names>& names, int depth, bool constant) {
    if (depth || names.size() != 1 || names[0].list || names[0].names.empty())
      in_.wrong("a parameter or constant has one name, in the outermost block");
    Weight w{0, in_.string(), constant, {}};
    in_.need(":");
    w.value = define(names[0].names[0], type());
    p_.weights.push_back(std::move(w));
  }

  void results(Node& n, const std::vector<Names>& names) {
    bool typed = false;
    for (const Names& r : names) typed |= r.list || !r.names.empty();
    if (typed) in_.need(":");
    bool first = true;
    for (const Names& r : names) {
      Result made;
      made.list = r.list;
      if (r.list || !r.names.empty()) {
        if (!first) in_.need(",");
        first = false;
      }
      if (r.list) in_.need("[");
      for (size_t i = 0; i < r.names.size(); i++) {
        if (i) in_.need(",");
        if (by_name_.count(r.names[i])) in_.wrong("%", r.names[i], " is there already");
        made.values.push_back(define(r.names[i], type()));
      }
      if (r.list) in_.need("]");
      n.results.push_back(std::move(made));
    }
    if (n.what != Node::What::call) return;
    const size_t has = facts_of(n.op).results.size();
    if (names.empty()) n.results.resize(has);
    if (n.results.size() != has)
      in_.wrong(facts_of(n.op).name, " has ", uint64_t(has), " results, ",
                uint64_t(n.results.size()), " are named");
  }

  void detach(Node& n) {
    n.what = Node::What::detach;
    in_.need("(");
    n.args.push_back(Arg::of(use()));
    in_.need(")");
  }

  void branch(Node& n, int depth) {
    n.what = Node::What::branch;
    n.args.push_back(Arg::of(use()));
    n.blocks.resize(2);
    in_.need("{");
    scoped([&] { block(n.blocks[0], "yield", depth + 1); });
    in_.need("}"), in_.need("else"), in_.need("{");
    scoped([&] { block(n.blocks[1], "yield", depth + 1); });
    in_.need("}");
  }

  void loop(Node& n, int depth) {
    n.what = Node::What::loop;
    n.blocks.resize(2);
    std::vector<std::pair<std::string, Type>> carried;
    in_.need("(");
    while (!in_.eat(")")) {
      if (!n.args.empty()) in_.need(",");
      std::string name = new_name();
      in_.need("=");
      uint32_t from = use();
      n.args.push_back(Arg::of(from));
      carried.emplace_back(name, p_.values[from].type);
    }
    in_.need("{");
    scoped([&] {
      for (auto& [name, t] : carried) {
        if (by_name_.count(name)) in_.wrong("%", name, " is there already");
        n.blocks[0].inputs.push_back(define(name, t));
      }
      n.blocks[1].inputs = n.blocks[0].inputs;
      scoped([&] { block(n.blocks[0], "yield", depth + 1); });
      in_.need("}"), in_.need("do"), in_.need("{");
      block(n.blocks[1], "yield", depth + 1);
    });
    in_.need("}");
  }

  // What is named inside is not seen outside; no name is used twice in a program.
  template <class F>
  void scoped(const F& f) {
    const size_t before = defined_.size();
    f();
    for (; defined_.size() > before; defined_.pop_back()) by_name_[defined_.back()] = kNone;
  }

  void call(Node& n) {
    std::string name = in_.name();
    n.op = dispatch().find_op(str(name));
    if (!n.op)
      in_.wrong("there is no op '", name,
                "'; `adjoin ops` lists those that are known here, its plugin may be missing");
    const OpFacts& f = facts_of(n.op);
    in_.need("(");
    std::vector<bool> given(f.params.size());
    n.args.resize(f.params.size());
    size_t next = 0;
    for (bool first = true; !in_.eat(")"); first = false) {
      if (!first) in_.need(",");
      std::string word = in_.keyword();
      size_t at = next;
      if (!word.empty())
        for (at = 0; at < f.params.size() && view_of(f.params[at].name) != word;) at++;
      if (at >= f.params.size())
        in_.wrong(name, " has no ",
                  word.empty() ? "argument " + std::to_string(at + 1) : "'" + word + "'");
      if (given[at]) in_.wrong(name, ": '", f.params[at].name, "' is given twice");
      given[at] = true;
      n.args[at] = argument(f.params[at]);
      next = at + 1;
    }
    for (size_t i = 0; i < given.size(); i++) {
      if (given[i]) continue;
      if (!(f.params[i].flags & (AJ_PARAM_HAS_DEFAULT | AJ_PARAM_OPTIONAL)))
        in_.wrong(name, ": argument '", f.params[i].name, "' is missing");
      n.args[i] = default_of(f.params[i]);
    }
    trim(f, n.args);
    if (!in_.eat("into")) return;
    do n.into.push_back(in_.eat("_") ? kNone : use());
    while (in_.eat(","));
    if (n.into.size() != f.results.size())
      in_.wrong(name, " has ", uint64_t(f.results.size()), " results to be written");
  }

  Arg argument(const aj_param&) {
    Arg a;
    if (in_.looks('%')) return Arg::of(use());
    if (in_.looks('[')) return list(a);
    if (in_.looks('"')) {
      a.tag = AJ_STRING;
      a.text = in_.string();
      return a;
    }
    if (in_.eat("None")) return a;
    const bool yes = in_.eat("true");
    if (yes || in_.eat("false")) {
      a.tag = AJ_BOOL, a.i = yes;
      return a;
    }
    if (in_.eat("values")) {
      values(a);
      return a;
    }
    if (in_.eat("floats[]")) return a.tag = AJ_FLOATS, a;
    if (in_.eat("bools[]")) return a.tag = AJ_BOOLS, a;
    if (in_.eat("dtype")) {
      a.tag = AJ_DTYPE;
      in_.need("(");
      a.dtype = dtype(in_.name());
      in_.need(")");
      return a;
    }
    if (in_.eat("device")) {
      in_.need("(");
      if (in_.looks('%')) {
        a.kind = Arg::Kind::device_of;
        a.ref = use();
      } else {
        a.tag = AJ_DEVICE;
        a.text = in_.string();
      }
      in_.need(")");
      return a;
    }
    if (in_.eat("complex")) {
      a.tag = AJ_COMPLEX;
      in_.need("("), a.re = in_.real(), in_.need(","), a.im = in_.real(), in_.need(")");
      return a;
    }
    const bool layout = in_.eat("layout");
    if (layout || in_.eat("format")) {
      a.tag = layout ? AJ_LAYOUT : AJ_MEMORY_FORMAT;
      in_.need("("), a.i = in_.integer(), in_.need(")");
      return a;
    }
    if (Lexer::is_name(in_.peek()) && symbols_.count(Lexer(in_).name())) {
      a.tag = AJ_INT;
      a.sizes = {p_.size(size())};
      return a;
    }
    return number(a);
  }

  Arg number(Arg a) {
    std::string_view s = in_.number();
    if (s.empty()) in_.wrong("an argument is wanted, there is ", in_.seen());
    const char* end = s.data() + s.size();
    if (s.find_first_of(".enf") == s.npos) {
      a.tag = AJ_INT;
      if (std::from_chars(s.data(), end, a.i).ptr != end)
        in_.wrong("'", s, "' is no number of 64 bits");
    } else {
      a.tag = AJ_FLOAT;
      auto read = std::from_chars(s.data(), end, a.re);
      if (read.ptr != end || read.ec != std::errc()) in_.wrong("'", s, "' is no number");
    }
    return a;
  }

  void values(Arg& a) {
    a.kind = Arg::Kind::values;
    a.tag = AJ_TENSORS;
    in_.need("[");
    while (!in_.eat("]")) {
      if (!a.refs.empty()) in_.need(",");
      a.refs.push_back(in_.eat("None") ? kNone : use());
    }
  }

  Arg list(Arg a) {
    Lexer before = in_;
    in_.need("[");
    if (in_.looks('%')) {
      in_ = before;
      values(a);
      return a;
    }
    if (in_.eat("]")) return a.tag = AJ_INTS, a;
    do {
      const bool yes = in_.eat("true");
      Arg item;
      uint32_t sized = kNone;
      if (yes || in_.eat("false"))
        item.tag = AJ_BOOL, item.i = yes;
      else if (Lexer::is_name(in_.peek()) && symbols_.count(Lexer(in_).name()))
        item.tag = AJ_INT, sized = p_.size(size());
      else
        item = number({});
      if (a.tag != AJ_NONE && a.tag != list_of(item.tag))
        in_.wrong("a list holds numbers of one kind");
      a.tag = list_of(item.tag);
      if (item.tag == AJ_INT) {
        if (sized != kNone) a.sizes.resize(a.ints.size(), kNone), a.sizes.push_back(sized);
        a.ints.push_back(item.i);
        if (!a.sizes.empty()) a.sizes.resize(a.ints.size(), kNone);
      }
      if (item.tag == AJ_FLOAT) a.reals.push_back(item.re);
      if (item.tag == AJ_BOOL) a.bools.push_back(uint8_t(item.i));
    } while (in_.eat(","));
    in_.need("]");
    return a;
  }
  static int32_t list_of(int32_t tag) {
    return tag == AJ_INT ? AJ_INTS : tag == AJ_FLOAT ? AJ_FLOATS : AJ_BOOLS;
  }

  Lexer in_;
  Program& p_;
  std::unordered_map<std::string, uint32_t> by_name_;  // kNone: it stood in a block that has ended
  std::unordered_map<std::string, uint32_t> symbols_;
  std::vector<std::string> defined_;  // what is seen here, in order
};

}  // namespace

void parse(std::string_view text, Program& into) {
  Parser(text, into).whole();
  verify(into);
}

}  // namespace adjoin::graph

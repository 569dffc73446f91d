// extensions/graph/text/verify.cpp: is a program sound? Every value is there before it is used,
// every op gets what it takes. And what goes because nobody uses it.
#include <algorithm>

#include "../value.hpp"

namespace adjoin::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& p) : p_(p), seen_(p.values.size()) {}

  void whole() {
    for (uint32_t v : p_.body.inputs) define(v);
    for (const Weight& w : p_.weights) define(w.value);
    block(p_.body);
    for (uint32_t v : p_.body.results) tensor(v);
  }

 private:
  template <class... Part>
  [[noreturn]] void wrong(const Part&... parts) const {
    raise(AJ_INVALID_ARGUMENT, "the program '", p_.name, "' is not sound: ", parts...);
  }
  std::string name(uint32_t v) const {
    return v < p_.values.size() ? "%" + p_.values[v].name : "a value that is none";
  }
  void define(uint32_t v) {
    if (v >= p_.values.size() || seen_[v]) wrong(name(v), " is made twice");
    seen_[v] = true;
    scope_.push_back(v);
  }
  void use(uint32_t v) const {
    if (v >= p_.values.size() || !seen_[v]) wrong(name(v), " is used where it is not made yet");
  }
  void tensor(uint32_t v) const {
    use(v);
    const Type& t = p_.values[v].type;
    if (t.other)
      wrong(name(v), " is a ", t.number() ? "number" : "generator", ", a tensor is wanted");
  }

  void block(const Block& b) {
    for (const Node& n : b.nodes) node(n);
    for (uint32_t v : b.results) tensor(v);
  }
  template <class F>
  void scoped(const F& f) {
    const size_t before = scope_.size();
    f();
    for (; scope_.size() > before; scope_.pop_back()) seen_[scope_.back()] = false;
  }

  void argument(const OpFacts& f, size_t i, const Arg& a) const {
    const aj_param& p = f.params[i];
    const bool takes = p.base == AJ_PARAM_TENSOR || p.base == AJ_PARAM_OPERAND;
    if (a.kind == Arg::Kind::value) {
      use(a.ref);
      const Type& t = p_.values[a.ref].type;
      const int32_t number = t.dtype.code == kDLInt ? AJ_PARAM_INT : AJ_PARAM_FLOAT;
      if (t.number()  ? p.base != number || p.list
          : t.draws() ? p.base != AJ_PARAM_GENERATOR
                      : !takes || p.list)
        wrong(f.name, ": argument '", p.name, "' does not take ", name(a.ref));
    } else if (a.kind == Arg::Kind::values) {
      if (!takes || !p.list) wrong(f.name, ": argument '", p.name, "' takes no list of tensors");
      for (uint32_t v : a.refs)
        if (v != kNone) tensor(v);
    } else if (a.kind == Arg::Kind::device_of) {
      tensor(a.ref);
    }
  }

  void types_of(const Block& b, const std::vector<uint32_t>& wanted, const char* what) const {
    if (b.results.size() != wanted.size())
      wrong("a block yields ", uint64_t(b.results.size()), " values, ", uint64_t(wanted.size()),
            " are wanted by ", what);
    for (size_t i = 0; i < wanted.size(); i++)
      if (!(p_.values[b.results[i]].type == p_.values[wanted[i]].type))
        wrong("a block yields ", name(b.results[i]), " of type ",
              print_type(p_, p_.values[b.results[i]].type), ", ", what, " wants ",
              print_type(p_, p_.values[wanted[i]].type));
  }
  // A scalar tensor that decides.
  void decides(uint32_t v) const {
    tensor(v);
    const Type& t = p_.values[v].type;
    if (std::any_of(t.shape.begin(), t.shape.end(), [](int64_t n) { return n != 1; }))
      wrong(name(v), " decides and has more than one element");
  }

  void blocks(const Node& n) {
    const bool loop = n.what == Node::What::loop;
    if (n.blocks.size() != 2 || (!loop && n.args.size() != 1)) wrong("a statement lacks a block");
    std::vector<uint32_t> results;
    for (const Result& r : n.results) {
      if (r.list || r.values.size() != 1) wrong("a block's results are single values");
      results.push_back(r.values[0]);
    }
    for (const Arg& a : n.args) tensor(a.ref);
    if (!loop) decides(n.args[0].ref);
    scoped([&] {
      if (loop) {
        if (n.blocks[0].inputs.size() != n.args.size()) wrong("a loop carries another number");
        for (uint32_t v : n.blocks[0].inputs) define(v);
      }
      scoped([&] {
        block(n.blocks[0]);
        if (!loop) return types_of(n.blocks[0], results, "the `if`");
        if (n.blocks[0].results.size() != 1) wrong("a loop's condition yields one value");
        decides(n.blocks[0].results[0]);
      });
      scoped([&] {
        block(n.blocks[1]);
        types_of(n.blocks[1], loop ? n.blocks[0].inputs : results, loop ? "the loop" : "the `if`");
      });
      if (loop) {
        if (results.size() != n.args.size()) wrong("a loop has as many results as it carries");
        for (size_t i = 0; i < results.size(); i++)
          if (!(p_.values[results[i]].type == p_.values[n.args[i].ref].type))
            wrong(name(results[i]), " has another type than the loop carries");
      }
    });
  }

  void node(const Node& n) {
    if (n.what == Node::What::call) {
      const OpFacts& f = facts_of(n.op);
      if (n.args.size() > f.params.size() || n.results.size() != f.results.size())
        wrong(f.name, " gets ", uint64_t(n.args.size()), " arguments");
      for (size_t i = 0; i < n.args.size(); i++) argument(f, i, n.args[i]);
      for (size_t i = n.args.size(); i < f.params.size(); i++)
        if (!(f.params[i].flags & (AJ_PARAM_HAS_DEFAULT | AJ_PARAM_OPTIONAL)))
          wrong(f.name, ": argument '", f.params[i].name, "' is missing");
      for (size_t i = 0; i < n.results.size(); i++)
        if (n.results[i].list != (f.results[i].list != 0) && !n.results[i].values.empty())
          wrong(f.name, ": result ", uint64_t(i), " is ", f.results[i].list ? "a list" : "no list");
      for (uint32_t v : n.into)
        if (v != kNone) tensor(v);
    } else if (n.what == Node::What::detach) {
      if (n.args.size() != 1 || n.results.size() != 1 || n.results[0].values.size() != 1)
        wrong("detach has one argument and one result");
      tensor(n.args[0].ref);
    } else if (n.what == Node::What::scripted) {
      for (const Arg& a : n.args) tensor(a.ref);
    } else {
      blocks(n);
    }
    for (const Result& r : n.results)
      for (uint32_t v : r.values) define(v);
  }

  const Program& p_;
  std::vector<bool> seen_;
  std::vector<uint32_t> scope_;
};

void sweep(Block& b, std::vector<bool>& used) {
  for (uint32_t v : b.results) used[v] = true;
  std::vector<Node> kept;
  for (size_t i = b.nodes.size(); i-- > 0;) {
    Node& n = b.nodes[i];
    bool keep = n.keep || has_effect(n);
    for (const Result& r : n.results)
      for (uint32_t v : r.values) keep |= used[v];
    if (!keep) continue;
    for (Block& inner : n.blocks) sweep(inner, used);
    each_use(n, [&](uint32_t v) { used[v] = true; });
    kept.push_back(std::move(n));
  }
  std::reverse(kept.begin(), kept.end());
  b.nodes = std::move(kept);
}

}  // namespace

bool has_effect(const Node& n) {
  if (n.what == Node::What::call) {
    const OpFacts& f = facts_of(n.op);
    if (f.writes || f.draws) return true;
    return std::any_of(n.into.begin(), n.into.end(), [](uint32_t v) { return v != kNone; });
  }
  for (const Block& b : n.blocks)
    if (std::any_of(b.nodes.begin(), b.nodes.end(), has_effect)) return true;
  return n.what == Node::What::loop || n.what == Node::What::scripted;  // it may never end
}

void remove_dead(Program& p) {
  std::vector<bool> used(p.values.size());
  sweep(p.body, used);
  std::erase_if(p.weights, [&](const Weight& w) { return !used[w.value]; });
}

void verify(const Program& p) { Verifier(p).whole(); }

}  // namespace adjoin::graph

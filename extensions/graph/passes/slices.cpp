// extensions/graph/passes/slices.cpp: slices of an element-wise result are made of slices of what
// it is made of. `sides[..., 0] * sides[..., 1]` becomes one chain with the calls that make `sides`
// of small tensors, which are spread over it: nothing of its size is made, and what is left lies in
// neighbours. An element's bits do not depend on its place.
#include <algorithm>
#include <map>

#include "passes.hpp"

namespace adjoin::graph {
namespace {

constexpr int64_t kLeast = 1 << 13;  // elements, below which more calls cost more than they save
constexpr int64_t kSpread = 8;       // so many times smaller is what is sliced instead

int64_t numel_of(const Type& t) {
  int64_t n = 1;
  for (int64_t size : t.shape)
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) return 0;
  return n;
}

bool makes_elements(const Program& p, const Node& n) {
  if (n.what != Node::What::call || n.keep || n.results.size() != 1 || n.results[0].list ||
      n.results[0].values.size() != 1)
    return false;
  if (std::any_of(n.into.begin(), n.into.end(), [](uint32_t v) { return v != kNone; }))
    return false;
  const OpFacts& f = facts_of(n.op);
  if (f.writes || f.draws || !is_element_wise(f.kind)) return false;
  return std::all_of(n.args.begin(), n.args.end(), [&](const Arg& a) {
    return a.kind == Arg::Kind::constant ||
           (a.kind == Arg::Kind::value && !p.values[a.ref].type.other);
  });
}

class Slicing {
 public:
  Slicing(Program& p, const std::vector<bool>& descends)
      : p_(p),
        descends_(descends),
        shared_(p),
        made_by_(p.values.size(), kNone),
        users_(p.values.size()),
        given_(p.body.nodes.size()),
        gone_(p.body.nodes.size()) {
    for (uint32_t i = 0; i < p.body.nodes.size(); i++) {
      const Node& n = p.body.nodes[i];
      each_use(n, [&](uint32_t v) {
        if (users_[v].empty() || users_[v].back() != i) users_[v].push_back(i);
      });
      for (const Result& r : n.results)
        for (uint32_t v : r.values) made_by_[v] = i;
    }
    for (uint32_t v : p.body.results) users_[v].push_back(kNone);
  }

  // By node, which one it was before; kNone: it is new. Empty: nothing was found.
  std::vector<uint32_t> whole() {
    bool any = false;
    const auto n = uint32_t(p_.body.nodes.size());
    for (uint32_t i = n; i-- > 0;) any |= root(i);
    if (!any) return {};
    std::vector<Node> nodes;
    std::vector<uint32_t> before;
    for (uint32_t i = 0; i < n; i++) {
      for (Node& made : given_[i]) {
        before.push_back(facts_of(made.op).kind == "view" ? kNone : i);
        nodes.push_back(std::move(made));
      }
      if (gone_[i]) continue;
      before.push_back(i);
      nodes.push_back(std::move(p_.body.nodes[i]));
    }
    p_.body.nodes = std::move(nodes);
    return before;
  }

 private:
  const Node& node(uint32_t i) const { return p_.body.nodes[i]; }
  const Type& type(uint32_t v) const { return p_.values[v].type; }
  bool in_order(uint32_t v) const { return v < descends_.size() && descends_[v]; }

  // The dimension that a call slices; -1: it is none that is served here.
  int64_t sliced(const Node& n, uint32_t of) const {
    if (n.what != Node::What::call || n.args.size() < 2 || n.args[0].kind != Arg::Kind::value ||
        n.args[0].ref != of || n.results.size() != 1 || n.results[0].values.size() != 1)
      return -1;
    const std::string& op = facts_of(n.op).name;
    if (op != "select" && op != "slice") return -1;
    for (size_t k = 1; k < n.args.size(); k++)
      if (n.args[k].kind != Arg::Kind::constant || !n.args[k].sizes.empty()) return -1;
    if (n.args[1].tag != AJ_INT) return -1;
    const auto dims = int64_t(type(of).shape.size());
    return n.args[1].i < 0 ? n.args[1].i + dims : n.args[1].i;
  }

  // Is the result of this call read by slices of one dimension alone, and these by element-wise
  // calls?
  bool root(uint32_t i) {
    if (gone_[i] || !makes_elements(p_, node(i))) return false;
    const uint32_t x = node(i).results[0].values[0];
    if (numel_of(type(x)) < kLeast || !may(x) || users_[x].size() < 2) return false;
    dim_ = -1;
    int64_t elements = 0;
    for (uint32_t user : users_[x]) {
      const int64_t d = user == kNone ? -1 : sliced(node(user), x);
      if (d < 0 || (dim_ >= 0 && d != dim_) || gone_[user]) return false;
      dim_ = d;
      const uint32_t v = node(user).results[0].values[0];
      const int64_t own = numel_of(type(v));
      if (!own || type(v).shape.empty() || !may(v)) return false;
      elements += own;
      for (uint32_t reader : users_[v])
        if (reader == kNone || !makes_elements(p_, node(reader))) return false;
    }
    shape_ = type(x).shape;
    tree_.clear();
    if (elements > numel_of(type(x)) || !collect(i)) return false;
    std::sort(tree_.begin(), tree_.end());
    for (uint32_t user : users_[x]) slice(x, node(user));
    for (uint32_t user : users_[x]) gone_[user] = true;
    for (uint32_t k : tree_) gone_[k] = true;
    return true;
  }

  // Nobody else sees the value's memory.
  bool may(uint32_t v) { return in_order(v) && !shared_.is_written(v) && !shared_.is_result(v); }

  // The calls whose results are only in the way; false: what they take is as large as what they
  // give.
  bool collect(uint32_t i) {
    tree_.push_back(i);
    int64_t whole = 1;
    for (int64_t n : shape_) whole *= n;
    for (const Arg& a : node(i).args) {
      if (a.kind != Arg::Kind::value) continue;
      const Type& t = type(a.ref);
      if (t.shape == shape_ && made_by_[a.ref] != kNone) {
        const uint32_t by = made_by_[a.ref];
        const auto& readers = users_[a.ref];
        if (gone_[by] || !makes_elements(p_, node(by)) || readers.size() != 1 || !may(a.ref) ||
            std::find(tree_.begin(), tree_.end(), by) != tree_.end() || !collect(by))
          return false;
        continue;
      }
      if (numel_of(t) * kSpread > whole || !in_order(a.ref) || shared_.is_written(a.ref))
        return false;
      // A tensor without dimensions takes another part in what the result's dtype is.
      if (place(t) == 0 && t.shape.size() == 1) return false;
    }
    return true;
  }

  // Where the dimension is in an operand; below 0: it is spread over it.
  int64_t place(const Type& t) const {
    return dim_ - int64_t(shape_.size()) + int64_t(t.shape.size());
  }

  // The calls once more, for a slice of the result.
  void slice(uint32_t x, const Node& how) {
    std::map<uint32_t, uint32_t> to;
    const uint32_t wanted = how.results[0].values[0];
    const Type& part = p_.values[wanted].type;
    const bool removes = part.shape.size() < shape_.size();
    auto less = [&](Type t, int64_t at) {
      if (removes)
        t.shape.erase(t.shape.begin() + at);
      else
        t.shape[size_t(at)] = part.shape[size_t(dim_)];
      return t;
    };
    for (uint32_t i : tree_) {
      std::vector<Node>& out = given_[i];
      Node made = node(i);
      for (Arg& a : made.args) {
        if (a.kind != Arg::Kind::value) continue;
        if (const auto known = to.find(a.ref); known != to.end()) {
          a.ref = known->second;
          continue;
        }
        const Type whole = type(a.ref);
        const int64_t at = place(whole);
        const bool one = at >= 0 && whole.shape[size_t(at)] == 1;
        if (at < 0 || (one && !removes)) continue;
        Node view = how;
        view.line = made.line;
        view.args[0] = Arg::of(a.ref);
        view.args[1].i = at;
        if (one) view.args[2].i = 0;
        view.results[0].values = {p_.add(less(whole, at))};
        to[a.ref] = view.results[0].values[0];
        a.ref = to[a.ref];
        out.push_back(std::move(view));
      }
      const uint32_t result = node(i).results[0].values[0];
      const uint32_t given = result == x ? wanted : p_.add(less(p_.values[result].type, dim_));
      to[result] = given;
      made.results[0].values = {given};
      out.push_back(std::move(made));
    }
  }

  Program& p_;
  const std::vector<bool>& descends_;
  Shared shared_;
  std::vector<uint32_t> made_by_;
  std::vector<std::vector<uint32_t>> users_;  // nodes; kNone: who gets the program's results
  std::vector<std::vector<Node>> given_;      // in the place of a node
  std::vector<bool> gone_;
  // Of the root that is looked at.
  int64_t dim_ = -1;
  std::vector<int64_t> shape_;
  std::vector<uint32_t> tree_;
};

}  // namespace

std::vector<uint32_t> slice_first(Program& p, const std::vector<bool>& descends) {
  if (p.draw != kNone || !p.sizes.empty()) return {};
  for (const Node& n : p.body.nodes)
    if (n.what != Node::What::call) return {};
  return Slicing(p, descends).whole();
}

}  // namespace adjoin::graph

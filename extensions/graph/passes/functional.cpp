// extensions/graph/passes/functional.cpp: a call that writes what the program has made itself gives
// a new value instead. The tape adds gradients up where they stand; between such calls nothing
// moves, so no chain goes over them. Who runs the program writes into the old value where nobody
// has it.
#include <algorithm>

#include "passes.hpp"

namespace adjoin::graph {
namespace {

// Does the call give by itself what it now writes to a value of this type: one dtype, one shape?
bool gives_the_same(const Program& p, const Node& n, const Type& to) {
  const OpFacts& f = facts_of(n.op);
  if (f.writes || f.draws || !is_element_wise(f.kind) || n.keep || n.into.size() != 1 ||
      n.results.size() != 1 || n.results[0].list || !n.results[0].values.empty())
    return false;
  if (to.dtype.code != kDLFloat && to.dtype.code != kDLBfloat) return false;
  bool whole = false;
  for (const Arg& a : n.args) {
    if (a.kind == Arg::Kind::constant) {
      if (a.tag == AJ_DTYPE || a.tag == AJ_COMPLEX) return false;
      continue;
    }
    if (a.kind != Arg::Kind::value) return false;
    const Type& t = p.values[a.ref].type;
    const size_t own = t.shape.size(), all = to.shape.size();
    if (t.other || !(t.dtype == to.dtype) || own > all) return false;
    for (size_t d = 0; d < own; d++)
      if (t.shape[own - 1 - d] != to.shape[all - 1 - d] && t.shape[own - 1 - d] != 1) return false;
    whole |= t.shape == to.shape;
  }
  return whole;
}

class Renaming {
 public:
  Renaming(Program& p, const std::vector<uint32_t>& memory, const std::vector<bool>& ordered)
      : p_(p), memory_(memory), ordered_(ordered), of_(memory.size()) {}

  void whole() {
    if (look()) rename();
  }

 private:
  struct Class {  // of values that share memory
    std::vector<uint32_t> members;
    std::vector<size_t> writes;  // calls that write its first value
    bool other = false;          // somebody else writes it
  };
  // When a value is made, and when it is read last.
  struct Life {
    size_t made = kNever, last = 0;
  };
  static constexpr size_t kNever = ~size_t(0);

  bool look() {
    std::vector<Node>& nodes = p_.body.nodes;
    std::vector<Life> lives(of_.size());
    for (uint32_t v = 0; v < of_.size(); v++) of_[memory_[v]].members.push_back(v);
    for (size_t i = 0; i < nodes.size(); i++) {
      const Node& n = nodes[i];
      if (!n.blocks.empty()) return false;
      each_use(n, [&](uint32_t v) { lives[v].last = i; });
      for (const Result& r : n.results)
        for (uint32_t v : r.values) lives[v].made = i;
      written(n, i);
    }
    for (uint32_t v : p_.body.results) lives[v].last = kNever;
    bool any = false;
    for (uint32_t v = 0; v < of_.size(); v++) {
      Class& c = of_[v];
      if (c.writes.empty()) continue;
      c.other |= lives[v].made == kNever || !ordered_[v];
      // A view from before a write may not be read after it.
      for (uint32_t u : c.members)
        for (size_t w : c.writes) c.other |= u != v && lives[u].made < w && lives[u].last > w;
      if (c.other) c.writes.clear();
      any |= !c.writes.empty();
    }
    return any;
  }

  void written(const Node& n, size_t i) {
    for (uint32_t v : n.into) {
      if (v == kNone) continue;
      Class& c = of_[memory_[v]];
      if (memory_[v] == v && n.what == Node::What::call && all_ordered(n) &&
          gives_the_same(p_, n, p_.values[v].type))
        c.writes.push_back(i);
      else
        c.other = true;
    }
    if (n.what != Node::What::call) return;
    const OpFacts& f = facts_of(n.op);
    for (size_t k = 0; f.writes && k < n.args.size(); k++) {
      if (!(f.params[k].flags & AJ_PARAM_WRITTEN)) continue;
      if (n.args[k].kind == Arg::Kind::value) of_[memory_[n.args[k].ref]].other = true;
      for (uint32_t v : n.args[k].refs)
        if (v != kNone) of_[memory_[v]].other = true;
    }
  }
  bool all_ordered(const Node& n) const {
    return std::all_of(n.args.begin(), n.args.end(),
                       [&](const Arg& a) { return a.kind != Arg::Kind::value || ordered_[a.ref]; });
  }

  // The last version keeps the name.
  void rename() {
    std::vector<uint32_t> now(of_.size()), left(of_.size());
    for (uint32_t v = 0; v < of_.size(); v++) {
      left[v] = uint32_t(of_[v].writes.size());
      now[v] = v;
    }
    auto next = [&](uint32_t v) {
      if (!left[v]) return v;
      const Type type = p_.values[v].type;
      return p_.add(type);
    };
    for (Node& n : p_.body.nodes) {
      const uint32_t target = n.into.empty() ? kNone : n.into[0];
      auto put = [&](uint32_t& v) {
        if (v < now.size()) v = now[v];
      };
      for (Arg& a : n.args) {
        if (a.kind == Arg::Kind::value || a.kind == Arg::Kind::device_of) put(a.ref);
        for (uint32_t& v : a.refs) put(v);
      }
      if (target != kNone && !of_[target].writes.empty()) {
        left[target]--;
        now[target] = next(target);
        n.into.clear();
        n.results[0].values = {now[target]};
        continue;
      }
      for (Result& r : n.results)
        for (uint32_t& v : r.values) v = now[v] = next(v);
    }
  }

  Program& p_;
  const std::vector<uint32_t>& memory_;
  const std::vector<bool>& ordered_;
  std::vector<Class> of_;  // by the first value
};

}  // namespace

void make_functional(Program& p, const std::vector<uint32_t>& memory,
                     const std::vector<bool>& ordered) {
  Renaming(p, memory, ordered).whole();
}

}  // namespace adjoin::graph

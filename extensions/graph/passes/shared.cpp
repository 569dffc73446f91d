// extensions/graph/passes/shared.cpp: what the passes have to know of a program: which values may
// share memory, which calls are functions.
#include <algorithm>
#include <numeric>
#include <set>

#include "passes.hpp"

namespace adjoin::graph {
namespace {

// Calls of these kinds make memory of their own; of others any result may be any argument.
bool makes_its_own(const std::string& kind) {
  static const std::string_view fresh[] = {"unary",        "unary_float", "unary_bool",   "binary",
                                           "binary_float", "compare",     "pointwise",    "reduce",
                                           "reduce_float", "reduce_bool", "reduce_index", "scan"};
  return std::find(std::begin(fresh), std::end(fresh), kind) != std::end(fresh);
}

}  // namespace

Shared::Shared(const Program& p)
    : same_(p.values.size()), written_(p.values.size()), handed_out_(p.values.size()) {
  std::iota(same_.begin(), same_.end(), 0u);
  block(p.body);
  for (uint32_t v : p.body.results) handed_out_[find(v)] = true;
}
uint32_t Shared::find(uint32_t v) {
  while (same_[v] != v) v = same_[v] = same_[same_[v]];
  return v;
}
void Shared::join(uint32_t a, uint32_t b) {
  a = find(a), b = find(b);
  if (a == b) return;
  same_[a] = b;
  if (written_[a]) written_[b] = true;
}
void Shared::block(const Block& b) {
  for (const Node& n : b.nodes) node(n);
}
void Shared::node(const Node& n) {
  for (const Block& b : n.blocks) block(b);
  if (n.what == Node::What::branch || n.what == Node::What::loop || n.keep) {
    // What blocks read and give is left alone, and what a call may write without saying so.
    each_use(n, [&](uint32_t v) { written_[find(v)] = true; });
    for (const Result& r : n.results)
      for (uint32_t v : r.values) written_[find(v)] = true;
    return;
  }
  for (uint32_t v : n.into)
    if (v != kNone) written_[find(v)] = true;
  if (n.what == Node::What::call) {
    const OpFacts& f = facts_of(n.op);
    for (size_t i = 0; i < n.args.size(); i++) {
      if (!(f.params[i].flags & AJ_PARAM_WRITTEN)) continue;
      if (n.args[i].kind == Arg::Kind::value) written_[find(n.args[i].ref)] = true;
      for (uint32_t v : n.args[i].refs)
        if (v != kNone) written_[find(v)] = true;
    }
    if (makes_its_own(f.kind)) return;
  }
  each_use(n, [&](uint32_t used) {
    for (const Result& r : n.results)
      for (uint32_t v : r.values) join(v, used);
  });
}

bool is_function(const Node& n) {
  if (n.what != Node::What::call || n.keep || has_effect(n)) return false;
  if (makes_its_own(facts_of(n.op).kind)) return true;
  // An op made of others may draw without saying so.
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(dispatch().op_info(n.op, &info));
  return !(info.flags & AJ_INFO_COMPOSITE);
}

namespace {

void replace_in(Block& b, const std::vector<uint32_t>& to) {
  auto put = [&](uint32_t& v) {
    while (v != kNone && to[v] != v) v = to[v];
  };
  for (Node& n : b.nodes) {
    for (Arg& a : n.args) {
      if (a.kind == Arg::Kind::value || a.kind == Arg::Kind::device_of) put(a.ref);
      for (uint32_t& v : a.refs) put(v);
    }
    for (uint32_t& v : n.into) put(v);
    for (Block& inner : n.blocks) replace_in(inner, to);
  }
  for (uint32_t& v : b.results) put(v);
}

}  // namespace

void replace(Program& p, const std::vector<uint32_t>& to) { replace_in(p.body, to); }

Weight& add_constant(Program& p, uint32_t value, Tensor t) {
  std::set<std::string> names;
  for (const Weight& w : p.weights) names.insert(w.name);
  size_t i = p.weights.size();
  while (names.count(text("folded.", uint64_t(i)))) i++;
  p.weights.push_back({value, text("folded.", uint64_t(i)), true, std::move(t)});
  return p.weights.back();
}

std::unique_ptr<Program> copy_of(const Program& p) {
  auto made = std::make_unique<Program>();
  made->name = p.name, made->form_in = p.form_in, made->form_out = p.form_out;
  made->symbols = p.symbols, made->sizes = p.sizes;
  made->values = p.values, made->weights = p.weights;
  made->body = p.body, made->lines = p.lines, made->draw = p.draw;
  return made;
}

std::unique_ptr<Program> apply_passes(const Program& p, uint32_t passes) {
  constexpr uint32_t known = AJ_PASS_DEAD | AJ_PASS_COMMON | AJ_PASS_FREEZE | AJ_PASS_CONSTANTS |
                             AJ_PASS_NORMS | AJ_PASS_DROPOUT;
  if (passes & ~known)
    raise(AJ_INVALID_ARGUMENT, "passes: ", passes & ~known, " is not known here");
  auto made = copy_of(p);
  if (passes & AJ_PASS_FREEZE) freeze(*made);
  if (passes & AJ_PASS_DROPOUT) drop_dropout(*made);
  if (passes & AJ_PASS_NORMS) fold_norms(*made);
  if (passes & AJ_PASS_CONSTANTS) fold_constants(*made);
  if (passes & AJ_PASS_COMMON) merge_common(*made);
  if (passes & AJ_PASS_DEAD) remove_dead(*made);
  verify(*made);
  return made;
}

}  // namespace adjoin::graph

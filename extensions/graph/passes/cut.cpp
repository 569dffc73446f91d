// extensions/graph/passes/cut.cpp: a program seen as calls that take and give values, and one made
// of some of them.
#include <algorithm>

#include "passes.hpp"

namespace adjoin::graph {
namespace {

uint64_t bytes_of(const Type& t) {
  uint64_t n = t.other ? 0 : (t.dtype.bits + 7u) / 8u;
  for (int64_t size : t.shape) n = size < 0 ? 0 : n * uint64_t(size);
  return n;
}

uint32_t flags_of(const Node& n) {
  if (n.what == Node::What::detach) return AJ_CALL_VIEW;
  if (n.what != Node::What::call || n.keep || has_effect(n)) return AJ_CALL_EFFECT;
  const OpFacts& f = facts_of(n.op);
  return f.kind == "view" ? AJ_CALL_VIEW : is_element_wise(f.kind) ? AJ_CALL_CHEAP : 0;
}

}  // namespace

void each_call(const Program& p, aj_each_call each, void* self) {
  for (const Node& n : p.body.nodes) {
    std::vector<uint32_t> takes, gives;
    std::vector<uint64_t> bytes;
    each_use(n, [&](uint32_t v) { takes.push_back(v); });
    for (const Result& r : n.results)
      for (uint32_t v : r.values) gives.push_back(v), bytes.push_back(bytes_of(p.values[v].type));
    each(self, flags_of(n), takes.data(), uint32_t(takes.size()), gives.data(), bytes.data(),
         uint32_t(gives.size()));
  }
}

std::unique_ptr<Program> cut(const Program& p, const std::vector<uint32_t>& calls,
                             std::vector<uint32_t> inputs, std::vector<uint32_t> results) {
  if (p.script || !p.weights.empty() || p.draw != kNone)
    raise(AJ_UNIMPLEMENTED, "cut: ", p.name, " has parameters, a generator or scripted code");
  auto made = copy_of(p);
  made->body.nodes.clear();
  for (uint32_t i : calls) {
    if (i >= p.body.nodes.size() || !p.body.nodes[i].blocks.empty())
      raise(AJ_OUT_OF_RANGE, "cut: ", p.name, " has no call ", i, ", or it has blocks");
    made->body.nodes.push_back(p.body.nodes[i]);
  }
  for (const auto* values : {&inputs, &results})
    for (uint32_t v : *values)
      if (v >= p.values.size()) raise(AJ_OUT_OF_RANGE, "cut: ", p.name, " has no value ", v);
  made->body.inputs = std::move(inputs);
  made->body.results = std::move(results);
  verify(*made);
  return made;
}

}  // namespace adjoin::graph

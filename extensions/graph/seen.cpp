// extensions/graph/seen.cpp: calls of a program as compilers read them (abi/compiler.h).
#include "seen.hpp"

#include <deque>
#include <unordered_map>

#include "value.hpp"

namespace adjoin::graph {
namespace {

Seen& of(const aj_graph* g) { return *reinterpret_cast<Seen*>(const_cast<aj_graph*>(g)); }

uint32_t count(const aj_graph* g) { return uint32_t(of(g).nodes.size()); }
uint32_t value_count(const aj_graph* g) { return uint32_t(of(g).p->values.size()); }

const uint32_t* list(const std::vector<uint32_t>& values, uint32_t* n) {
  *n = uint32_t(values.size());
  return values.data();
}
const uint32_t* inputs(const aj_graph* g, uint32_t* n) { return list(of(g).inputs, n); }
const uint32_t* outputs(const aj_graph* g, uint32_t* n) { return list(of(g).outputs, n); }

uint32_t ref_of(const Program& p, const Arg& a) {
  if (a.kind == Arg::Kind::value) return p.values[a.ref].type.other ? AJ_GRAPH_OTHER : a.ref + 1;
  return a.kind == Arg::Kind::constant && a.sizes.empty() ? AJ_GRAPH_CONSTANT : AJ_GRAPH_OTHER;
}

aj_status* node(const aj_graph* g, uint32_t i, aj_graph_node* io) {
  return guard("", [&] {
    Seen& seen = of(g);
    if (i >= seen.nodes.size()) raise(AJ_OUT_OF_RANGE, "graph: there is no call ", i);
    const Node& n = *seen.nodes[i];
    aj_graph_node told{};
    told.struct_size = uint32_t(std::min<size_t>(io->struct_size, sizeof told));
    told.line = n.line;
    if (n.what != Node::What::call || has_effect(n) || n.keep) told.flags |= AJ_NODE_EFFECT;
    if (n.what == Node::What::call) {
      const OpFacts& f = facts_of(n.op);
      Seen::Told& kept = seen.told[i];
      if (kept.args.empty()) {
        for (size_t k = 0; k < f.params.size(); k++) {
          const bool given = k < n.args.size();
          kept.args.push_back(!given                                  ? f.params[k].value
                              : n.args[k].kind == Arg::Kind::constant ? value_of(n.args[k])
                                                                      : aj_value{});
          kept.refs.push_back(given ? ref_of(*seen.p, n.args[k]) : uint32_t(AJ_GRAPH_CONSTANT));
        }
        for (const Result& r : n.results)
          kept.results.push_back(r.list || r.values.empty() ? 0 : r.values[0] + 1);
      }
      told.op = n.op;
      told.name = str(f.name);
      told.args = kept.args.data(), told.refs = kept.refs.data();
      told.results = kept.results.data();
      told.nargs = uint32_t(kept.args.size()), told.nresults = uint32_t(kept.results.size());
    }
    std::memcpy(io, &told, told.struct_size);
  });
}

aj_status* type(const aj_graph* g, uint32_t value, DLTensor* io, const uint32_t** symbols) {
  return guard("", [&] {
    Seen& seen = of(g);
    if (value >= seen.p->values.size() || seen.p->values[value].type.other)
      raise(AJ_OUT_OF_RANGE, "graph: value ", value, " is no tensor of it");
    const Type& t = seen.p->values[value].type;
    Seen::Shape& shape = seen.shapes[value];
    if (shape.sizes.size() != t.shape.size()) {
      for (int64_t n : t.shape) {
        shape.sizes.push_back(std::max<int64_t>(n, -1));
        shape.symbols.push_back(n < 0 ? uint32_t(-n) : 0);
      }
    }
    *io = {};
    io->dtype = t.dtype;
    io->ndim = int32_t(t.shape.size());
    io->shape = shape.sizes.data();
    *symbols = shape.symbols.data();
  });
}

}  // namespace

const aj_graphs graphs_table = {
    sizeof(aj_graphs), 0, count, node, value_count, type, inputs, outputs,
};

}  // namespace adjoin::graph

// extensions/graph/seen.hpp: what stands behind an aj_graph.
#pragma once
#include <unordered_map>

#include "parts.hpp"

namespace adjoin::graph {

struct Seen {
  struct Told {
    std::vector<aj_value> args;
    std::vector<uint32_t> refs, results;
  };
  struct Shape {
    std::vector<int64_t> sizes;
    std::vector<uint32_t> symbols;
  };
  const Program* p;
  std::vector<const Node*> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::unordered_map<uint32_t, Told> told;     // by call
  std::unordered_map<uint32_t, Shape> shapes;  // by value

  const aj_graph* graph() const { return reinterpret_cast<const aj_graph*>(this); }
};

}  // namespace adjoin::graph

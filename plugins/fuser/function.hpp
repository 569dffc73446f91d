// plugins/fuser/function.hpp: which function of the steps a call is.
#ifndef ADJOIN_PLUGINS_FUSER_FUNCTION_HPP
#define ADJOIN_PLUGINS_FUSER_FUNCTION_HPP
#include <optional>

#include "program.hpp"

namespace adjoin::fuser {

// An input of a function: a value of the graph, or a number.
struct Input {
  uint32_t value = kNone;
  double number = 0;
};
struct Chosen {
  const char* function = nullptr;
  std::vector<Input> inputs;
  double numbers[3] = {};  // fields, in the computing type; of clamp which bounds it has
  bool flags = false;      // they are bools
};
struct Folding {
  Fold fold;
  uint32_t value;
  bool keep;
  uint32_t weight = kNone, bias = kNone;  // of a layer norm; values
  uint32_t mean = kNone, rstd = kNone;    // what it gives besides
  double eps = 0;
};

struct Node : aj_graph_node {
  Node(const aj_graph* g, uint32_t i);
  std::string_view op_name() const { return view_of(name); }
};

// What a value's type is; a size below 0 is -1 - symbol.
struct ValueType {
  DLDataType dtype{};
  std::vector<int64_t> shape;
};
ValueType type_of(const aj_graph* g, uint32_t value);

// float or double, in which the call is computed, and its function; none: not for us.
std::optional<Chosen> element_wise(const aj_graph* g, const Node& n, DLDataType* compute);
// A reduction, or a function of rows, along the last dimension.
std::optional<Folding> folding(const aj_graph* g, const Node& n);

}  // namespace adjoin::fuser
#endif

// frontends/python/src/node.hpp: nodes of the graph as Python objects.
#pragma once

#include "op.hpp"

namespace adjoin::py {

using HeldNode = Held<aj_node>;

struct NodeObject {
  PyObject_HEAD aj_node* node;
};
extern PyTypeObject node_type;

// The object of a node, or None; takes the reference. The node of a Python function is its context.
PyObject* node_object(aj_node* steal);

}  // namespace adjoin::py

"""adjoin.fx.passes.tools_common: what several programs over graphs need."""

import adjoin

from .. import _naming
from ..graph import Graph

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "legalize_graph", "stable_topological_sort"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules, node):
    """The name of what a node calls: a module's class, a function's path, a method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_method":
        return node.target
    if node.op == "call_function":
        return _naming.qualified_name(node.target)
    module = submodules[node.target]
    return adjoin.typename(getattr(module, "_base_class_origin", type(module)))


def stable_topological_sort(gm):
    """Puts the nodes of a GraphModule into an order where each comes after its inputs; what is in order stays as it was."""
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    order, ready = [], [node for node, count in waiting.items() if not count]
    while ready:
        node = ready.pop(0)
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(order) < len(waiting):
        left = [node.name for node in waiting if node not in set(order)]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}: each of them is an input of what it needs")
    graph, made = Graph(), {}
    last = [node for node in order if node.op == "output"]
    for node in [node for node in order if node.op != "output"] + last:
        made[node] = graph.node_copy(node, lambda old: made[old])
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm):
    """The same by its older name."""
    return stable_topological_sort(gm)

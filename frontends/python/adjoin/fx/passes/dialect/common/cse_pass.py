"""adjoin.fx.passes.dialect.common.cse_pass: what a graph computes twice it computes once."""

import adjoin

from ....experimental.proxy_tensor import drawn_numbers
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import map_arg, writes
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

# What draws, or makes memory that nobody else may have.
_DRAWN = "rand rand_like randn randn_like randint randint_like randperm bernoulli dropout multinomial normal empty empty_like"
_OWN = {getattr(adjoin, name) for name in _DRAWN.split()} | {drawn_numbers}
_OWN |= {getattr(adjoin.ops.aten, name) for name in _DRAWN.split()}


def get_CSE_banned_ops():
    """Functions whose calls are never the same: they draw, or make fresh memory."""
    return set(_OWN)


def _writes_something(node):
    if node.op == "call_method":
        return node.target.endswith("_") and not node.target.endswith("__")
    return node.op == "call_function" and (writes(node.target) or node.kwargs.get("out") is not None)


def _key(value):
    """An argument as something to compare: nodes by identity, numbers with their type."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(_key, value))
    if isinstance(value, dict):
        return "dict", tuple((name, _key(part)) for name, part in value.items())
    if isinstance(value, slice):
        return "slice", _key(value.start), _key(value.stop), _key(value.step)
    hash(value)
    return type(value), value


class CSEPass(PassBase):
    """Replaces a call of a function by an earlier one with the same arguments, where the function neither draws nor writes."""

    def __init__(self, banned_ops=None):
        super().__init__()
        self.banned_ops = get_CSE_banned_ops() if banned_ops is None else banned_ops

    def _is_banned(self, target):
        packet = getattr(target, "overloadpacket", None)
        return target in self.banned_ops or (packet is not None and packet in self.banned_ops)

    def _seen_as(self, node, args, kwargs):
        if node.op not in ("call_function", "get_attr") or self._is_banned(node.target) or writes(node.target):
            return None
        try:
            return node.op, node.target, _key(args), _key(kwargs)
        except TypeError:  # an argument that cannot be compared
            return None

    def call(self, graph_module):
        """A module whose graph has every call once."""
        graph, made, seen, modified = Graph(), {}, {}, False
        if any(_writes_something(node) for node in graph_module.graph.nodes):
            return PassResult(graph_module, False)  # a call between two others may have changed their arguments
        for node in graph_module.graph.nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda old: made[old])
            key = self._seen_as(node, args, kwargs)
            if key is not None and key in seen:
                made[node], modified = seen[key], True
                continue
            made[node] = graph.node_copy(node, lambda old: made[old])
            if key is not None:
                seen[key] = made[node]
        graph._codegen = graph_module.graph._codegen
        return PassResult(GraphModule(graph_module, graph), modified)

"""adjoin.fx.passes.split_module: the parts of a graph as modules of their own."""

import operator

from ...nn import Module
from ..graph import Graph
from ..graph_module import GraphModule, _copy_attr
from ..node import Node, map_arg

__all__ = ["split_module"]


class _Part:
    """The nodes of one part, and what goes in and out."""

    def __init__(self, name):
        self.name, self.nodes, self.inputs, self.outputs, self.needs = name, [], {}, {}, {}


def split_module(
    m, root_m, split_callback, qualname_map=None, keep_original_order=False, keep_original_node_name=False, *,
    tuple_return=False, **others,
):  # fmt: skip
    """A GraphModule that calls ``submod_0``, ``submod_1``, ...: ``split_callback(node)`` says to which part a node goes.

    Parts must not need each other in a circle. ``tuple_return``: a part that gives one value gives a tuple of it.
    """
    if others:
        raise TypeError(f"split_module has no {sorted(others)}; leave them out")
    parts, of = {}, {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        number = split_callback(node)
        part = parts.setdefault(number, _Part(f"submod_{number}"))
        part.nodes.append(node)
        of[node] = part
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            here, there = of.get(node), of.get(used)
            if there is not None and here is not there:
                there.outputs.setdefault(used)
            if here is not None and here is not there and used.op != "get_attr":
                here.inputs.setdefault(used)
                if there is not None:
                    here.needs.setdefault(there)
    order = list(parts.values()) if keep_original_order else _in_order(list(parts.values()))
    made, values = Graph(), {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = made.node_copy(node)
    modules = {}
    for part in order:
        modules[part.name] = _module_of(part, m, qualname_map, tuple_return)
        call = made.call_module(part.name, tuple(values[n] for n in part.inputs))
        outputs = list(part.outputs)
        if len(outputs) == 1 and not tuple_return:
            values[outputs[0]] = call
        else:
            for i, node in enumerate(outputs):
                values[node] = made.call_function(operator.getitem, (call, i))

    def outside(node):
        if node.op == "get_attr" and node not in values:
            modules.setdefault(node.target, _fetch(m, node.target))
            values[node] = made.get_attr(node.target)
        return values[node]

    last = m.graph.output_node()
    if last is not None:
        made.output(map_arg(last.args[0], outside), last.type)
    return GraphModule(modules, made, type(m).__name__)


def _fetch(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _in_order(parts):
    """The parts, each after those that it needs; otherwise as they stood."""
    done, waiting = {}, list(parts)
    while waiting:
        ready = next((p for p in waiting if all(need in done for need in p.needs)), None)
        if ready is None:
            names = ", ".join(p.name for p in waiting)
            raise RuntimeError(
                f"cycle exists between partitions! {names} need each other; let split_callback put them together"
            )
        done[ready] = True
        waiting.remove(ready)
    return list(done)


def _module_of(part, m, names, always_tuple):
    graph, values = Graph(), {}
    for node in part.inputs:
        values[node] = graph.placeholder(node.name, node.type)
        values[node].meta = dict(node.meta)
    owned = {}

    def inside(node: Node):
        if node.op == "get_attr" and node not in values:
            owned[node.target] = node
            values[node] = graph.get_attr(node.target)
        return values[node]

    for node in part.nodes:
        values[node] = graph.node_copy(node, inside)
        if node.op == "call_module":
            owned[node.target] = node
    results = [values[n] for n in part.outputs]
    graph.output(results[0] if len(results) == 1 and not always_tuple else tuple(results))
    home = Module()
    for path in owned:
        _copy_attr(m, home, path)
        if names is not None:
            names[f"{part.name}.{path}"] = path
    return GraphModule(home, graph, part.name)

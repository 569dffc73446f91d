"""adjoin.fx.passes.utils.fuser_utils: puts a module in the stead of a part of a graph."""

import operator

from ...graph import Graph
from ...graph_module import GraphModule
from ..tools_common import legalize_graph

__all__ = [
    "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition",
]  # fmt: skip


def topo_sort(nodes):
    """The nodes in their graph's order."""
    wanted = dict.fromkeys(nodes)
    graph = next(iter(wanted)).graph if wanted else ()
    found = [node for node in (graph.nodes if wanted else ()) if node in wanted]
    if len(found) < len(wanted):
        raise AssertionError(f"topo_sort: {[n for n in wanted if n not in found]} stand in no graph, or in another one")
    return found


def feeds_itself(nodes, part_of=None):
    """Whether a node outside stands between two of ``nodes``: one module in their stead would need itself.

    ``part_of`` goes from nodes to parts that are one module each, with ``nodes``.
    """
    part_of = part_of or {}
    waiting, seen = [user for node in nodes for user in node.users if user not in nodes], set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        together = part_of[node].nodes if node in part_of else (node,)
        if any(one in nodes for one in together):
            together = (node,)  # of a part that is joined now
        seen.update(together)
        for one in together:
            for user in one.users:
                if user in nodes:
                    return True
                if user not in seen:
                    waiting.append(user)
    return False


def validate_partition(partition):
    """Whether one module can stand for the nodes."""
    return not feeds_itself(dict.fromkeys(partition))


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """The nodes as a GraphModule: (module, the nodes that it is called with, the nodes that it gives)."""
    nodes = dict.fromkeys(nodes if partition_lookup_table is None else topo_sort(nodes))
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"fuse_as_graphmodule: {node} stands in the graph of another module")
    if not validate_partition(nodes):
        raise AssertionError(
            f"fuse_as_graphmodule: a node between two of {list(nodes)} is left out, so one would need itself"
        )
    inputs = dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in nodes)
    graph, made = Graph(), {}
    for node in inputs:
        made[node] = graph.placeholder(node.name, node.type)
        made[node].meta = dict(node.meta)
    for node in nodes:
        made[node] = graph.node_copy(node, made.get)
    outputs = {node: made[node] for node in nodes if any(user not in nodes for user in node.users)}
    results = tuple(outputs.values())
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs):
    """Calls the module in the graph, and gives what it gives to who used the nodes' values."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    last = max((*orig_inputs, *orig_outputs), key=place.get)
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, tuple(orig_inputs))
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_after(call):
        items = [gm.graph.call_function(operator.getitem, (call, i)) for i in range(len(orig_outputs))]
    for node, item in zip(orig_outputs, items, strict=True):
        node.replace_all_uses_with(item, propagate_meta=True)
    return gm


def erase_nodes(gm, nodes):
    """Takes the nodes out, last first."""
    for node in reversed(list(nodes)):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Puts the modules ``fused_0``, ``fused_1``, ... in the stead of the parts, which are collections of nodes."""
    taken = set()
    for part in partitions:
        if both := taken.intersection(part):
            raise AssertionError(f"fuse_by_partitions: {sorted(n.name for n in both)} stand in two parts")
        taken.update(part)
    for number, part in enumerate(partitions):
        nodes = topo_sort(part)
        module, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, module, inputs, outputs)
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    gm.recompile()
    return gm

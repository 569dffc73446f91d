"""adjoin.fx.passes.infra.partitioner: the largest parts of a graph that a backend can run."""

import operator

from ..._naming import qualified_name as _get_qualified_name
from ..utils.fuser_utils import feeds_itself, fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """The nodes of one part, in a dictionary as an ordered set."""

    def __init__(self, id=None, nodes=None):
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def __repr__(self):
        return str(self.nodes)

    def add_node(self, node):
        self.nodes[node] = None

    def remove_node(self, node):
        del self.nodes[node]

    def size(self):
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Puts the nodes that ``operator_support`` says yes to into as few parts as there can be, none of which needs itself.

    A part of one node counts only with ``allows_single_node_partition``, or where the node's name is among
    ``allowed_single_node_partition_ops``; ``non_compute_ops`` are names of functions that do not count.
    """

    def __init__(self, graph_module, operator_support, allows_single_node_partition=False, non_compute_ops=None,
                 allowed_single_node_partition_ops=None):  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []

    def _is_node_supported(self, node):
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self):
        """The parts, last first."""
        modules = dict(self.graph_module.named_modules())
        place = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        parts, of = {}, {}  # number -> Partition, node -> its part
        for number, node in enumerate(reversed(place)):
            if not self.operator_support.is_node_supported(modules, node):
                continue
            made = Partition(number, [node])
            for other in sorted(parts.values(), key=lambda part: min(place[n] for n in part.nodes)):
                both = {**made.nodes, **other.nodes}
                if not feeds_itself(both, of):
                    made.nodes = both
                    del parts[other.id]
            parts[number] = made
            of.update(dict.fromkeys(made.nodes, made))
        self._items_to_their_source(place, of)
        found = [part for part in parts.values() if part.nodes]
        return [part for part in found if self.allows_single_node_partition or self._counts(part)]

    def _items_to_their_source(self, nodes, of):
        """Where all that a node gives is taken apart, the items stand in its part."""
        for node in nodes:
            items = list(node.users)
            if not items or any(user.target is not operator.getitem for user in items):
                continue
            for item in items:
                if of.get(item) is of.get(node):
                    continue
                if item in of:
                    of.pop(item).remove_node(item)
                if node in of:
                    of[node].add_node(item)
                    of[item] = of[node]

    def _counts(self, part):
        counted = 0
        for node in part.nodes:
            if node.op != "call_function":
                continue
            name = _get_qualified_name(node.target)
            if name in self.allowed_single_node_partition_ops:
                return True
            counted += name not in self.non_compute_ops and not name.endswith((".aten.view", "operator.getitem"))
        return counted > 1

    def fuse_partitions(self, partitions, prefix="fused_"):
        """Puts a module in the stead of each part."""
        return fuse_by_partitions(self.graph_module, [list(part.nodes) for part in partitions], prefix)

    def partition_and_fuse(self, prefix="fused_"):
        """Both at once."""
        return self.fuse_partitions(self.propose_partitions(), prefix)

    def remove_bookend_non_compute_ops(self, partitions):
        """Takes functions that do not count out of the parts' beginnings and ends."""
        for part in partitions:
            for near in (lambda node: node.all_input_nodes, lambda node: node.users):
                waiting = True
                while waiting:
                    waiting = [n for n in part.nodes if self._skips(n) and not any(m in part.nodes for m in near(n))]
                    for node in waiting:
                        part.remove_node(node)

    def _skips(self, node):
        return node.op == "call_function" and _get_qualified_name(node.target) in self.non_compute_ops

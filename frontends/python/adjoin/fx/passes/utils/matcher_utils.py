"""adjoin.fx.passes.utils.matcher_utils: the places where a graph does what a pattern does."""

from dataclasses import dataclass, field

from ...node import Node
from ...subgraph_rewriter import _inner, _matches_at, _results

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place."""

    anchors: list  # the pattern's nodes that give its results
    nodes_map: dict = field(default_factory=dict)  # from the pattern's nodes to the graph's
    placeholder_nodes: list = field(default_factory=list)  # what stands for the pattern's inputs
    returning_nodes: list = field(default_factory=list)  # what gives its results
    name_node_map: dict = field(default_factory=dict)


class SubgraphMatcher:
    """``SubgraphMatcher(pattern).match(graph)``: places where the same is called with the same constants, and where nothing but the
    pattern's results is used outside.

    ``match_output``: the results are the graph's; ``match_placeholder``: the inputs are inputs of the graph, too;
    ``ignore_literals``: constants may differ. Places do not overlap unless ``remove_overlapping_matches`` is False.
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        if not any(n.op not in ("placeholder", "output") for n in pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern: it computes nothing")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        self.pattern_anchors = _results(pattern)

    def match(self, graph):
        """The places, last first, as graphs are rewritten."""
        found, used = [], set()
        for node in reversed(list(graph.nodes)):
            taken = used if self.remove_overlapping_matches else set()
            for place in _matches_at(graph.owning_module, self.pattern, node, taken, self.ignore_literals):
                if (match := self._found(graph, place)) is None:
                    continue
                found.append(match)
                used.update(_inner(place))
                if self.remove_overlapping_matches:
                    break
        return found

    def _found(self, graph, place):
        """The place as it is given, None where an input or a result is not what was asked for."""
        nodes = dict(place.nodes_map)
        inputs = [nodes.get(n) for n in self.pattern.nodes if n.op == "placeholder"]
        results = [nodes[n] for n in self.pattern_anchors]
        if self.match_output:
            if results != _results(graph):
                return None
            nodes[self.pattern.output_node()] = graph.output_node()
        if self.match_placeholder and any(not isinstance(n, Node) or n.op != "placeholder" for n in inputs):
            return None
        return InternalMatch(list(self.pattern_anchors), nodes, [n for n in inputs if isinstance(n, Node)], results)

"""adjoin.fx.experimental.const_fold: what a graph makes of constants alone is computed once, ahead of the first call."""

import adjoin

from ...nn import Parameter, ParameterList
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..passes.dialect.common.cse_pass import get_CSE_banned_ops

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constants are parameters; ``const_subgraph_module`` makes them, at the first call or in ``run_folding``."""

    def __init__(
        self, root, graph, const_subgraph=None, fx_const_folded_attrs_name=None, device_for_folded_attrs="cuda"
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Computes the constants. They are computed again at the next call of this function alone."""
        self.has_folding_been_run = True
        if self.const_subgraph_module is None:
            return
        made = self.const_subgraph_module()

        def parameter(value):
            floating = value.is_floating_point() or value.is_complex()
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad and floating)

        setattr(self, self.fx_const_folded_attrs_name, ParameterList(map(parameter, made)))


def get_unique_attr_name_in_module(mod_traced, name):
    """A name like this that the module has not."""
    count = 0
    made = name
    while hasattr(mod_traced, made):
        count += 1
        made = f"{name}_{count}"
    return made


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """A module that gives what ``module`` gives, with its constants folded.

    Constant is what depends on parameters and other attributes alone, gives a tensor, draws nothing and writes nothing.
    ``skip_folding_node_fn(node)`` says of which nodes it is not.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant(traced, skip_folding_node_fn)
    wanted = [n for n in traced.graph.nodes if n in constant and n.op != "get_attr" and set(n.users) - constant]
    tensors = _tensors(traced, constant) if wanted else ()
    wanted = [n for n in wanted if n in tensors]
    if not wanted:
        return FoldedGraphModule(traced, _copied(traced.graph, (), {}), None, None, device_for_folded_attrs)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    before, seen = Graph(), {}
    for node in traced.graph.nodes:
        if node in constant:
            seen[node] = before.node_copy(node, lambda n: seen[n])
    before.output(tuple(seen[n] for n in wanted))
    before.eliminate_dead_code(is_impure_node=lambda n: n.op == "output")
    setattr(traced, name, ParameterList(Parameter(adjoin.empty(0)) for _ in wanted))
    made = _copied(traced.graph, constant, {n: f"{name}.{at}" for at, n in enumerate(wanted)})
    folded = FoldedGraphModule(traced, made, before, name, device_for_folded_attrs)
    delattr(traced, name)
    return folded


def _constant(traced, skip):
    found = set()
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or any(n not in found for n in node.all_input_nodes):
            continue
        if node.op == "get_attr":
            found.add(node)
        elif not (_is_open(traced, node) or (skip is not None and skip(node))) and node.all_input_nodes:
            found.add(node)
    writing = [n for n in traced.graph.nodes if n.op in ("call_function", "call_method") and n.is_impure()]
    written = {n for node in writing for n in node.all_input_nodes}
    if written & found:  # what a call changes is no constant, nor is what is made of it
        for node in traced.graph.nodes:
            if node in written or any(n in written for n in node.all_input_nodes):
                written.add(node)
        found -= written
    return found


def _is_open(traced, node):
    """Does it draw, or write? Modules that train draw, or keep numbers."""
    if node.is_impure():
        return True
    if node.op == "call_module":
        return any(m.training and (m._buffers or hasattr(m, "p")) for m in traced.get_submodule(node.target).modules())
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "").partition(".")[0]
    return name in _DRAWING


_DRAWING = {f.__name__ for f in get_CSE_banned_ops()} | {
    "alpha_dropout",
    "feature_alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
}


def _tensors(traced, constant):
    """The constants that are tensors: each is computed, to see it."""
    runner, found = Interpreter(traced, garbage_collect_values=False), set()
    with adjoin.no_grad():
        for node in traced.graph.nodes:
            if node in constant:
                runner.env[node] = runner.run_node(node)
                if isinstance(runner.env[node], adjoin.Tensor):
                    found.add(node)
    return found


def _copied(graph, constant, instead):
    """The graph, where some nodes read an attribute; constants that nobody needs then are gone."""
    needed = set()
    for node in reversed(graph.nodes):
        if node not in constant or (node not in instead and needed & set(node.users)):
            needed.add(node)
    made, seen = Graph(), {}
    for node in graph.nodes:
        if node in instead:
            seen[node] = made.create_node("get_attr", instead[node], name=node.name)
            seen[node].meta = dict(node.meta)
        elif node in needed:
            seen[node] = made.node_copy(node, lambda n: seen[n])
    made._codegen = graph._codegen
    return made

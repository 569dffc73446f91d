"""adjoin.fx.interpreter: runs a graph node by node, or makes another graph of it so."""

from . import traceback as fx_traceback
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate, map_arg
from .proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule. Subclasses change what a kind of node does.

    ``garbage_collect_values`` forgets each value after its last use.
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.env, self.args_iter = module, {}, None
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.name, self.extra_traceback, self.garbage_collect_values = "Interpreter", True, garbage_collect_values
        self.user_to_last_uses = {}
        seen = set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """What the graph gives for the arguments. ``initial_env`` holds values of nodes that are known."""
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    text = f"While executing {node.format_node()}"
                    if node.stack_trace:
                        text += f"\nOriginal traceback:\n{node.stack_trace}"
                    error.add_note(text)
                raise
            if self.garbage_collect_values:
                for used in self.user_to_last_uses.get(node, ()):
                    self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list):
        """As run(); the list is emptied, so that the caller keeps no argument alive."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n):
        """The value of one node."""
        with fx_traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # What the kinds of nodes do

    def placeholder(self, target, args, kwargs):
        """The next argument; all that are left for ``*name``."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """A method's result."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """A module's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What the graph gives."""
        return args[0]

    # Helpers

    def fetch_attr(self, target):
        """The attribute of the module at a path."""
        found = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n):
        """A node's arguments with values in their nodes' places."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """The same of any structure."""

        def value(node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Runs a graph with proxies, which make another graph: subclasses change what becomes of a node."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Tracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self):
        """The GraphModule of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            made = self.new_graph.output(map_arg_of_proxies(result), old.type if old else None)
            if old is not None:
                made.meta = dict(old.meta)
        return GraphModule(self.module, self.new_graph)


def map_arg_of_proxies(value):
    """Nodes in the places of proxies."""
    return map_aggregate(value, lambda x: x.node if isinstance(x, Proxy) else x)


class _Tracer(TracerBase):
    def __init__(self, graph):
        self.graph, self.tensor_attrs = graph, {}

    def is_leaf_module(self, module, path):
        """Every module is one step."""
        return True

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        made = super().create_node(kind, target, args, kwargs, name, type_expr)
        made.meta.update(fx_traceback.get_current_meta())
        return made

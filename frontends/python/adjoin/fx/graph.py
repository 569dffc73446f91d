"""adjoin.fx.graph: a program as a list of nodes."""

import contextlib
import copy
import warnings

from ._codegen import (  # noqa: F401  (PyTorch's place for them)
    CodeGen,
    PythonCode,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from ._naming import Namespace, candidate_for
from ._naming import Namespace as _Namespace  # noqa: F401
from ._naming import qualified_name as _get_qualified_name  # noqa: F401
from ._naming import snake_case as _snake_case  # noqa: F401
from .node import Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _node_list:
    """The nodes of a graph, in order; the graph may change while one goes over them."""

    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self):
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _InsertPoint:
    """A graph's place for new nodes, which holds at once: many programs use it without a ``with``."""

    def __init__(self, graph, insert):
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self):
        return None

    def __exit__(self, *error):
        self._graph._insert = self._before


class Graph:
    """A program: nodes one after the other, from its placeholders to its output.

    New nodes come at the end, or where ``inserting_before`` and ``inserting_after`` say. After a change of a
    GraphModule's graph call the module's ``recompile()``.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self):
        """The nodes in order."""
        return _node_list(self)

    def output_node(self):
        """The node that says what the graph gives."""
        return next((node for node in reversed(self.nodes) if node.op == "output"), None)

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of one kind, and with one target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # Making nodes

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Adds a node of any kind and gives it."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError(
                f"create_node: args is a {type(args).__name__} and kwargs a {type(kwargs).__name__}; give a tuple and a dict"
            )
        name = self._graph_namespace.create_name(name or candidate_for(target))
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._insert(node)
        self._len += 1
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def placeholder(self, name, type_expr=None, default_value=...):
        """An input; ``name`` is that of the parameter, which ``*`` or ``**`` may precede."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), {}, None, type_expr
        )

    def get_attr(self, qualified_name, type_expr=None):
        """A parameter, buffer or other attribute of the module that owns the graph."""
        if self.owning_module is not None and not _has(self.owning_module, qualified_name):
            warnings.warn(
                f"get_attr({qualified_name!r}): the module that owns the graph has none; set it before recompile()",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, (), {}, None, type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a module below the one that owns the graph."""
        if self.owning_module is not None and not _has(self.owning_module, module_name):
            warnings.warn(
                f"call_module({module_name!r}): the module that owns the graph has none; use GraphModule.add_submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, None, type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of ``args[0].method_name``."""
        return self.create_node("call_method", method_name, args, kwargs, None, type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr=None):
        """What the graph gives: a node, or a structure of nodes."""
        return self.create_node("output", "output", (result,), {}, None, type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of another graph's node; ``arg_transform`` gives this graph's node for one of that graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies all of another graph, up to its output; gives what that gives here. ``val_map`` is filled."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        made = Graph(tracer_cls=self._tracer_cls)
        seen = {}
        found = made.graph_copy(self, seen, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, old = found
            seen[old] = made.output(value, old.type)
            seen[old].meta = copy.copy(old.meta)
        if memo is not None:
            memo.update({id(old): new for old, new in seen.items()})
        return made

    # Changing it

    def inserting_before(self, n=None):
        """From now on new nodes stand before ``n``, or first of all; the end of a ``with`` block takes that back."""
        return _InsertPoint(self, self._own(n).prepend) if n is not None else self.inserting_after(self._root)

    def inserting_after(self, n=None):
        """From now on each new node stands right after ``n``, or last of all; the end of a ``with`` block takes that back."""
        return _InsertPoint(self, self._own(n).append) if n is not None else self.inserting_before(self._root)

    def _own(self, node):
        if node.graph is not self:
            raise AssertionError(f"node {node} is of another graph")
        return node

    def erase_node(self, to_erase):
        """Takes a node out that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}; call replace_all_uses_with first"
            )
        if self._own(to_erase)._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def eliminate_dead_code(self, is_impure_node=None):
        """Takes out what nobody uses and what has no effect; says whether there was any."""
        self.lint()
        before = self._len
        for node in reversed(self.nodes):
            keep = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not keep and not node.users:
                self.erase_node(node)
        return self._len != before

    def lint(self):
        """Raises RuntimeError where the graph is no program: a use before its node, a name twice, a missing attribute."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph {self!r}")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph")
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                if not _has(self.owning_module, node.target):
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute of {type(self.owning_module).__name__}"
                    )

    # Code and text

    def set_codegen(self, codegen):
        """Another writer of the code."""
        self._codegen = codegen

    @contextlib.contextmanager
    def on_generate_code(self, make_transformer):
        """``make_transformer(the one before, or None)`` gives a function from the body's lines to other lines."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def process_inputs(self, *args):
        """The placeholders' values from a call's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What a call gives from the output node's value."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module, *, verbose=False, **_):
        """The graph as Python text, in which the owner is called ``root_module``, and what its names stand for."""
        names = Namespace()
        old = {}
        for node in self.nodes:
            old[node] = node._repr_fn
            name = names.create_name(node.name, node)
            node._repr_fn = lambda n, name=name: name
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, names, verbose=verbose)
        finally:
            for node, text in old.items():
                node._repr_fn = text

    def print_tabular(self):
        """Prints a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))

    def __str__(self):
        inputs, returns = [], [""]
        lines = [node.format_node(None, returns) for node in self.nodes]
        return f"graph({', '.join(inputs)}){returns[0]}:" + "".join(f"\n    {line}" for line in lines if line)

    def __getstate__(self):
        nodes = list(self.nodes)
        at = {node: i for i, node in enumerate(nodes)}
        spot = lambda n: _Spot(at[n])
        rows = [(n.name, n.op, n.target, map_arg(n.args, spot), map_arg(n.kwargs, spot), n.type, n.meta) for n in nodes]
        return {"nodes": rows, "codegen": self._codegen, "tracer_cls": _by_path(self._tracer_cls)}

    def __setstate__(self, state):
        from .node import map_aggregate

        self.__init__(tracer_cls=state["tracer_cls"])
        made = []
        back = lambda x: made[x.at] if isinstance(x, _Spot) else x
        for name, op, target, args, kwargs, kind, meta in state["nodes"]:
            node = self.create_node(
                op, target, map_aggregate(args, back), dict(map_aggregate(kwargs, back)), name, kind
            )
            node.meta = meta
            made.append(node)
        self._codegen = state["codegen"]


class _Spot:
    """A node's place in a pickled graph."""

    def __init__(self, at):
        self.at = at


def _by_path(cls):
    return None if cls is None or "<locals>" in cls.__qualname__ else cls


def _has(module, path):
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True

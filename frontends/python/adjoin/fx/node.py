"""adjoin.fx.node: a node of a graph, and functions over what its arguments hold."""

import builtins
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import adjoin

from .._op_overload import OpOverload
from ._naming import qualified_name as _get_qualified_name
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

base_types = (
    str, int, float, bool, complex, adjoin.dtype, adjoin.Tensor, adjoin.device, adjoin.memory_format, adjoin.layout,
)  # fmt: skip
BaseArgumentTypes = Union[base_types]  # noqa: UP007
Target = Callable[..., Any] | str
Argument = Union[
    tuple["Argument", ...],
    Sequence["Argument"],
    Mapping[str, "Argument"],
    slice,
    range,
    "Node",
    BaseArgumentTypes,
    None,
]

_legal_ops = dict.fromkeys(("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"))
# Functions whose nodes stay although nobody uses what they give.
_side_effectful_functions = {print, builtins.setattr, operator.setitem, operator.delitem}
_side_effectful_functions.update(
    getattr(operator, name) for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul")
)


@functools.cache
def _asserts():
    """The package's checks of values."""
    return {adjoin._assert, adjoin._assert_async}


def writes(function):
    """Whether a function says by its name, or an op by its schema, that it changes an argument; operator.and_ and its like do not."""
    if isinstance(function, OpOverload):
        try:
            if any(p.written for p in function._arguments()):
                return True
        except (AttributeError, LookupError):  # a function under an op's name: it has no schema
            pass
    name = getattr(function, "__name__", "").partition(".")[0]
    return name[-1:] == "_" and name[-2:] != "__" and getattr(function, "__module__", "") != "_operator"


def has_side_effect(function):
    """A decorator: calls of the function stay in a graph although nobody uses their results."""
    _side_effectful_functions.add(function)
    return function


def map_aggregate(a, fn):
    """``fn`` of everything in tuples, lists, dictionaries and slices; the containers are immutable ones after."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """``fn`` of every node in an argument."""
    if not callable(fn):
        raise AssertionError("map_arg(a, fn): fn must be callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg):
    if isinstance(arg, list):
        return "[" + ", ".join(map(_format_arg, arg)) + "]"
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        parts = zip(arg._fields, map(_format_arg, arg), strict=True)
        return f"{type(arg).__name__}({', '.join(f'{name}={value}' for name, value in parts)})"
    if isinstance(arg, tuple):
        return "(" + ", ".join(map(_format_arg, arg)) + (",)" if len(arg) == 1 else ")")
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph: an input, a parameter, a call, or the output.

    ``op`` says which: placeholder, get_attr, call_function, call_method, call_module or output. ``target`` is what is
    read or called, ``args`` and ``kwargs`` are its arguments, in which other nodes stand for their results.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _legal_ops:
            raise AssertionError(f"Node: op is {op!r}, one of {', '.join(_legal_ops)} is wanted")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target!r} must be a Callable")
        elif not isinstance(target, str):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target!r} must be a str")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args, self._kwargs = (), immutable_dict()
        self._input_nodes, self.users = {}, {}
        self.meta, self._repr_fn, self._erased = {}, None, False
        self._prev = self._next = self
        self._set(args, kwargs)

    def _set(self, args, kwargs):
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(x):
            if isinstance(x, Node):
                self._input_nodes.setdefault(x)
                x.users.setdefault(self)
            return x

        self._args, self._kwargs = map_aggregate(tuple(args), note), map_aggregate(dict(kwargs), note)

    _update_args_kwargs = _set

    @property
    def args(self):
        """The arguments by place; set a whole tuple to change them."""
        return self._args

    @args.setter
    def args(self, args):
        self._set(args, self._kwargs)

    @property
    def kwargs(self):
        """The arguments by name; set a whole dictionary to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs):
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self):
        """The nodes in its arguments, once each, in the order of first use."""
        return list(self._input_nodes)

    @property
    def next(self):
        """The node after it."""
        return self._next

    @property
    def prev(self):
        """The node before it."""
        return self._prev

    @property
    def stack_trace(self):
        """The lines of the program that made it, where the tracer noted them; else None."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def update_arg(self, idx, arg):
        """Sets one argument by place."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Puts an argument before place ``idx``."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_arg index must be between 0 and {len(self.args)}, not {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Sets one argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def prepend(self, x):
        """Moves node ``x`` to stand before this one."""
        if x.graph is not self.graph:
            raise AssertionError("prepend, append: the node is of another graph; use graph.node_copy(node)")
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        x._prev._next = self._prev = x

    def append(self, x):
        """Moves node ``x`` to stand after this one."""
        if x is not self._next:
            self._next.prepend(x)

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    _remove_from_list = _unlink

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Every user gets ``replace_with`` in this node's place; gives the users that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        module = getattr(self.graph, "owning_module", None)
        for user in changed:
            for hook in getattr(module, "_replace_hooks", ()):
                hook(old=self, new=replace_with.name, user=user)
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        """Puts ``new_input`` for ``old_input`` in its arguments."""
        swap = lambda n: new_input if n is old_input else n
        self._set(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    _replace_input_with = replace_input_with

    def is_impure(self, impure_random=True):
        """Whether it must stay although nobody uses it; random numbers that nobody uses need not."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions or self.target in _asserts() or writes(self.target):
                return True
            return self.kwargs.get("out") is not None
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("is_impure: the graph has no owning_module, so its modules can't be looked at")
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return self.op == "call_method" and self.target[-1:] == "_" and self.target[-2:] != "__"

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments as the function's signature names them, as (args, kwargs); None where it has none."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def _pretty_print_target(self, target):
        return target if isinstance(target, str) else _pretty(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """One line of text; None for an input or the output where its name goes into one of the two lists."""
        typed = f" : {_type_name(self.type)}" if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + typed)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name}{typed or ' '}: [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            if typed and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_name(self.type)}"
            return f"return {self.args[0] if self.args else None}"
        head = f"%{self.name} : {_type_name(self.type) + ' ' if typed else ''}[num_users={len(self.users)}] = {self.op}"
        head += f"[target={self._pretty_print_target(self.target)}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other):
        """Whether it stands before another node of its graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other):
        return other < self

    def __le__(self, other):
        return self is other or self < other

    def __ge__(self, other):
        return self is other or other < self


def _pretty(target):
    name = _get_qualified_name(target)
    return f"builtins.{name}" if "." not in name and hasattr(builtins, name) else name


def _type_name(kind):
    if isinstance(kind, type) and kind.__module__ != "builtins" and not hasattr(kind, "__args__"):
        return _get_qualified_name(kind)
    return kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else repr(kind)


_type_repr = _type_name

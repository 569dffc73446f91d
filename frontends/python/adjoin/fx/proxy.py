"""adjoin.fx.proxy: what stands for a value while a program is traced."""

import copy
import dataclasses
import dis
import enum
import inspect
import operator

import adjoin

from .. import _op_overload
from ._codegen import magic_methods, reflectable_magic_methods
from ._errors import users_line, users_stack
from ._naming import _public_path
from .immutable_collections import immutable_dict, immutable_list  # noqa: F401
from .node import Node, base_types, map_aggregate, writes

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
    "TraceError", "TracerBase",
]  # fmt: skip


class TraceError(ValueError):
    """A program asks for the value of something that has none while it is traced."""


@dataclasses.dataclass
class Scope:
    """The module whose forward is traced: its path and its class."""

    module_path: str
    module_type: object


class ScopeContextManager:
    """In a ``with`` block the scope is another one."""

    def __init__(self, scope, current_scope):
        self._scope, self._before, self._current = scope, copy.copy(scope), current_scope

    def __enter__(self):
        self._scope.__dict__.update(vars(self._current))
        return self._scope

    def __exit__(self, *exc):
        self._scope.__dict__.update(vars(self._before))


class TracerBase:
    """What makes nodes of a graph, and proxies for them."""

    graph = None
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Adds a node; the arguments are a node's already."""
        if (
            kind == "call_function"
            and self.check_mutable_operations
            and (writes(target) or kwargs.get("out") is not None)
        ):
            raise RuntimeError(
                f"fx: tried to trace the mutable operation {target.__name__} at {users_line()}: it changes an argument; use the form "
                "without _ and without out="
            )
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        if self.record_stack_traces:
            node.stack_trace = users_stack()
        return node

    def proxy(self, node):
        """What stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Adds a node, whose arguments may hold proxies, and gives the proxy of its result."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("create_proxy: args must be a tuple and kwargs a dict")
        node = self.create_node(kind, target, args, dict(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a):
        """What a node holds for a value: proxies become their nodes; what can't be in a graph raises."""
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Node) or a is None or a is ...:
            return a
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(x) for x in a))
        if isinstance(a, adjoin.Size):
            return tuple(map(self.create_arg, a))
        if isinstance(a, tuple | list):
            return type(a)(self.create_arg(x) for x in a)
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, base_types) or inspect.isroutine(a) or isinstance(a, type):
            return a
        if isinstance(a, enum.Enum | adjoin.Generator):
            return a
        raise NotImplementedError(
            f"argument of type: {type(a)} at {users_line()}: a graph can't hold it; make the call that takes it one step "
            "with adjoin.fx.wrap, or register a class of it with adjoin.utils._pytree"
        )

    def _key(self, key):
        found = []
        map_aggregate(self.create_arg(key), lambda x: found.append(x) if isinstance(x, Node) else None)
        if found:
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}, at {users_line()}"
            )
        return key

    def to_bool(self, obj):
        """What ``if proxy:`` asks for."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: the truth of "
            f"{obj.node.name!r} is asked for at {users_line()}. Give its value through concrete_args, make the part one "
            "step with adjoin.fx.wrap or a leaf module, or use adjoin.where"
        )

    def iter(self, obj):
        """What ``for x in proxy`` and ``a, b = proxy`` ask for; the latter's number of parts is known."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        step = (
            next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None) if frame else None
        )
        if step is not None and step.opname == "UNPACK_SEQUENCE":
            return iter([obj[i] for i in range(step.argval)])
        raise TraceError(
            f"Proxy object cannot be iterated: how many parts {obj.node.name!r} has is not known, at {users_line()}. "
            "Unpack it into names (a, b = x), index it, or make the part one step with adjoin.fx.wrap or a leaf module"
        )

    def keys(self, obj):
        """What ``**proxy`` asks for."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there: proxies of its nodes can be computed with."""

    def __init__(self, graph):
        self.graph = graph


class Proxy:
    """Stands for a value: what is done with it becomes nodes of the tracer's graph."""

    def __init__(self, node, tracer=None):
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):  # copy and pickle ask for some that are not there
            raise AttributeError(name)
        return Attribute(self, name)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __deepcopy__(self, memo):
        made = Proxy.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        return self.tracer.to_bool(self)

    def keys(self):
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            f"adjoin.fx.wrap('len') at module scope; it is asked for at {users_line()}"
        )

    def __int__(self):
        raise TypeError(f"int() of the Proxy {self.node.name!r} at {users_line()}: {_NO_NUMBER}")

    def __float__(self):
        raise TypeError(f"float() of the Proxy {self.node.name!r} at {users_line()}: {_NO_NUMBER}")

    def __index__(self):
        raise TypeError(f"the Proxy {self.node.name!r} is used as a whole number at {users_line()}: {_NO_NUMBER}")

    def __contains__(self, item):
        raise TraceError(f"`in` of the Proxy {self.node.name!r} at {users_line()}: {_NO_NUMBER}")

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracers = {}
        map_aggregate(
            (args, kwargs), lambda x: tracers.setdefault(id(x.tracer), x.tracer) if isinstance(x, Proxy) else None
        )
        if len(tracers) != 1:
            raise RuntimeError(
                f"{orig_method.__name__} at {users_line()}: its Proxies are of {len(tracers)} tracers, not one"
            )
        tracer = next(iter(tracers.values()))
        name = orig_method.__name__
        if name == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])  # passes over a graph look for the operands one by one
        if name.startswith("__") and hasattr(operator, name):
            return tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)
        if _public_path(orig_method) is None and hasattr(adjoin.Tensor, name):  # a method that is no function, too
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _stands_for(op, args, kwargs):
    """The step that a call of an overload is, or None without a proxy among its arguments."""
    for value in (*args, *kwargs.values()):
        found = [value] if isinstance(value, Proxy) else []
        if isinstance(value, list | tuple | dict):
            map_aggregate(value, lambda x, found=found: found.append(x) if isinstance(x, Proxy) else None)
        if found:
            return found[0].tracer.create_proxy("call_function", op, args, kwargs)
    return None


_op_overload.stands_for = _stands_for
_NO_NUMBER = (
    "it has no value while the program is traced; make the part one step with adjoin.fx.wrap or a leaf module, "
    "or give the value through concrete_args"
)


class Attribute(Proxy):
    """``proxy.name``: a method if it is called, else a node of its own."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer, self._node = root, attr, root.tracer, None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class PartProxy(Proxy):
    """A parameter or buffer of a module: a node at its first use."""

    def __init__(self, tracer, path, node=None):
        self.tracer, self.path, self._node = tracer, path, node

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("get_attr", self.path, (), {}).node
        return self._node


class ParameterProxy(PartProxy):
    """A parameter whose shape is known: what depends on the shape can be traced."""

    def __init__(self, tracer, node, name, param):
        super().__init__(tracer, name, node)
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self, *dim):
        return self.param.size(*dim)

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.numel()


class MetaProxy(Proxy):
    """Of a value on the meta device, of which Adjoin has none."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "MetaProxy: there is no tracing with fake tensors; use adjoin.fx.passes.shape_prop.ShapeProp"
        )


def _operator_of(name, swapped=False):
    function = getattr(operator, name)

    def method(*args, **kwargs):
        if swapped:
            args = args[::-1]
        tracer = next(a for a in args if isinstance(a, Proxy)).tracer
        return tracer.create_proxy("call_function", function, args, kwargs)

    return method


for _name in magic_methods:
    if _name != "div":
        setattr(Proxy, f"__{_name.strip('_')}__", _operator_of(_name))
for _name in reflectable_magic_methods:
    if _name not in ("div", "getitem"):
        setattr(Proxy, f"__r{_name.strip('_')}__", _operator_of(_name, swapped=True))
del _name

"""adjoin.fx._symbolic_trace: runs a program with proxies for its inputs, which make a graph of what is done."""

import collections
import contextlib
import functools  # noqa: F401  (with FunctionType and Proxy: tracers of libraries take them from here)
import math
import threading
from types import FunctionType  # noqa: F401

import adjoin

from ..nn import Module
from ..nn.modules import _calls
from ..nn.parameter import Parameter
from . import _patches
from ._arguments import PH, PHBase, PHWithMeta, placeholders  # noqa: F401  (PyTorch's place for them)
from ._compatibility import compatibility  # noqa: F401
from ._errors import users_line
from ._patches import wrap  # noqa: F401
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, PartProxy, Proxy, Scope, TracerBase  # noqa: F401

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]

# For tracers of libraries that are written over this module, with a trace() of their own.
_Patcher, _autowrap_check, _patch_wrapped_functions = (
    _patches.Patcher, _patches.autowrap_check, _patches.patch_wrapped_functions
)  # fmt: skip
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__


def __getattr__(name):
    if name == "ScriptObject":
        from ..jit._torchscript._objects import ScriptObject

        return ScriptObject
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_state = threading.local()
_proxyable_classes = {}


def is_fx_tracing():
    """Whether this thread traces a program."""
    return getattr(_state, "tracing", 0) > 0


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The class of classes whose objects can be made of proxies: making one is a step of the graph."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        made = cls.__new__(cls)
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)
            return made
        proxy = _patches.first_proxy(args, kwargs)
        cls.__init__(made, *args, **kwargs)
        if proxy is not None:
            made.__fx_create_arg__ = lambda tracer: tracer.create_node(
                "call_function", cls, tracer.create_arg(args), tracer.create_arg(kwargs)
            )
        return made


class Tracer(TracerBase):
    """Makes the graph of a module or function.

    Subclasses say what is one step (``is_leaf_module``), and see every step (``create_proxy``, ``call_module``).
    ``autowrap_modules`` and ``autowrap_functions`` are modules and functions whose calls with a proxy are one step.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap_function_ids = {
            id(value): value
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update((id(f), f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths, self.root_module_name = None, ""
        self.scope, self.module_stack, self.num_calls = Scope("", None), collections.OrderedDict(), {}
        self.tensor_attrs, self.root = {}, None

    # What subclasses may say otherwise

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module is one step; those of ``nn`` are, but Sequential."""
        own = m.__module__.startswith(("adjoin.nn", "torch.nn"))
        return own and not isinstance(m, adjoin.nn.Sequential)

    def path_of_module(self, mod):
        """The path of a module below the root."""
        path = self.submodule_paths.get(mod)
        if path is None:
            raise NameError(
                f"module {type(mod).__name__} is not a part of the traced one: it is called at {users_line()}; set it as an attribute"
            )
        return path

    def call_module(self, m, forward, args, kwargs):
        """A module is called: one step for a leaf, else what its forward does."""
        path = self.path_of_module(m)
        before, self.scope = self.scope, Scope(path, type(m))
        count = self.num_calls.get(path, 0)
        self.num_calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(key, None)
            self.scope = before

    def create_arg(self, a):
        """As TracerBase's; parameters, buffers and other tensors become attributes of the root."""
        if isinstance(a, Parameter):
            if id(a) in self._part_names:
                return self.create_node("get_attr", self._part_names[id(a)], (), {})
            raise NameError(
                f"parameter is not a member of this module: it is used at {users_line()}; set it as an attribute"
            )
        if isinstance(a, adjoin.Tensor):
            if id(a) in self._part_names:
                return self.create_node("get_attr", self._part_names[id(a)], (), {})
            return self._constant(a)
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, adjoin.Generator):
            return self._constant(a, "_generator")
        return super().create_arg(a)

    def _constant(self, value, prefix="_tensor_constant"):
        name = self.tensor_attrs.get(value)
        if name is None:
            name = self.get_fresh_qualname(prefix)
            setattr(self.root, name, value)
            self.tensor_attrs[value] = name
        return self.create_node("get_attr", name, (), {})

    def get_fresh_qualname(self, prefix):
        """A name that the root has not."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    # Tracing

    def trace(self, root, concrete_args=None):
        """The graph of a module's forward, or of a function. ``concrete_args`` are the values of some arguments."""
        is_module = isinstance(root, Module)
        if is_module:
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"{type(root).__name__} has no {self.traced_func_name}; set traced_func_name")
            self.root, function = root, getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
        else:
            self.root, function = Module(), root
        self.submodule_paths = {module: name for name, module in self.root.named_modules()}
        cls = type(self)
        self.graph = Graph(tracer_cls=None if "<locals>" in cls.__qualname__ else cls)
        self.tensor_attrs = dict(self._tensors_of(self.root, ()))
        home = getattr(function, "__globals__", {})
        self.scope = Scope("", None)
        _state.tracing = getattr(_state, "tracing", 0) + 1
        try:
            traced = function
            function, args = self.create_args_for_root(function, is_module, concrete_args)
            with self._patched(home), self._parts_read():
                result = function(*args)
                kind = getattr(traced, "__annotations__", {}).get("return")
                kind = None if isinstance(kind, str) else kind
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        finally:
            self.submodule_paths = None
            _state.tracing -= 1
        return self.graph

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """(the function to call, its arguments: the root if it is a module, proxies, and what ``concrete_args`` gives)"""
        named = (*self.root.named_parameters(), *self.root.named_buffers())
        self._part_names = {id(part): name for name, part in named}
        self._parts = {}  # path -> the proxy that a forward reads
        function, args = placeholders(self, root_fn, is_module, concrete_args)
        return function, [self.root, *args] if is_module else list(args)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What a forward reads from a module where it finds ``attr_val``. Subclasses may give something else."""
        name = self._part_names.get(id(attr_val)) if isinstance(attr_val, adjoin.Tensor) else None
        wanted = isinstance(attr_val, Parameter) or self.proxy_buffer_attributes
        if name is None or not wanted:
            return attr_val
        if name not in parameter_proxy_cache:
            parameter_proxy_cache[name] = self._part(name, attr_val)
        return parameter_proxy_cache[name]

    def _tensors_of(self, module, path):
        for name, value in module.__dict__.items():
            if isinstance(value, adjoin.Tensor):
                yield value, ".".join((*path, name))
        for name, child in module.named_children():
            yield from self._tensors_of(child, (*path, name))

    @contextlib.contextmanager
    def _patched(self, home):
        """Calls of modules come to ``call_module``, those of wrapped functions become steps."""
        patches, calls, thread = _patches.Patches(), _calls.Calls._call_impl, threading.get_ident()
        functions = {**_patches.own_functions(), **self._autowrap_function_ids}

        def call(module, *args, **kwargs):
            if threading.get_ident() != thread:
                return calls(module, *args, **kwargs)

            def forward(*args, **kwargs):
                return calls(module, *args, **kwargs)

            patches.record_in(getattr(type(module).forward, "__globals__", {}), functions)
            return self.call_module(module, forward, args, kwargs)

        # A module with a hook is called through _call_impl.
        hook = _calls.register_module_forward_pre_hook(lambda module, args: None)
        try:
            _calls.Calls._call_impl = call
            _patches.patch_wrapped(patches)
            for namespace in (home, adjoin.nn.functional.__dict__, adjoin.__dict__):
                patches.record_in(namespace, functions)
            for module in self._autowrap_search:
                patches.record_in(module.__dict__, self._autowrap_function_ids)
            yield
        finally:
            _calls.Calls._call_impl = calls
            hook.remove()
            patches.undo()

    @contextlib.contextmanager
    def _parts_read(self):
        if type(self).getattr is Tracer.getattr:
            with self._parts_as_proxies():
                yield
            return
        cache, thread = {}, threading.get_ident()

        def read(module, name):
            value = _orig_module_getattr(module, name)
            return value if threading.get_ident() != thread else self.getattr(name, value, cache)

        with _patches.Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", read, deduplicate=False)
            yield

    @contextlib.contextmanager
    def _parts_as_proxies(self):
        """What a forward reads from a module is a step: parameters, and with proxy_buffer_attributes buffers.

        So what is computed of parameters alone is in the graph, and they get their gradients.
        """
        before = []
        for module in self.submodule_paths:
            for kind in ("_parameters", "_buffers") if self.proxy_buffer_attributes else ("_parameters",):
                parts = getattr(module, kind)
                before.append((parts, dict(parts)))
                for name, value in parts.items():
                    if value is not None:
                        parts[name] = self._part(self._part_names[id(value)], value)
        try:
            yield
        finally:
            for parts, values in before:
                parts.update(values)

    def _part(self, path, value):
        if path not in self._parts:
            known = self.param_shapes_constant and isinstance(value, Parameter)
            self._parts[path] = ParameterProxy(self, None, path, value) if known else PartProxy(self, path)
        return self._parts[path]

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def symbolic_trace(root, concrete_args=None):
    """The module or function as a GraphModule, by ``Tracer``."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)

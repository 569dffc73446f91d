"""adjoin.fx.experimental.proxy_tensor: ``make_fx``: the graph of the ops that a function calls, from one call with tensors.

A dispatch mode sees each op below the tape, so that gradients which the function takes are part of the graph, too.
"""

import contextlib
import functools
import inspect

import adjoin

from ... import _C
from ...nn import Module
from ...nn.parameter import Parameter
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack
from .._symbolic_trace import PH, Tracer
from ..graph_module import GraphModule
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import Proxy

__all__ = [
    "ProxyTorchDispatchMode", "PythonKeyTracer", "decompose", "disable_proxy_modes_tracing", "get_isolated_graphmodule",
    "get_proxy_mode", "make_fx", "maybe_disable_fake_tensor_mode",
]  # fmt: skip


class PythonKeyTracer(Tracer):
    """Holds the graph while it grows; no module is one step, and tensors of the outside become attributes."""

    def __init__(self):
        super().__init__(autowrap_modules=())
        self.buffers = set()  # ids of those of all modules that were called: what is written to them stays

    def call_module(self, m, forward, args, kwargs):
        """What the module's forward does."""
        self.buffers.update(map(id, m._buffers.values()))
        return forward(*args, **kwargs)

    def create_arg(self, a):
        """As Tracer's; parameters become attributes of the root."""
        if isinstance(a, Parameter):
            return self._constant(a, "_param_constant")
        return super().create_arg(a)


def _place(tensor):
    """What two tensors share that look at the same elements; its object where it has no memory."""
    try:
        at = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        at = 0
    if not at:
        return id(tensor)
    return at, tensor.shape, tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Each op that is called becomes a node of the tracer's graph."""

    def __init__(self, tracer, tracing_mode="real", pre_dispatch=False, decomposition_table=None):
        super().__init__()
        self.tracer, self.tracing_mode, self.table = tracer, tracing_mode, decomposition_table or {}
        self.known, self.kept = {}, []  # all stay alive: a place is that of one tensor
        self.draws = {}  # (seed, place) of random numbers -> the proxies of those
        self.constants = set()  # nodes that read what the function did not get as an argument

    @classmethod
    def is_infra_mode(cls):
        """It belongs to the tracer."""
        return True

    def track(self, value, proxy):
        """The tensor is the result that the proxy stands for."""
        self.known[id(value)] = self.known[_place(value)] = proxy
        self.kept.append(value)

    def of(self, value):
        """The proxy of a tensor, or the tensor itself."""
        if not isinstance(value, adjoin.Tensor):
            return value
        found = self.known.get(id(value))
        found = self.known.get(_place(value)) if found is None else found
        return self._constant(value) if found is None else found

    def _constant(self, value):
        """The proxy of a tensor from elsewhere, as it is now: each call of the graph begins with that."""
        if isinstance(value, Parameter) or id(value) in self.tracer.buffers:
            return value
        with _disable_current_modes():
            node = self.tracer._constant(value.detach().clone())
        self.constants.add(node)
        self.track(value, proxy := self.tracer.proxy(node))
        return proxy

    def _own(self, value):
        """The same before a write, which the next call must not see."""
        proxy = self.of(value)
        if isinstance(proxy, Proxy) and proxy.node in self.constants:
            proxy = self.tracer.create_proxy("call_function", adjoin.ops.aten.clone.default, (proxy,), {}, name="clone")
            self.track(value, proxy)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in self.table:
            with self:
                made = self.table[func](*args, **kwargs)
            if made is not NotImplemented:
                return made
        written = [v for v, w in zip((*args, *kwargs.values()), _written(func, len(args), kwargs), strict=True) if w]
        written = [v for v in written if isinstance(v, adjoin.Tensor)]
        for value in written:
            self._own(value)
        given_args, given = pytree.tree_map(self.of, (tuple(args), kwargs))
        if "_philox" in func.__name__:
            given_args = (*given_args[:-2], *self._numbers(args))
        if (
            func.__name__.startswith("_local_scalar_dense")
            and isinstance(given_args[0], Proxy)
            and given_args[0].node not in self.constants
        ):
            raise RuntimeError(
                "make_fx: the function asks for the value of a tensor (item(), bool(), an if); a graph has "
                "none. Use adjoin.where, or make the value an argument that is no tensor"
            )
        made = func(*args, **kwargs)
        name = getattr(func.overloadpacket, "__name__", func._opname)
        proxy = self.tracer.create_proxy("call_function", func, given_args, given, name=name)
        self._take(made, proxy)
        for value in written:
            self.track(value, self.of(made) if made is value or not isinstance(made, adjoin.Tensor) else proxy)
        return made

    def _numbers(self, args):
        """What stands for the seed and the place of random numbers: each call of the graph draws its own."""
        if args[-2:] not in self.draws:
            drawn = self.tracer.create_proxy("call_function", drawn_numbers, (args[0].numel(), str(args[0].device)), {})
            self.draws[args[-2:]] = drawn[0], drawn[1]
        return self.draws[args[-2:]]

    def _take(self, value, proxy):
        if isinstance(value, adjoin.Tensor):
            proxy.node.meta.setdefault("tensor_meta", _extract_tensor_metadata(value))
            self.track(value, proxy)
        elif isinstance(value, list | tuple):
            for at, part in enumerate(value):
                self._take(part, proxy[at])


def drawn_numbers(count, device):
    """(seed, place) of the next random numbers of a device's generator, which goes on behind them."""
    generator = _C.default_generator(adjoin.device(device))
    seed, place = generator._get()
    generator._set(seed, place + (count + 3) // 4)
    return seed, place


def _written(func, places, kwargs):
    """For each argument of a call: does the op write to it?"""
    try:
        params = func._arguments()
    except (AttributeError, LookupError):
        return [False] * (places + len(kwargs))
    first = func.__name__.partition(".")[0]
    in_place = first.endswith("_") and not first.endswith("__")
    by_place = [p.written or (in_place and at == 0) for at, p in enumerate(params[:places])]
    by_place += [False] * (places - len(by_place))
    named = {p.name for p in params if p.written}
    return by_place + [word in named or word == "out" for word in kwargs]


def _with_places(f, count):
    """A function of ``count`` arguments by place, named as those of ``f`` where it names as many."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) if code else 0
    if len(names) != count or stars or inspect.ismethod(f):
        names = [f"arg{i}" for i in range(count)]
    return names


def make_fx(
    f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
    record_module_stack=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True,
):  # fmt: skip
    """``make_fx(f)(*args)`` calls ``f`` and gives a GraphModule of the ops that were called, for tensors of the same sizes.

    What is written to buffers of modules is written by each call of the graph; other tensors of the outside are constants.
    ``decomposition_table`` has functions that are called instead of ops, as {``torch.ops.aten.x.default``: function}. Numbers among
    the arguments are part of the graph.
    """
    if tracing_mode not in ("real", "fake"):
        raise NotImplementedError(
            f"make_fx(tracing_mode={tracing_mode!r}): sizes are numbers in a graph of ops; 'real' makes it for the sizes that are given, "
            "adjoin.fx.symbolic_trace(f) makes one of what f calls, which fits any"
        )
    if pre_dispatch:
        raise NotImplementedError(
            "make_fx(pre_dispatch=True): ops are seen below the tape alone; adjoin.fx.symbolic_trace(f) sees what f calls"
        )

    @functools.wraps(f, updated=())
    def wrapped(*args):
        return _trace(f, args, decomposition_table)

    return wrapped


def _trace(f, args, table):
    tracer = PythonKeyTracer()
    mode = ProxyTorchDispatchMode(tracer, decomposition_table=table)

    def run(*proxies):
        for value, proxy in zip(pytree.tree_leaves(args), pytree.tree_leaves(proxies), strict=True):
            if isinstance(value, adjoin.Tensor):
                mode.track(value, proxy)
        with mode:
            made = f(*args)
        return pytree.tree_map(mode.of, made)

    names = ", ".join(_with_places(f, len(args)))
    function = eval(f"lambda {names}: run({names})", {"run": run})
    graph = tracer.trace(function, pytree.tree_map(lambda _: PH, tuple(args)))
    name = type(f).__name__ if isinstance(f, Module) else getattr(f, "__name__", type(f).__name__)
    return GraphModule(tracer.root, graph, name)


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """The graph of one call, outside of a trace that runs."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def call(leaves):
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return func(*args, **kwargs)

    with _disable_current_modes():
        return make_fx(call, decomposition_table, tracing_mode)(leaves)


def get_proxy_mode():
    """The mode of the trace that runs on this thread, or None."""
    return next(
        (m for m in reversed(_get_current_dispatch_mode_stack()) if isinstance(m, ProxyTorchDispatchMode)), None
    )


@contextlib.contextmanager
def decompose(decomposition_table):
    """In a ``with`` block the trace that runs calls these functions instead of ops."""
    mode = get_proxy_mode()
    if mode is None:
        raise RuntimeError("decompose: no make_fx runs on this thread")
    before, mode.table = mode.table, decomposition_table or {}
    try:
        yield mode.table
    finally:
        mode.table = before


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """A block in which what is called is not recorded: its results are constants of the graph."""
    with _disable_current_modes():
        yield


def maybe_disable_fake_tensor_mode():
    """A block without fake tensors, as everywhere."""
    return contextlib.nullcontext()

"""adjoin.autograd.graph: nodes of the graph, and hooks for the tensors it saves."""

import contextlib
import threading
import weakref
from typing import NamedTuple

from .. import _C
from .._C import Node  # noqa: F401
from ..overrides import TorchFunctionMode


_refusals = []
_thread = threading.local()


class saved_tensors_hooks:
    """Inside, ``pack(tensor)`` decides what is kept of each saved tensor, and ``unpack`` gives the
    tensor back when backward needs it."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        if _refusals:
            raise RuntimeError(_refusals[-1])
        # Parameters come as they are, so that a hook knows them; results of ops as values alone: a hook that keeps its argument
        # would keep the node, which keeps what the hook keeps.
        pack = lambda t: self.pack_hook(t if t.is_leaf else t._alias())  # noqa: E731
        _C.push_saved_hooks(pack, self.unpack_hook)
        return self

    def __exit__(self, *exc):
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors wait in the host's memory."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda kept: kept[1].to(kept[0]))


class disable_saved_tensors_hooks(contextlib.ContextDecorator):
    """Inside, or in a function it decorates, asking for hooks on saved tensors raises RuntimeError with the message."""

    def __init__(self, error_message):
        self.error_message = error_message

    def __enter__(self):
        _refusals.append(self.error_message)

    def __exit__(self, *exc):
        _refusals.pop()


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, what is saved is copied at once: writing to the tensor in place later does not disturb backward."""

    def __init__(self):
        super().__init__(lambda t: t.clone(), lambda kept: kept)


class _Handles:
    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        """Takes the hooks away."""
        for handle in self._handles:
            handle.remove()


def queue_callback(callback):
    """Runs ``callback()`` after the backward pass that is running on this thread, unless it fails; for hooks and ``backward``."""
    _C.queue_callback(callback)


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """``fn(grads)`` runs when the gradients of all tensors are known, of one that the pass does not reach None; with mode "any",
    ``fn(grad)`` when the first is."""
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is {mode!r}, 'all' or 'any' is wanted")
    tensors = list(tensors)
    count = len(tensors)  # a hook that held its own tensor would never be freed
    passes = {}  # of each that runs, by its number: the gradients, and whether fn has been called

    def end(number):
        grads, called = passes.pop(number)
        if mode == "all" and not called:
            fn(grads)

    def now():
        running = _C.backward_passes()
        if running[0] not in passes:
            for number in [n for n in passes if n not in running]:  # failed
                del passes[number]
            passes[running[0]] = [[None] * count, False]
            queue_callback(lambda: end(running[0]))
        return passes[running[0]]

    def hook_for(i):
        def hook(grad):
            state = now()
            state[0][i] = grad
            if not state[1] and (mode == "any" or all(g is not None for g in state[0])):
                state[1] = True
                fn(grad if mode == "any" else list(state[0]))

        return hook

    return _Handles([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])


class GradientEdge(NamedTuple):
    """A place in the graph: a node and which of its results. A node keeps its graph by itself: nothing else owns it."""

    node: _C.Node
    output_nr: int
    ownership_token: _C.Node | None = None


def get_gradient_edge(tensor):
    """The place in the graph where the gradient of a tensor arrives: of a leaf, the node that accumulates it."""
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: the tensor does not require grad, so no gradient arrives at it")
    if tensor.grad_fn is not None:
        return GradientEdge(tensor.grad_fn, tensor.output_nr)
    with _C.enable_grad():
        return GradientEdge(*tensor.view_as(tensor).grad_fn.next_functions[0])


def increment_version(tensor):
    """Tells the tape that the memory was written."""
    tensors = (tensor,) if isinstance(tensor, _C.Tensor) else tensor
    for t in tensors:
        _C.bump_version(t)


class _Watch(TorchFunctionMode):
    """Tells functions of each node that calls of this thread record, when it is whole."""

    def __init__(self):
        self.hooks, self.last, self.leaves = [], _newest(), {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        new, waiting = {}, [t.grad_fn for t in _tensors(result) if t.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            number = node._sequence_nr()
            if number > self.last and number not in new:
                new[number] = node
                waiting += [n for n, _ in node.next_functions if n is not None]
        leaves = [n for n in new.values() if type(n).__name__ == "AccumulateGrad" and self.first(n.variable)]
        steps = [new[n] for n in sorted(new) if type(new[n]).__name__ != "AccumulateGrad"]
        self.last = max([self.last, *new])
        for node in leaves + steps:
            for hook in self.hooks:
                if hook(node) is not None:
                    raise RuntimeError(
                        "node_creation_hook: the hook returned something; it only looks at the node, and returns None"
                    )
        return result

    def first(self, leaf):
        """Is it the first time that this leaf is used here?"""
        known = self.leaves.get(id(leaf))
        self.leaves[id(leaf)] = weakref.ref(leaf)
        return known is None or known() is not leaf


def _newest():
    """The number of the newest node: of one that no mode sees being made."""
    modes = _C.modes()
    for _ in modes:
        _C.pop_mode()
    try:
        return _C.find_op("ones")((), requires_grad=True).clone().grad_fn._sequence_nr()
    finally:
        for mode in modes:
            _C.push_mode(mode)


def _tensors(result):
    if isinstance(result, _C.Tensor):
        return [result]
    return [t for part in result for t in _tensors(part)] if isinstance(result, (tuple, list)) else []


@contextlib.contextmanager
def node_creation_hook(hook):
    """Inside, ``hook(node)`` is called for each node that calls of this thread record; of several hooks the outer ones first.

    Nodes that backward records with ``create_graph=True`` are not told of.
    """
    watch = getattr(_thread, "watch", None)
    if watch is None:
        with _Watch() as _thread.watch:
            _thread.watch.hooks.append(hook)
            try:
                yield
            finally:
                _thread.watch = None
        return
    watch.hooks.append(hook)
    try:
        yield
    finally:
        watch.hooks.remove(hook)


def tape(result, *leaves):
    """The tape that leads to a tensor: it prints each step with the line that recorded it, and is compared with another run's by
    ``difference``. Of a function and its leaves, ``tape(function, *leaves)``, what the call records; that can be replayed."""
    from ._tape import tape

    return tape(result, *leaves)

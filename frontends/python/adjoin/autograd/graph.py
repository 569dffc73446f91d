"""adjoin.autograd.graph: nodes of the graph, and hooks for the tensors it saves."""

import contextlib
from typing import NamedTuple

from .. import _C
from .._C import Node  # noqa: F401


_refusals = []


class saved_tensors_hooks:
    """Inside, ``pack(tensor)`` decides what is kept of each saved tensor, and ``unpack`` gives the
    tensor back when backward needs it."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        if _refusals:
            raise RuntimeError(_refusals[-1])
        # As values alone: what a hook does to them is no part of the graph.
        pack = lambda t: self.pack_hook(t.detach() if t.requires_grad else t)  # noqa: E731
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


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """``fn(grads)`` runs when the gradients of all tensors are known; with mode "any", ``fn(grad)``
    when the first is."""
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is {mode!r}, 'all' or 'any' is wanted")
    tensors = list(tensors)
    count = len(tensors)  # a hook that held its own tensor would never be freed
    grads = [None] * count
    seen = [0]

    def hook_for(i):
        def hook(grad):
            grads[i] = grad
            seen[0] += 1
            if mode == "any":
                if seen[0] == 1:
                    fn(grad)
            elif seen[0] == count:
                fn(list(grads))
            if seen[0] == count:
                seen[0] = 0
                grads[:] = [None] * count

        return hook

    return _Handles([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])


class GradientEdge(NamedTuple):
    """A place in the graph: a node and which of its results."""

    node: _C.Node
    output_nr: int


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

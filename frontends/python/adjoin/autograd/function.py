"""adjoin.autograd.function: functions whose derivative is written in Python."""

import functools

from .. import _C
from .._C import FunctionCtx  # noqa: F401
from ._old_style import Called


def _default_setup_context(ctx, inputs, output):
    raise NotImplementedError("setup_context is not implemented")


def _two_backwards(name):
    def backward(ctx, *grads):
        raise RuntimeError(
            f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed: {name} has both; keep one"
        )

    return staticmethod(backward)


class Function(Called):
    """A function with its own derivative: ``forward`` and ``backward`` are static methods.

    ``Mine.apply(*args)`` runs ``forward(ctx, *args)``, or ``forward(*args)`` and then
    ``setup_context(ctx, inputs, output)`` if that is defined. ``backward(ctx, *grads)`` returns one
    gradient, or None, for each argument of forward.

    Where they are no static methods, ``Mine(settings)(*args)`` calls them on the instance, as in 2016.
    """

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        own = vars(cls)
        if "vjp" in own:  # another name of backward
            cls.backward = _two_backwards(cls.__name__) if "backward" in own else own["vjp"]

    apply = classmethod(_C.apply_function)
    setup_context = staticmethod(_default_setup_context)
    generate_vmap_rule = False

    @staticmethod
    def forward(*args, **kwargs):
        """What the function computes."""
        raise NotImplementedError("a subclass of Function must implement the forward method")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of the arguments from those of the results."""
        raise NotImplementedError(
            "a subclass of Function must implement either the backward or the vjp method to be differentiated"
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Forward mode: the tangents of the results from those of the arguments. Without it backward is differentiated."""
        raise NotImplementedError("a subclass of Function may define jvp; without it backward is differentiated")

    @staticmethod
    def vmap(info, in_dims, *args):
        """Batching: ``(results, out_dims)`` of arguments that have their samples in the dimensions ``in_dims``; info has
        batch_size and randomness. Without it a batch is taken sample by sample, and ``func.loops()`` tells it."""
        raise NotImplementedError("a subclass of Function may define vmap; without it samples are taken one by one")


class _Once(Function):
    """Results of a backward that cannot be differentiated: a gradient through them raises."""

    @staticmethod
    def forward(ctx, *results):
        out = tuple(r._alias() for r in results)
        return out if len(out) > 1 else out[0]

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(function):
    """For ``backward``: it runs unrecorded, and differentiating it again raises."""

    @functools.wraps(function)
    def run(ctx, *grads):
        with _C.no_grad():
            results = function(ctx, *grads)
        tensors = [g for g in grads if isinstance(g, _C.Tensor)]
        if not _C.is_grad_enabled() or not any(g.requires_grad for g in tensors):
            return results
        return _mark(results if isinstance(results, tuple) else (results,))

    def _mark(results):
        places = [i for i, r in enumerate(results) if isinstance(r, _C.Tensor)]
        if not places:
            return results
        leaves = [results[i]._alias().requires_grad_() for i in places]
        marked = _Once.apply(*leaves)
        marked = marked if isinstance(marked, tuple) else (marked,)
        out = list(results)
        for i, m in zip(places, marked):
            out[i] = m
        return tuple(out)

    return run


class InplaceFunction(Function):
    """A Function; kept for programs that name it."""


FunctionMeta = type

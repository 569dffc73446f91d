"""adjoin._autograd_fallback: backward through an op of ``Library`` that has kernels and no derivative: the kernel's own ops are recorded.

Three modes: "error", the default, raises when backward reaches a result that the kernel computed outside of the tape; "warn", PyTorch's
own, warns there and goes on without that gradient; "nothing" is silent. In the first two what was recorded warns, too, for a kernel that
is no composite of differentiable ops gives wrong gradients so.
"""

import warnings

from .autograd import Function

mode = "error"
MODES = ("nothing", "warn", "error")


def set_mode(name):
    """Sets the mode."""
    global mode
    if name not in MODES:
        raise RuntimeError(f"autograd fallback mode: {name!r} is none of {', '.join(MODES)}")
    mode = name


def _warn(name):
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it: gradients are "
        "those of the ops that its kernel called, which may be wrong; give it a derivative with library.register_autograd",
        stacklevel=2,
    )


class _Unknown(Function):
    """A result of which the tape does not know where it comes from."""

    @staticmethod
    def forward(ctx, name, result, *tensors):
        ctx.name, ctx.count = name, len(tensors)
        return result._alias()

    @staticmethod
    def backward(ctx, grad):
        if mode == "error":
            raise NotImplementedError(
                f"{ctx.name}: no derivative is registered, and its kernel computed this result outside of the tape; give it one with "
                "register_autograd, or detach the inputs"
            )
        _warn(ctx.name)
        return (None,) * (2 + ctx.count)


def _watched(name, tensor):
    """Backward through the tensor warns; and through what it is a view of."""
    tensor.register_hook(lambda grad: _warn(name))
    if tensor._base is not None and tensor._base.requires_grad:
        tensor._base.register_hook(lambda grad: _warn(name))


def followed(name, results, given, placed, flat):
    """A call's results, after its kernel was recorded. ``placed(results, tensors)`` puts tensors in their places."""
    if mode == "nothing":
        return results
    made = []
    for t in flat(results):
        if t.requires_grad:
            _watched(name, t)
        elif (t.is_floating_point() or t.is_complex()) and all(t is not x for x in given):
            t = _Unknown.apply(name, t, *given)
        made.append(t)
    return placed(results, iter(made)) if made else results

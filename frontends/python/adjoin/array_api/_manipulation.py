"""adjoin.array_api._manipulation: other shapes and orders of the same elements."""

import adjoin as _top

from .._C import Tensor
from ._dtypes import promoted

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape",
    "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip


def broadcast_arrays(*arrays):
    """Each tensor in the shape that all have together."""
    return list(_top.broadcast_tensors(*arrays))


def broadcast_to(x, /, shape):
    """A tensor in a larger shape, each element read several times."""
    return _top.broadcast_to(x, tuple(shape))


def concat(arrays, /, *, axis=0):
    """Tensors one after the other along an axis; flattened where axis is None."""
    parts = promoted(*arrays)
    return _top.cat([part.reshape(-1) for part in parts] if axis is None else parts, 0 if axis is None else axis)


def expand_dims(x, /, axis=0):
    """A new axis of size one."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(
            f"expand_dims: axis {axis} is out of range for {x.ndim} dimensions; it must be in [{-x.ndim - 1}, {x.ndim}]"
        )
    return x.unsqueeze(axis)


def flip(x, /, *, axis=None):
    """The elements in reverse along axes; along all where axis is None."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    return x.clone() if axes == () else _top.flip(x, (axes,) if isinstance(axes, int) else tuple(axes))


def moveaxis(x, source, destination, /):
    """Axes at other places."""
    return _top.moveaxis(x, source, destination)


def permute_dims(x, /, axes):
    """The axes in another order."""
    return x.permute(tuple(axes))


def repeat(x, repeats, /, *, axis=None):
    """Each element as often as repeats says."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor) and repeats.ndim == 0:
        repeats = int(repeats)
    return _top.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape; `copy=False` refuses what cannot be a view."""
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(f"reshape: copy=False asks for a view: {error}") from None
    return x.clone().reshape(tuple(shape)) if copy else x.reshape(tuple(shape))


def roll(x, /, shift, *, axis=None):
    """The elements moved along axes, those at the end coming back at the start."""
    return _top.roll(x, shift, axis)


def squeeze(x, /, axis):
    """Without axes of size one."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: axis {a} has size {x.shape[a]}; only an axis of size 1 can be left out")
    return x.squeeze(axes)


def stack(arrays, /, *, axis=0):
    """Tensors of one shape along a new axis."""
    return _top.stack(promoted(*arrays), axis)


def tile(x, repetitions, /):
    """The whole tensor several times along each axis."""
    return _top.tile(x, tuple(repetitions))


def unstack(x, /, *, axis=0):
    """The slices along an axis."""
    return tuple(x.unbind(axis))

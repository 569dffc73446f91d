"""adjoin._overloads: functions of the top level whose arguments are more than one signature of an op says."""

import warnings

from . import _C
from ._overridden import handed_over, overridden

__all__ = ["detach", "detach_", "frombuffer", "gradient", "poisson", "split", "std_mean", "var_mean"]


def detach(input):
    """The same memory without history."""
    return input.detach()


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A tensor on the memory of a buffer."""
    made = _C.frombuffer(buffer, dtype=dtype, count=count, offset=offset, requires_grad=requires_grad)
    if memoryview(buffer).readonly:
        warnings.warn(
            "The given buffer is not writable: a write to the tensor raises. clone() gives one that can be written.",
            stacklevel=2,
        )
    return made


def detach_(input):
    """The tensor itself, cut off its history."""
    return input.detach_()


def split(tensor, split_size_or_sections, dim=0):
    """Pieces along dim: each of a size, the last perhaps smaller, or of the sizes in a list."""
    if overridden(tensor):
        return handed_over(split, (tensor,), locals())
    return tensor.split(split_size_or_sections, dim)


def _with_mean(name, input, dim, unbiased, keepdim, correction):
    if isinstance(dim, bool):  # f(input, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        if not isinstance(unbiased, bool):
            raise TypeError(f"{name}: unbiased must be a bool, not {unbiased!r}; correction= takes a number")
        if correction is not None:
            raise TypeError(f"{name}: unbiased and correction say the same; give one of them")
        correction = int(unbiased)
    dim = (dim,) if isinstance(dim, int) else dim
    return tuple(_C.find_op(name)(input, dim, correction=correction, keepdim=keepdim))


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The standard deviation and the mean."""
    if overridden(input):
        return handed_over(std_mean, (input,), locals())
    return _with_mean("std_mean", input, dim, unbiased, keepdim, correction)


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The variance and the mean."""
    if overridden(input):
        return handed_over(var_mean, (input,), locals())
    return _with_mean("var_mean", input, dim, unbiased, keepdim, correction)


def _even_slopes(input, dim, step, edge_order):
    """The same at even distances, without their places: halves would round these."""
    n = input.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError(f"gradient: dimension {dim} of size {n} is too small for edge_order {edge_order}")

    def part(start, length=1):
        return input.narrow(dim, start % n, length)

    inner = (part(2, n - 2) - part(0, n - 2)) / step / 2 if n > 2 else part(0, 0) / step
    if edge_order == 1:
        first, last = (part(1) - part(0)) / step, (part(-1) - part(-2)) / step
    else:
        first = (part(1) * 2 - part(0) * 1.5 - part(2) * 0.5) / step
        last = (part(-1) * 1.5 - part(-2) * 2 + part(-3) * 0.5) / step
    return _C.find_op("cat")([first, inner, last], dim)


def _slopes(input, dim, places, edge_order):
    """Along one dimension, at places with known distances: of second order inside."""
    n = input.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError(f"gradient: dimension {dim} of size {n} is too small for edge_order {edge_order}")
    shape = [1] * input.dim()
    shape[dim] = -1
    step = (places[1:] - places[:-1]).reshape(shape)
    rise = input.narrow(dim, 1, n - 1) - input.narrow(dim, 0, n - 1)
    slope = rise / step
    if n == 2:
        return slope.repeat_interleave(2, dim)

    def part(t, start, length):
        return t.narrow(dim, start if start >= 0 else t.shape[dim] + start, length)

    before, after = part(step, 0, n - 2), part(step, 1, n - 2)
    inner = (part(slope, 0, n - 2) * after + part(slope, 1, n - 2) * before) / (before + after)
    first, last = part(slope, 0, 1), part(slope, -1, 1)
    if edge_order == 2:
        bend = (part(slope, 1, 1) - first) / (part(step, 0, 1) + part(step, 1, 1))
        first = first - bend * part(step, 0, 1)
        bend = (last - part(slope, -2, 1)) / (part(step, -1, 1) + part(step, -2, 1))
        last = last + bend * part(step, -1, 1)
    return _C.find_op("cat")([first, inner, last], dim)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Slopes along each dimension: central differences inside, one-sided ones at the ends.

    ``spacing``: the distance of neighbours, one for each dimension, or a tensor of places for each.
    """
    if overridden(input):
        return handed_over(gradient, (input,), locals())
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: edge_order must be 1 or 2, it is {edge_order}")
    if input.dtype is _C.uint8:
        raise NotImplementedError("gradient: differences of uint8 wrap around; cast the tensor with .to()")
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    for d in dims:
        if not -input.dim() <= d < input.dim():
            raise _C.OutOfRangeError(
                f"gradient: Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {d})"
            )
    dims = [d % input.dim() for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient: dim {list(dims)} names a dimension twice; give each once")
    spacing = 1 if spacing is None else spacing
    if not isinstance(spacing, (list, tuple)):
        spacing = [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(
            f"gradient: expected spacing to be unspecified, a number or one for each of {len(dims)} dimensions, got {len(spacing)}"
        )
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(_C.get_default_dtype())
    real = input.real.dtype if input.is_complex() else input.dtype
    results = []
    for d, by in zip(dims, spacing, strict=True):
        if isinstance(by, _C.Tensor) and by.dim() == 1:
            wide = _C.promote_types(real, by.dtype if by.is_floating_point() else real)
            precise = input.to(
                _C.promote_types(input.dtype, wide)
            )  # differences of close numbers lose most of a float's
            results.append(_slopes(precise, d, by.to(wide), edge_order))
        else:
            results.append(_even_slopes(input, d, by, edge_order))
    return tuple(results)


def poisson(input, generator=None):
    """How many events happen where so many are expected; by waiting times (Knuth, 1969), for rates up to a few hundred."""
    if overridden(input):
        return handed_over(poisson, (input,), locals())
    if not input.is_floating_point():
        raise NotImplementedError(f"poisson: input is {input.dtype}; make it a floating dtype")
    with _C.no_grad():
        if bool((input < 0).any()):
            raise RuntimeError("poisson: rates must not be negative")
        left, made = input.clone(), input.new_zeros(input.shape)
        while True:
            drawn = left.new_empty(left.shape).uniform_(generator=generator)
            left = left + drawn.clamp(min=1e-30 if left.itemsize > 2 else 1e-7).log()
            more = left > 0
            if not more.any():
                return made
            made = made + more

"""adjoin._variadic: functions around ops: of as many results as are asked for, of any number of tensors, of methods alone."""

from . import _C
from ._overridden import handed_over, overridden

__all__ = [
    "as_strided_",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "fill",
    "fill_",
    "pdist",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "zero_",
]  # fmt: skip


def _asked(results, *wanted):
    kept = [results[0], *(t for t, want in zip(results[1:], wanted, strict=True) if want)]
    return kept[0] if len(kept) == 1 else tuple(kept)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices of dim) in order, which of them each element is, and how often each occurs."""
    if overridden(input):
        return handed_over(unique, (input,), locals())
    results = _C.find_op("unique")(input, sorted, return_inverse, return_counts, dim)
    return _asked(results, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first element (or slice of dim) of each run of equal ones, which run each element is in, and their lengths."""
    if overridden(input):
        return handed_over(unique_consecutive, (input,), locals())
    results = _C.find_op("unique_consecutive")(input, return_inverse, return_counts, dim)
    return _asked(results, return_inverse, return_counts)


def _at_least(name):
    def function(*tensors):
        if overridden(*tensors):
            return handed_over(function, tensors, locals())
        op = _C.find_op(name)
        if len(tensors) == 1 and isinstance(tensors[0], _C.Tensor):
            return op(tensors[0])
        tensors = tensors[0] if len(tensors) == 1 else tensors
        return tuple(op(t) for t in tensors)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Tensors of {name[8]} dimension{'s' if name[8] > '1' else ''} at least: one, or a tuple of several."
    )
    return function


atleast_1d = _at_least("atleast_1d")
atleast_2d = _at_least("atleast_2d")
atleast_3d = _at_least("atleast_3d")


def pdist(input, p=2.0):
    """The p-norms of the differences of each two rows."""
    return _C.find_op("nn::pdist")(input, p)


def unravel_index(indices, shape):
    """The coordinates of flat places in a tensor of a shape, one tensor per dimension."""
    if overridden(indices):
        return handed_over(unravel_index, (indices,), locals())
    if not isinstance(shape, (int, list, tuple)):
        raise TypeError(
            f"unravel_index: expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}"
        )
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    wrong = [n for n in shape if not isinstance(n, int) and not hasattr(n, "__index__")]
    if wrong:
        raise TypeError(
            f"unravel_index: expected 'shape' sequence to only contain ints, but got {type(wrong[0]).__name__}"
        )
    if any(n < 0 for n in shape):
        raise ValueError(f"unravel_index: 'shape' cannot have negative values, but got {shape}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(
            f"unravel_index: expected 'indices' to be integer dtype, but got {indices.dtype}; cast it with .long()"
        )
    return tuple(_C.find_op("unravel_index")(indices.long(), shape))


def zero_(input):
    """Writes zeros."""
    return input.zero_()


def fill_(input, value):
    """Writes one value."""
    return input.fill_(value)


def fill(input, value):
    """A tensor like input, full of one value."""
    return input.clone().fill_(value)


def as_strided_(input, size, stride, storage_offset=None):
    """The tensor itself with another shape and other strides."""
    return input.as_strided_(size, stride, storage_offset)


def resolve_conj(input):
    """The tensor itself: conjugates are computed at once."""
    if overridden(input):
        return handed_over(resolve_conj, (input,), locals())
    return input.resolve_conj()


def resolve_neg(input):
    """The tensor itself: negation is never put off."""
    if overridden(input):
        return handed_over(resolve_neg, (input,), locals())
    return input


def resize_as_(input, the_template, *, memory_format=None):
    """The tensor itself in the shape of another one; the memory grows if it must."""
    if memory_format is _C.preserve_format:
        orders = (_C.contiguous_format, _C.channels_last, _C.channels_last_3d)
        ranks = {_C.channels_last: 4, _C.channels_last_3d: 5}
        rank = the_template.dim()
        fits = (f for f in orders if ranks.get(f, rank) == rank and the_template.is_contiguous(memory_format=f))
        memory_format = next(fits, None)
    return input.resize_(tuple(the_template.shape), memory_format=memory_format)


def _resize(self, *sizes):
    """A view in another shape with as many elements."""
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return self.reshape(tuple(sizes))


_METHODS = {
    "unique": unique,
    "unique_consecutive": unique_consecutive,
    "resize_as_": resize_as_,
    "resize": _resize,
    "resize_as": lambda self, other: _resize(self, other.shape),
}

for _name, _function in _METHODS.items():
    if _function.__name__ == "<lambda>":
        _function.__name__ = _name
    _C.set_tensor_attribute(_name, _function)

"""adjoin._by_element: methods of tensors that call a function of Python's for each element, and one that looks at strides."""

from . import _C


def _list(tensor, what):
    if tensor.requires_grad:
        raise RuntimeError(
            f"{what}: a tensor that requires grad has no derivative through Python's functions; give tensor.detach()"
        )
    return tensor.detach().reshape(-1).tolist()


def _written(tensor, numbers):
    wrong = next(
        (n for n in numbers if not isinstance(n, (bool, int, float, complex)) and not hasattr(n, "__float__")), None
    )
    if wrong is not None:
        raise TypeError(f"the function gave {wrong!r}, a {type(wrong).__name__}; numbers are wanted")
    return tensor.copy_(_C.tensor(numbers, dtype=tensor.dtype).reshape(tensor.shape))


def apply_(self, function):
    """Replaces each element by function(element); slow."""
    return _written(self, [function(x) for x in _list(self, "apply_")])


def map_(self, tensor, function):
    """Replaces each element by function(element, the other tensor's); slow."""
    return _written(
        self, [function(*pair) for pair in zip(_list(self, "map_"), _list(tensor.expand_as(self), "map_"), strict=True)]
    )


def map2_(self, x, y, function):
    """Replaces each element by function(element, that of x, that of y); slow."""
    lists = (_list(t, "map2_") for t in (self, x.expand_as(self), y.expand_as(self)))
    return _written(self, [function(*three) for three in zip(*lists, strict=True)])


def dim_order(self, *, ambiguity_check=False):
    """The dimensions as they lie in memory, the outermost first. ambiguity_check: an order that is not the only one raises;
    memory formats in a list are tried one after the other, and the first that fits says the order."""
    formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else None
    if formats is None and not isinstance(ambiguity_check, bool):
        raise TypeError(
            f"dim_order: ambiguity_check is {ambiguity_check!r}; a bool or a list of memory formats is wanted"
        )
    if formats is not None and not all(isinstance(f, _C.memory_format) for f in formats):
        raise TypeError(f"dim_order: ambiguity_check has {formats}; each must be a memory format")
    order = sorted(range(self.dim()), key=lambda d: -self.stride(d))
    steps = [self.stride(d) for d in range(self.dim()) if self.size(d) > 1]
    if not ambiguity_check or (len(set(steps)) == len(steps) and all(n != 1 for n in self.shape)):
        return tuple(order)
    for format in formats or ():
        if self.is_contiguous(memory_format=format):
            channels_last = format in (_C.channels_last, _C.channels_last_3d)
            return (0, *range(2, self.dim()), 1) if channels_last else tuple(range(self.dim()))
    raise RuntimeError(
        "dim_order: the tensor does not have unique dim order, or cannot map to exact one of the given memory formats: "
        f"shape {tuple(self.shape)}, strides {self.stride()}"
    )

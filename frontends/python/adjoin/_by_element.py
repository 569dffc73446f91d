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
    """The dimensions as they lie in memory, the outermost first."""
    order = sorted(range(self.dim()), key=lambda d: -self.stride(d))
    if ambiguity_check:
        steps = [self.stride(d) for d in range(self.dim()) if self.size(d) > 1]
        if len(set(steps)) < len(steps) or any(n == 1 for n in self.shape):
            raise RuntimeError(
                f"dim_order: the tensor does not have unique dim order: shape {tuple(self.shape)}, strides {self.stride()}"
            )
    return tuple(order)

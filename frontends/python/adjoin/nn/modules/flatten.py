"""adjoin.nn.modules.flatten: layers that only change the shape."""

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins dimensions ``start_dim`` to ``end_dim`` into one; the batch dimension stays by
    default."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Cuts dimension ``dim`` into those of ``unflattened_size``, of which one may be -1."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"unflatten: dim is a {type(dim).__name__}, an int is wanted")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflatten: unflattened_size is a {type(unflattened_size).__name__}, a tuple of ints is wanted"
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(size).__name__} at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"

"""adjoin._higher_order_ops.map: a function of each row."""

from .. import Tensor, stack
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f, xs, *args):
    """``f(x, *args)`` for each x along the first dimension of xs, a tree of tensors; the results stacked."""
    leaves, form = tree_flatten(xs)
    if not leaves or any(not isinstance(t, Tensor) or t.dim() == 0 for t in leaves):
        raise RuntimeError("map: xs must consist of tensors that have a first dimension to walk along")
    sizes = {t.shape[0] for t in leaves}
    if len(sizes) > 1 or 0 in sizes:
        raise RuntimeError(
            f"map: the first dimensions of xs must be alike and not empty, they have {sorted(sizes)} elements"
        )
    made = [tree_flatten(f(tree_unflatten(list(row), form), *args)) for row in zip(*leaves, strict=True)]
    return tree_unflatten([stack(rows) for rows in zip(*(found for found, _ in made), strict=True)], made[0][1])

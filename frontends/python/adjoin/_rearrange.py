"""adjoin._rearrange: dimensions by name: split, joined and put into another order by a pattern."""

import math
import re

from . import _C

_PIECE = re.compile(r"\.\.\.|[A-Za-z_]\w*|\d+|[()]|\s+|.")


def _side(text, pattern):
    """The dimensions of one side: lists of names; the ellipsis is the list of "...", 1 an empty list."""
    dims, within = [], None
    for piece in _PIECE.findall(text):
        if piece.isspace():
            continue
        if piece == "(" and within is None:
            within = []
        elif piece == ")" and within is not None:
            dims.append(within)
            within = None
        elif piece == "1":
            dims.append([]) if within is None else None
        elif piece == "..." and within is not None:
            raise ValueError(f"rearrange: an ellipsis stands in brackets in {pattern!r}; it may stand outside of them")
        elif piece == "..." or piece.isidentifier():
            dims.append([piece]) if within is None else within.append(piece)
        else:
            raise ValueError(f"rearrange: {piece!r} in {pattern!r} is no name of a dimension")
    if within is not None:
        raise ValueError(f"rearrange: brackets in {pattern!r} are not closed")
    names = [name for dim in dims for name in dim]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"rearrange: Indexing expression contains duplicate dimension {name!r} in {pattern!r}")
    return dims


def _sizes(shape, dims, given, pattern):
    """The size of each name on the left."""
    sizes = {}
    for size, names in zip(shape, dims, strict=True):
        known = math.prod(given[name] for name in names if name in given)
        unknown = [name for name in names if name not in given]
        if len(unknown) > 1:
            raise ValueError(
                f"rearrange: the sizes of {' and '.join(unknown)} cannot both be inferred in {pattern!r}; give all but one"
            )
        if known == 0 or size % known or not unknown and size != known:
            raise ValueError(
                f"rearrange: a dimension of size {size} is not {' x '.join(names) or '1'} of {given or 'no sizes'} in {pattern!r}"
            )
        sizes.update({name: given[name] for name in names if name in given})
        sizes.update({name: size // known for name in unknown})
    return sizes


def rearrange(tensor, pattern, **axes_lengths):
    """The tensor with its dimensions as the right side of the pattern names them: ``rearrange(x, "b (h w) c -> b c h w", h=8)``.

    Names in brackets make one dimension. ``...`` stands for any dimensions, 1 or () for one of size 1. Tensors in a list are stacked.
    """
    if not isinstance(tensor, _C.Tensor):
        tensor = _C.find_op("stack")(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: {pattern!r} has {len(sides) - 1} arrows; 'left -> right' is wanted")
    left, right = (_side(side, pattern) for side in sides)
    ours, theirs = ({name for dim in side for name in dim} for side in (left, right))
    if ours != theirs:
        raise ValueError(
            f"rearrange: Identifiers only on one side of rearrange expression (should be on both): {sorted(ours ^ theirs)}"
        )
    strange = sorted(axes_lengths.keys() - ours)
    if strange:
        raise ValueError(f"rearrange: Identifiers not found in rearrange expression: {strange}")
    more = tensor.dim() - (len(left) - 1 if ["..."] in left else len(left))
    if more < 0 or more > 0 and ["..."] not in left:
        raise ValueError(
            f"rearrange: Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor "
            f"({tensor.dim()})"
        )
    between = [f"... {i}" for i in range(more)]

    def open_(dims):
        return [d for dim in dims for d in ([[n] for n in between] if dim == ["..."] else [dim])]

    left, right = open_(left), open_(right)
    sizes = _sizes(tensor.shape, left, axes_lengths, pattern)
    flat = [name for dim in left for name in dim]
    order = [flat.index(name) for dim in right for name in dim]
    apart = tensor.reshape([sizes[name] for name in flat])
    return apart.permute(order).reshape([math.prod(sizes[name] for name in dim) for dim in right])

"""adjoin._higher_order_ops.associative_scan: all partial results of an associative function, in about 2 log2(n) batched calls.

Source: Blelloch, "Prefix Sums and Their Applications", 1990: pairs are joined, their scan is made, and what lies between follows.
"""

from .. import Tensor, cat
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """``xs[0], f(xs[0], xs[1]), f(f(xs[0], xs[1]), xs[2]) ...`` along dim of a tree of tensors; reverse: from the end.

    combine_mode: "pointwise", where f works element by element on tensors of a card, or "generic", where it sees single slices.
    """
    from ..func import vmap

    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: combine_mode is 'pointwise' or 'generic', not {combine_mode!r}")
    leaves, form = tree_flatten(xs)
    if not leaves or any(not isinstance(t, Tensor) for t in leaves):
        raise ValueError("associative_scan: xs must consist of tensors, and there must be one")
    if combine_mode == "pointwise" and any(t.device.type == "cpu" for t in leaves):
        raise ValueError(
            "associative_scan: combine_mode='pointwise' is for tensors of a card; give combine_mode='generic' for those of the processor"
        )
    sizes = {t.shape[dim] for t in leaves}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(
            f"associative_scan: dimension {dim} must be alike in all tensors and not empty, it has {sorted(sizes)} elements"
        )

    def joined(a, b):
        made, found = tree_flatten(combine_fn(tree_unflatten(a, form), tree_unflatten(b, form)))
        if found != form:
            raise ValueError("associative_scan: combine_fn must give a tree of the form that xs has")
        return tuple(made)

    rows = [t.movedim(dim, 0) for t in leaves]
    batched = vmap(lambda *both: joined(list(both[: len(rows)]), list(both[len(rows) :])))
    done = _scanned(batched, [t.flip(0) for t in rows] if reverse else rows)
    done = [t.flip(0) for t in done] if reverse else done
    return tree_unflatten([t.movedim(0, dim) for t in done], form)


def _scanned(batched, rows):
    n = rows[0].shape[0]
    if n < 2:
        return rows
    pairs = batched(*(t[: n - n % 2 : 2] for t in rows), *(t[1::2] for t in rows))
    odd = _scanned(batched, list(pairs))
    between = batched(*(t[: (n - 1) // 2] for t in odd), *(t[2::2] for t in rows)) if n > 2 else [t[:0] for t in rows]
    return [_woven(t, even, o, n) for t, even, o in zip(rows, between, odd, strict=True)]


def _woven(rows, even, odd, n):
    """The first row, and by turns what stands at odd and at even places."""
    even = cat([rows[:1].to(odd.dtype), even])
    paired = even[: n // 2].unsqueeze(1), odd[: n // 2].unsqueeze(1)
    woven = cat(paired, 1).flatten(0, 1)
    return cat([woven, even[n // 2 :]]) if n % 2 else woven

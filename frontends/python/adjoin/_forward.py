"""adjoin._forward: derivatives of functions in forward mode: one call of the function, with a tangent beside each value."""

import itertools

from . import _C
from ._vmap import _wraps, vmap

__all__ = ["jacfwd", "jvp"]

_DUAL = 1  # AJ_LEVEL_DUAL

# Trees: dictionaries, lists and tuples that hold tensors, or more of these.
_map = _C.tree_map  # the tree with function(tensor) for each tensor
_fill = _C.tree_fill  # with other tensors in their places
_leaves = _C.tree_leaves


def _pushed(func, args, kwargs, numbers, tangents, has_aux, strict=False):
    """func of args, where the tensors of the arguments ``numbers`` have these tangents: (result, its tangents, aux)."""
    level = _C.transform_enter(_DUAL, 1, 0)
    try:
        left = iter(tangents)
        given = list(args)
        for n in numbers:
            given[n] = _map(given[n], lambda x: _C.transform_dual(x, next(left), level))
        result = func(*given, **kwargs)
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"jvp: with has_aux the function returns a pair, it returned {type(result).__name__}"
                )
            result, aux = result
        parted = _parts(result, level)
        aux = _map(aux, lambda x: _C.transform_undual(x, level)[0]) if has_aux else None
    finally:
        _C.transform_leave(level)
    return *_parted(result, parted, strict), aux


def _parts(result, level):
    """(value, tangent) of each tensor of a function's result."""
    return [_C.transform_undual(x, level) for x in _checked(result)]


def _parted(result, parts, strict):
    """(result, its tangents), of the values and tangents of its tensors."""
    if strict and any(tangent is None for _, tangent in parts):
        raise RuntimeError("jvp: a result does not depend on the primals, and strict is on")
    moved = [_zero(x) if t is None else t for x, t in parts]
    return _fill(result, [x for x, _ in parts]), _fill(result, moved)


def _zero(x):
    return _C.find_op("zeros_like")(x)


def _checked(result):
    """The tensors of a function's result, which is made of them alone."""

    def look(tree):
        if isinstance(tree, dict):
            tree = list(tree.values())
        if isinstance(tree, (list, tuple)):
            for part in tree:
                look(part)
        elif not isinstance(tree, _C.Tensor):
            raise RuntimeError(f"jvp: the function must return tensors, it returned {type(tree).__name__}")

    look(result)
    return _leaves(result)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """``func(*primals)`` and its derivative along the tangents, by one call of func in forward mode.

    ``strict``: a result that depends on no primal is an error; otherwise its derivative is zero.
    """
    if not has_aux and (made := _C.pushed(func, primals, tangents, _parts)) is not None:
        return made if len(made) == 2 else _parted(*made[:2], strict)
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError(
            f"jvp: primals and tangents must be tuples, of one element too; they are {type(primals).__name__} and {type(tangents).__name__}"
        )
    along = _leaves(tangents)
    shapes = [x.shape for x in _leaves(primals)], [x.shape for x in along]
    if shapes[0] != shapes[1]:
        told = [[tuple(x) for x in some] for some in shapes]
        raise RuntimeError(f"jvp: the primals have shapes {told[0]}, the tangents {told[1]}; they must be the same")
    result, moved, aux = _pushed(func, primals, {}, range(len(primals)), along, has_aux, strict)
    return (result, moved, aux) if has_aux else (result, moved)


def _basis(x, first, count):
    """Tangents of x, one for each of ``count`` inputs of which x's own begin at ``first``."""
    n = x.numel()
    own = _C.find_op("eye")(n, dtype=x.dtype, device=x.device)
    if n == count:
        return own.reshape((n, *x.shape))
    zeros = _C.find_op("zeros")
    parts = [zeros((k, n), dtype=x.dtype, device=x.device) for k in (first, count - first - n)]
    return _C.find_op("cat")([parts[0], own, parts[1]]).reshape((count, *x.shape))


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error", chunk_size=None):
    """A function that returns the Jacobian of func, all columns at once in forward mode: for functions of few numbers.

    For each tensor of func's result (and each of several ``argnums``) a tensor of the result's and the argument's
    dimensions. ``chunk_size``: so many columns at a time, to save memory; ``randomness`` is that of vmap.
    """

    @_wraps(func)
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        numbers = (argnums,) if single else tuple(argnums)
        chosen = _leaves([args[n] for n in numbers])
        for x in chosen:
            if not (x.is_floating_point() or x.is_complex()):
                raise RuntimeError(f"jacfwd: an argument is {x.dtype}; floating or complex ones have derivatives")
        sizes = [x.numel() for x in chosen]
        count = sum(sizes)
        starts = [0, *itertools.accumulate(sizes)][:-1]

        def along(*tangents):
            _, moved, aux = _pushed(func, args, kwargs, numbers, tangents, has_aux)
            return (moved, aux) if has_aux else moved

        columns = vmap(along, out_dims=(0, None) if has_aux else 0, randomness=randomness, chunk_size=chunk_size)
        made = columns(*(_basis(x, first, count) for x, first in zip(chosen, starts, strict=True)))
        made, aux = made if has_aux else (made, None)

        def by_argument(column):
            last = column.movedim(0, -1)
            if (
                single and args[argnums] is chosen[0] and chosen[0].dim() == 1
            ):  # the columns are the argument's as they are
                return last
            parts = iter(
                last.narrow(-1, first, n).reshape((*last.shape[:-1], *x.shape))
                for x, first, n in zip(chosen, starts, sizes, strict=True)
            )
            trees = tuple(_map(args[n], lambda _: next(parts)) for n in numbers)
            return trees[0] if single else trees

        made = _map(made, by_argument)
        return (made, aux) if has_aux else made

    return jacobian

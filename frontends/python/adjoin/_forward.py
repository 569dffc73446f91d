"""adjoin._forward: derivatives of functions in forward mode: one call of the function, with a tangent beside each value."""

import itertools

from . import _C
from ._vmap import _node, _wraps, vmap

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
            result, aux = result[0], _only_tensors(result[1], "jvp")
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


def _argnums(argnums, count, name):
    """The numbers of the arguments that are meant, from 0."""
    if isinstance(argnums, int) and not isinstance(argnums, bool):
        if 0 <= argnums < count:
            return (argnums,)
        chosen = (argnums,)
    elif not isinstance(argnums, tuple):
        raise RuntimeError(f"{name}: argnums must be int or Tuple[int, ...], it is {argnums!r}")
    else:
        chosen = argnums
    if not chosen:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for n in chosen:
        if not isinstance(n, int):
            raise RuntimeError(f"{name}: argnums must be int or a tuple of them, {n!r} is a {type(n).__name__}")
        if not -count <= n < count:
            raise RuntimeError(f"{name}: argnums has {n}, but only {count} positional arguments were given")
    numbers = tuple(n % count for n in chosen)
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"{name}: argnums must be unique, they are {argnums}")
    return numbers


def _real(name, what, tensors):
    for x in tensors:
        if x.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real, one is {x.dtype}; take view_as_real of it, which has a Jacobian"
            )


def _look(tree, told):
    """Raises where a tree holds something else than tensors."""
    if (node := _node(tree)) is not None:
        tree = list(node.flatten_fn(tree)[0])
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for part in tree:
            _look(part, told)
    elif not isinstance(tree, _C.Tensor):
        raise RuntimeError(f"{told}{type(tree).__name__}")


def _only_tensors(aux, name):
    """What a function gives along with its result, by has_aux; it is made of tensors alone, too."""
    _look(aux, f"{name}: aux, the second part of the pair: Expected tensors, got unsupported type ")
    return aux


def _checked(result, name="jvp(f, primals, tangents)"):
    """The tensors of a function's result, which is made of them alone."""
    if isinstance(result, _C.Tensor):
        return (result,)
    if result is not None:
        _look(result, f"{name}: expected f(*primals) to return only tensors, it returned ")
    found = [] if result is None else _leaves(result)
    if not found:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output, it returned {result!r}")
    return found


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """``func(*primals)`` and its derivative along the tangents, by one call of func in forward mode.

    ``strict``: a result that depends on no primal is an error; otherwise its derivative is zero.
    """
    short = type(primals) is tuple and primals and not has_aux
    if short and (made := _C.pushed(func, primals, tangents, _parts)) is not None:
        return made if len(made) == 2 else _parted(*made[:2], strict)
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError(
            f"jvp: primals and tangents must be tuples, of one element too; they are {type(primals).__name__} and {type(tangents).__name__}"
        )
    if not primals:
        raise RuntimeError("jvp: primals and tangents must be non-empty: there is nothing to differentiate by")
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
        numbers = _argnums(argnums, len(args), "jacfwd")
        chosen = _leaves([args[n] for n in numbers])
        _real("jacfwd", "inputs", chosen)
        for x in chosen:
            if not x.is_floating_point():
                raise RuntimeError(f"jacfwd: an argument is {x.dtype}; those of a floating dtype have derivatives")
        sizes = [x.numel() for x in chosen]
        count = sum(sizes)
        starts = [0, *itertools.accumulate(sizes)][:-1]

        def along(*tangents):
            result, moved, aux = _pushed(func, args, kwargs, numbers, tangents, has_aux)
            _real("jacfwd", "outputs", _leaves(result))
            return (moved, aux) if has_aux else moved

        columns = vmap(along, out_dims=(0, None) if has_aux else 0, randomness=randomness, chunk_size=chunk_size)
        made = columns(*(_basis(x, first, count) for x, first in zip(chosen, starts, strict=True)))
        made, aux = made if has_aux else (made, None)

        def by_argument(column):
            last = column.movedim(0, -1)
            if (
                single and args[numbers[0]] is chosen[0] and chosen[0].dim() == 1
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

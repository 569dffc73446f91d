"""adjoin.autograd._lowered: a Function whose arguments are tensors of a transform: applied to what they stand for."""

from typing import NamedTuple

from .. import _C
from ._mapped import mapped
from .function import Function, _default_setup_context


def apply(cls, *args):
    """cls of arguments that are tensors of a transform: its level's tape records cls, which is then applied to what they stand for."""
    level = max(_C.transform_level(x) for x in args if isinstance(x, _C.Tensor))
    if cls.setup_context is not _default_setup_context:
        args = (*args, *_left_out(cls.forward, len(args)))
    own = [isinstance(x, _C.Tensor) and _C.transform_level(x) == level for x in args]
    recorded = _C.is_grad_enabled() and any(x.requires_grad for x, mine in zip(args, own, strict=True) if mine)
    if recorded and cls.setup_context is _default_setup_context:
        raise RuntimeError(
            f"{cls.__name__}: inside of a transform forward(ctx, ...) cannot be told from what it keeps for backward; "
            "write forward without ctx, and setup_context(ctx, inputs, output)"
        )
    kept = _C.keep_for_forward(False)  # a jvp that comes is that of this level
    try:
        results = (_tangents if _C.transform_kind(level) == 1 else _samples)(cls, args, own, level)
    finally:
        _C.keep_for_forward(kept)
    if not recorded:
        return results
    known = type(cls.__name__, (cls,), {"forward": staticmethod(lambda *_: results)})
    return _C.apply_function_here(known, *args)


def _left_out(forward, given):
    """The defaults of forward's arguments that a call of so many leaves out: setup_context sees them."""
    function = getattr(forward, "__func__", forward)
    defaults = getattr(function, "__defaults__", None) or ()
    missing = function.__code__.co_argcount - (function is not forward) - given if defaults else 0
    return defaults[len(defaults) - missing :] if 0 < missing <= len(defaults) else ()


class VmapInfo(NamedTuple):
    """What ``vmap`` of a Function is told."""

    batch_size: int
    randomness: str


def _samples(cls, args, own, level):
    """cls of arguments of which some hold samples: by its vmap, by its parts mapped, or sample by sample."""
    if cls.vmap is not Function.vmap and cls.generate_vmap_rule:
        raise RuntimeError(f"{cls.__name__} has both vmap and generate_vmap_rule; one of them is wanted")
    differs = [mine and _C.transform_batched_at(x, level) for x, mine in zip(args, own, strict=True)]
    size, randomness = _C.transform_batch(level)
    dims = tuple(0 if d else None for d in differs)
    given = [
        _C.transform_unbatched(x, 0, level) if d else _C.transform_shared(x, level) if mine else x
        for x, mine, d in zip(args, own, differs, strict=True)
    ]
    if cls.vmap is not Function.vmap and any(isinstance(x, (list, tuple, dict)) for x in args):
        dims, given = _with_trees(dims, given, level)
    _C.transform_below(level)
    try:
        if cls.vmap is not Function.vmap:
            results, out_dims = cls.vmap(VmapInfo(size, randomness), dims, *given)
        elif cls.generate_vmap_rule and any(differs):
            results, out_dims = mapped(cls, dims, size, randomness).apply(*given), 0
        else:
            results, out_dims = _one_by_one(cls, dims, given, size)
    finally:
        _C.transform_above()
    several = isinstance(results, tuple)
    outs = results if several else (results,)
    out_dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outs)
    if len(out_dims) != len(outs):
        raise RuntimeError(f"{cls.__name__}.vmap gave {len(outs)} results and {len(out_dims)} out_dims")
    made = tuple(_above(x, d, level) for x, d in zip(outs, out_dims, strict=True))
    return made if several else made[0]


def _above(x, dim, level):
    """A result of vmap at the level of its samples; dim as vmap gave it, which may be a list for a list."""
    if isinstance(x, (list, tuple)):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(x)
        return type(x)(_above(y, d, level) for y, d in zip(x, dims, strict=True))
    if not isinstance(x, _C.Tensor):
        return x
    return _C.transform_lift(x, level) if dim is None else _C.transform_batched(x, dim, level)


def _with_trees(dims, given, level):
    """The same where arguments are lists, tuples or dictionaries of tensors: vmap gets their dimensions in the same form."""
    from ..utils._pytree import tree_map

    def dim(leaf):
        return 0 if isinstance(leaf, _C.Tensor) and _C.transform_batched_at(leaf, level) else None

    def below(leaf):
        if not isinstance(leaf, _C.Tensor) or _C.transform_level(leaf) != level:
            return leaf
        return _C.transform_unbatched(leaf, 0, level) if dim(leaf) == 0 else _C.transform_shared(leaf, level)

    trees = [isinstance(x, (list, tuple, dict)) for x in given]
    return (
        tuple(tree_map(dim, x) if tree else d for d, x, tree in zip(dims, given, trees, strict=True)),
        [tree_map(below, x) if tree else x for x, tree in zip(given, trees, strict=True)],
    )


def _one_by_one(cls, dims, given, size):
    if not size:
        raise RuntimeError(f"{cls.__name__}: an empty batch of a Function without vmap; define vmap")
    stack = _C.find_op("stack")
    looped[cls.__name__] = looped.get(cls.__name__, 0) + 1
    calls = [
        cls.apply(*(x if d is None else x.select(0, i) for x, d in zip(given, dims, strict=True))) for i in range(size)
    ]
    if not isinstance(calls[0], tuple):
        return stack(calls, 0), 0
    return tuple(stack(list(column), 0) for column in zip(*calls, strict=True)), (0,) * len(calls[0])


looped = {}  # by name: how often a Function without vmap was applied to a batch


def _floating(x):
    return isinstance(x, _C.Tensor) and (x.is_floating_point() or x.is_complex())


def _tangents(cls, args, own, level):
    """cls of arguments of which some have tangents: cls of their values, and its tangents by its jvp, or by its backward."""
    parted = [_C.transform_undual(x, level) if mine else (x, None) for x, mine in zip(args, own, strict=True)]
    primals, tangents = [p for p, _ in parted], [t for _, t in parted]
    _C.transform_below(level)
    try:
        results, moved, written = _below(cls, primals, tangents)
    finally:
        _C.transform_above()
    several = isinstance(results, tuple)
    outs = results if several else (results,)
    made = tuple(
        args[at] if at is not None else _C.transform_dual(x, t, level) if _floating(x) else x
        for x, t, at in zip(outs, moved, written, strict=True)
    )
    return made if several else made[0]


def _below(cls, primals, tangents):
    """(results of cls, their tangents, for each result which argument it is that was written), among the levels around."""
    if all(t is None for t in tangents):
        results = cls.apply(*primals)
        outs = results if isinstance(results, tuple) else (results,)
        return results, [None] * len(outs), [None] * len(outs)
    own = cls.jvp is not Function.jvp
    if own and not any(isinstance(x, _C.Tensor) and _C.transform_level(x) > 0 for x in primals):
        return _in_place_too(cls, primals, tangents)
    before = _C.is_grad_enabled()
    recorded = before and any(isinstance(x, _C.Tensor) and x.requires_grad for x in (*primals, *tangents))
    with _C.enable_grad():
        leaves = [
            x if not _floating(x) else x.view_as(x) if before and x.requires_grad else x._alias().requires_grad_()
            for x in primals
        ]
        kept = _C.keep_for_forward(own)
        try:
            results = cls.apply(*leaves)
        finally:
            _C.keep_for_forward(kept)
        outs = results if isinstance(results, tuple) else (results,)
        if any(x is y for x in outs for y in leaves if isinstance(x, _C.Tensor)):
            raise RuntimeError(
                f"{cls.__name__}: it writes an argument in place, which forward mode does not follow here; define jvp, "
                "and call it in one transform alone"
            )
        if own:
            ctx = next((x.grad_fn for x in outs if isinstance(x, _C.Tensor) and x.grad_fn is not None), None)
            moved = [None] * len(outs) if ctx is None else _by_jvp(cls, ctx, outs, primals, tangents)
        else:
            moved = _by_backward(cls, outs, leaves, tangents)
    written = [None] * len(outs)
    if recorded:
        return results, moved, written
    outs = tuple(x._alias() if _floating(x) else x for x in outs)
    return (
        (outs if isinstance(results, tuple) else outs[0]),
        [t if t is None else t._alias() for t in moved],
        written,
    )


def _in_place_too(cls, primals, tangents):
    """The same of arguments that are no tensors of a transform, by jvp: what forward writes, jvp has to write as well."""
    kept = _C.keep_for_forward(True)
    try:
        results, ctx = _C.apply_with_context(cls, *primals)
    finally:
        _C.keep_for_forward(kept)
    outs = results if isinstance(results, tuple) else (results,)
    dirty = ctx.dirty_tensors  # None where a node was recorded: an input that was not written is another object then
    given = [
        next((at for at, y in enumerate(primals) if x is y), None) if isinstance(x, _C.Tensor) else None for x in outs
    ]
    written = [
        at if at is not None and (outs[i].grad_fn is ctx or any(outs[i] is d for d in dirty or ())) else None
        for i, at in enumerate(given)
    ]
    versions = [None if t is None else t._version for t in tangents]
    moved = _by_jvp(cls, ctx, outs, primals, tangents)
    for at, t in zip(written, moved, strict=True):
        if at is None:
            continue
        if tangents[at] is None:
            raise RuntimeError(f"{cls.__name__}: it writes argument {at}, which has no tangent that jvp could write")
        if t is not tangents[at] or t._version == versions[at]:
            raise RuntimeError(
                f"{cls.__name__}: its forward writes argument {at}, so its jvp function must modify the corresponding gradient "
                "inplace and return it"
            )
    return results, moved, written


def _by_jvp(cls, ctx, outs, primals, tangents):
    zeros = _C.find_op("zeros_like")
    given = [
        zeros(x) if t is None and _floating(x) and ctx.materialize_grads else t
        for x, t in zip(primals, tangents, strict=True)
    ]
    moved = cls.jvp(ctx, *given)
    ctx.save_for_forward()
    moved = moved if isinstance(moved, tuple) else (moved,)
    if len(moved) != len(outs):
        raise RuntimeError(f"{cls.__name__}.jvp gave {len(moved)} tangents, the function has {len(outs)} results")
    for x, t in zip(outs, moved, strict=True):
        if t is not None and t.shape != x.shape:
            raise RuntimeError(
                f"{cls.__name__}.jvp gave a tangent of shape {tuple(t.shape)} for a result of shape {tuple(x.shape)}"
            )
    return moved


def _by_backward(cls, outs, leaves, tangents):
    """Backward is linear in the gradient: its derivative by that, along the tangents."""
    wanted = [x for x in outs if _floating(x) and x.requires_grad]
    if not wanted:
        return [None] * len(outs)
    below = max(_C.transform_level(x) for x in (*leaves, *tangents))
    with _C.no_grad():
        ones = [_C.find_op("ones_like")(x) for x in wanted]
        ones = [(_C.transform_lift(x, below) if below else x)._alias().requires_grad_() for x in ones]
    moving = [(x, t) for x, t in zip(leaves, tangents, strict=True) if t is not None]
    found = _C.grad(wanted, [x for x, _ in moving], ones, create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, (_, t) in zip(found, moving, strict=True) if g is not None and g.requires_grad]
    if not pairs:
        return [None] * len(outs)
    along = _C.grad([g for g, _ in pairs], ones, [t for _, t in pairs], create_graph=True, allow_unused=True)
    if all(t is None for t in along):
        raise RuntimeError(
            f"{cls.__name__}: its backward cannot be differentiated, so it has no forward mode; define jvp"
        )
    by_result = {id(x): t for x, t in zip(wanted, along, strict=True)}
    return [by_result.get(id(x)) for x in outs]

"""adjoin._vmap: a function over a dimension of its arguments, one call for each slice.

No call is saved by it, so it is as slow as a loop; what it gives is what a loop gives, derivatives included.
"""

import functools

from . import _C, random

__all__ = ["stack_module_state", "vmap"]


def _spread(dims, tree, who):
    """The dimension of each leaf: dims may be one for a whole subtree."""
    if dims is None or isinstance(dims, int):
        return dims
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return {k: _spread(dims[k], v, who) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        return [_spread(d, v, who) for d, v in zip(dims, tree, strict=True)]
    raise ValueError(f"vmap: {who} {dims!r} does not have the structure of what it is for")


def _each(dims, tree, function):
    if isinstance(tree, dict):
        return {k: _each(dims[k] if isinstance(dims, dict) else dims, v, function) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        several = dims if isinstance(dims, list) else [dims] * len(tree)
        made = [_each(d, v, function) for d, v in zip(several, tree, strict=True)]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return function(dims, tree)


def _joined(dims, results):
    first = results[0]
    if isinstance(first, dict):
        return {k: _joined(dims[k] if isinstance(dims, dict) else dims, [r[k] for r in results]) for k in first}
    if isinstance(first, (list, tuple)):
        several = dims if isinstance(dims, list) else [dims] * len(first)
        made = [_joined(d, list(one)) for d, one in zip(several, zip(*results, strict=True), strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    if dims is None:
        return first
    if not isinstance(first, _C.Tensor):
        raise ValueError(f"vmap: the function must return tensors, not {type(first).__name__}")
    return _C.find_op("stack")(results, dims)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function of stacked arguments: func of each slice along ``in_dims``, the results stacked along ``out_dims``.

    ``randomness``: "different", each slice draws numbers of its own; "same", all draw the same; "error", none may draw.
    ``chunk_size`` changes nothing.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"vmap: randomness is {randomness!r}, 'error', 'different' or 'same' is wanted")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        dims = _spread(list(in_dims) if isinstance(in_dims, tuple) else in_dims, args, "in_dims")
        sizes = set()

        def measure(d, leaf):
            if d is not None and isinstance(leaf, _C.Tensor):
                if not -leaf.dim() <= d < leaf.dim():
                    raise ValueError(f"vmap: dimension {d} of a tensor of {leaf.dim()} dimensions")
                sizes.add(leaf.shape[d])
            elif d is not None and isinstance(in_dims, tuple):
                raise ValueError(f"vmap: in_dims has {d} for {type(leaf).__name__}, which has no dimensions; use None")

        _each(dims, args, measure)
        _each(0, kwargs, measure)
        if len(sizes) != 1:
            raise ValueError(f"vmap: the mapped dimensions have sizes {sorted(sizes)}, one size is wanted")

        def run(i):
            def slice_of(d, leaf):
                return leaf.select(d, i) if d is not None and isinstance(leaf, _C.Tensor) else leaf

            return func(*_each(dims, args, slice_of), **_each(0, kwargs, slice_of))

        if not (count := sizes.pop()):
            raise ValueError("vmap: the mapped dimension is empty")
        draws, first = random._default(), random._default()._get()
        results = []
        for i in range(count):
            if randomness == "same":
                draws._set(*first)
            results.append(run(i))
            if randomness == "error" and draws._get() != first:
                raise RuntimeError("vmap: the function draws random numbers: say randomness='same' or 'different'")
        return _joined(
            _spread(list(out_dims) if isinstance(out_dims, tuple) else out_dims, results[0], "out_dims"), results
        )

    return mapped


def stack_module_state(models):
    """(parameters, buffers): dictionaries of the stacked parameters and buffers of models of one kind."""
    if not models:
        raise RuntimeError("stack_module_state: expected at least one model, got 0")
    if len({type(m) for m in models}) != 1:
        raise RuntimeError("stack_module_state: expected all models to be of the same class")
    stack = _C.find_op("stack")

    def stacked(named):
        all_of_them = [dict(n) for n in named]
        return {
            k: stack([n[k].detach() for n in all_of_them]).requires_grad_(v.requires_grad)
            for k, v in all_of_them[0].items()
        }

    return stacked(m.named_parameters() for m in models), stacked(m.named_buffers() for m in models)

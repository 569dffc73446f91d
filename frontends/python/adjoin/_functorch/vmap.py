"""adjoin._functorch.vmap: the steps of vmap, for libraries that call them or put their own in their place.

A library whose containers add and remove the dimension themselves replaces ``_process_batched_inputs``,
``_create_batched_inputs`` and ``_unwrap_batched`` here; ``vmap`` then goes through these steps.
"""

import contextlib
import functools

from .. import _C, _vmap
from .._C import Tensor  # noqa: F401
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .levels import _add_batch_dim, _remove_batch_dim


def _get_name(func):
    """A function's name, for messages."""
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    """A result outside of a level, the samples along a dimension; without one, what all samples share."""
    if not isinstance(batched_output, _C.Tensor):
        if out_dim is not None:
            raise ValueError(
                f"vmap({name}, ...): the function must return tensors, not {type(batched_output).__name__}"
            )
        return batched_output
    if out_dim is None:
        if _C.transform_batched_at(batched_output, vmap_level):
            raise ValueError(f"vmap({name}, ...): out_dims has None for a result that differs between the samples")
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _validate_and_get_batch_size(flat_in_dims, flat_args):
    """The one size of all mapped dimensions."""
    sizes = {arg.size(dim) for dim, arg in zip(flat_in_dims, flat_args, strict=True) if dim is not None}
    if len(sizes) != 1:
        raise ValueError(f"vmap: the mapped dimensions have sizes {sorted(sizes)}, one size is wanted")
    return sizes.pop()


def _process_batched_inputs(in_dims, args, func):
    """(how many samples, the dimension of each leaf, the leaves, their structure)"""
    flat_args, spec = tree_flatten(args)
    flat_in_dims = _broadcast_to_and_flatten(in_dims, spec)
    if flat_in_dims is None:
        raise ValueError(f"vmap({_get_name(func)}): in_dims {in_dims!r} does not have the structure of the arguments")
    flat_in_dims = [d % a.dim() if d is not None and d < 0 else d for d, a in zip(flat_in_dims, flat_args, strict=True)]
    return _validate_and_get_batch_size(flat_in_dims, flat_args), flat_in_dims, flat_args, spec


def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """The arguments inside of a level."""
    inside = [
        arg if dim is None else _add_batch_dim(arg, dim, vmap_level)
        for dim, arg in zip(flat_in_dims, flat_args, strict=True)
    ]
    return tree_unflatten(inside, args_spec)


def _unwrap_batched(batched_outputs, out_dims, vmap_level, batch_size, func):
    """The results outside of a level."""
    flat, spec = tree_flatten(batched_outputs)
    flat_out_dims = _broadcast_to_and_flatten(out_dims, spec)
    if flat_out_dims is None:
        raise ValueError(
            f"vmap({_get_name(func)}, ...): out_dims {out_dims!r} does not have the structure of the results"
        )
    name = _get_name(func)
    outside = [
        _maybe_remove_batch_dim(name, out, vmap_level, batch_size, dim)
        for out, dim in zip(flat, flat_out_dims, strict=True)
    ]
    return tree_unflatten(outside, spec)


@contextlib.contextmanager
def vmap_increment_nesting(batch_size, randomness):
    """Inside, a level of so many samples is open: its number."""
    level = _vmap.enter(batch_size, randomness)
    try:
        yield level
    finally:
        _vmap.leave()


def _flat_vmap(func, batch_size, flat_in_dims, flat_args, args_spec, out_dims, randomness, **kwargs):
    with vmap_increment_nesting(batch_size, randomness) as level:
        inside = _create_batched_inputs(flat_in_dims, flat_args, level, args_spec)
        return _unwrap_batched(func(*inside, **kwargs), out_dims, level, batch_size, func)


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    """Calls a function once over all samples, by the steps that stand here now."""
    if chunk_size is not None:
        raise NotImplementedError(
            "vmap: chunk_size beside steps that a library has put in _functorch.vmap; leave it out"
        )
    found = _process_batched_inputs(in_dims, args, func)
    return _flat_vmap(func, *found, out_dims, randomness, **kwargs)


_OWN = {step: globals()[step] for step in ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched")}


def is_replaced():
    """Has a library put steps of its own here?"""
    return any(globals()[step] is not own for step, own in _OWN.items())


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in so many parts, which takes less memory; vmap's ``chunk_size`` says how many samples a part has."""
    if chunks < 1:
        raise ValueError(f"chunk_vmap: chunks is {chunks}, at least one is wanted")

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        size = _process_batched_inputs(in_dims, args, func)[0]
        return _vmap.vmap(func, in_dims, out_dims, randomness, chunk_size=max(1, -(-size // chunks)))(*args, **kwargs)

    return mapped

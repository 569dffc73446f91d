"""adjoin.distributed.tensor.experimental._func_map: functions of parts, called with DTensors."""

import functools

import adjoin

from ....utils import _pytree as pytree
from .._api import DTensor
from .._utils import normal


def local_map(func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, *,
              redistribute_inputs=False, spmd_types=False):  # fmt: skip
    """A function that takes and gives DTensors, of one that takes and gives this process's parts.

    ``out_placements``: how the results lie; a tuple of them for several results, None for one that is no tensor. ``in_placements``:
    how the arguments must lie, or are brought to lie with ``redistribute_inputs``. Without a DTensor among the arguments, results
    are given as they are.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
            device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        flat, form = pytree.tree_flatten(args)
        for what, given in (("in_placements", in_placements), ("in_grad_placements", in_grad_placements)):
            if given is not None and len(given) != len(flat):
                raise AssertionError(f"local_map: {what} has {len(given)} places for {len(flat)} arguments")
        mesh, parts, any_part = device_mesh, [], False
        for i, value in enumerate(flat):
            if not isinstance(value, DTensor):
                parts.append(value)
                continue
            mesh, any_part = mesh or value.device_mesh, True
            value = _placed(value, i, mesh, in_placements, redistribute_inputs)
            grads = in_grad_placements[i] if in_grad_placements is not None else None
            parts.append(value.to_local(grad_placements=grads))
        result = func(*pytree.tree_unflatten(parts, form), **kwargs)
        return _joined(result, out_placements, mesh) if any_part else result

    return mapped


def _placed(value, i, mesh, in_placements, redistribute_inputs):
    if in_placements is None:
        return value
    wanted = in_placements[i]
    if wanted is None:
        raise AssertionError(
            f"local_map: argument {i} is a DTensor, which expects placements; in_placements[{i}] is None"
        )
    wanted = normal(wanted, value.dim(), mesh, "local_map")
    if wanted == tuple(value.placements):
        return value
    if not redistribute_inputs:
        raise ValueError(
            f"local_map: argument {i} lies as {tuple(value.placements)}, wanted is {wanted}; redistribute it, or set redistribute_inputs=True"
        )
    return value.redistribute(mesh, wanted)


def _joined(result, placements, mesh):
    flat, form = pytree.tree_flatten(result)
    several = isinstance(placements, tuple) and len(flat) > 1
    wanted = list(placements) if several else [placements] * len(flat)
    if len(wanted) != len(flat):
        raise AssertionError(f"local_map: out_placements has {len(wanted)} places for {len(flat)} results")
    made = []
    for value, places in zip(flat, wanted, strict=True):
        if isinstance(value, adjoin.Tensor) and not isinstance(value, DTensor):
            if places is None:
                raise AssertionError("local_map: a result is a tensor, and out_placements has None for it")
            value = DTensor.from_local(value, mesh, places)
        elif places is not None:
            raise AssertionError(
                f"local_map: a result is {type(value).__name__}, and out_placements has {places} for it"
            )
        made.append(value)
    return pytree.tree_unflatten(made, form)


__all__ = ["local_map"]

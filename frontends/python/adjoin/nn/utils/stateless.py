"""adjoin.nn.utils.stateless: a module called with other tensors in the places of its own; adjoin.func.functional_call stands on it."""

import contextlib
import warnings

import adjoin

from ._named_member_accessor import NamedMemberAccessor, _missing, swap_tensor

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):  # fmt: skip
    """``adjoin.func.functional_call`` under its older name."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0: `torch.nn.utils.stateless.functional_call` is "
        "`torch.func.functional_call` now",
        FutureWarning,
        stacklevel=2,
    )
    return adjoin.func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    if isinstance(module, adjoin.jit.ScriptModule):
        raise RuntimeError(
            "The stateless API can't be used with Jitted modules: call the module that was scripted or traced"
        )
    if isinstance(module, adjoin.nn.DataParallel):
        raise RuntimeError(
            "The stateless API can't be used with nn.DataParallel module: call its `module`, or use DistributedDataParallel"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **kwargs or {})


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Inside, the tensors of a dictionary by dotted name stand in the module's places, and a name that the module lacks is an
    attribute. What the module puts into a place meanwhile is found in the dictionary afterwards."""
    accessor, chosen = NamedMemberAccessor(module), dict(parameters_and_buffers)
    if tie_weights or strict:
        own = dict(accessor.named_tensors(remove_duplicate=False))
        if tie_weights:
            chosen = _tied(own, chosen)
        if strict:
            _check_names(module, own, chosen)
    homes = {name: accessor.home(name) for name in chosen}
    with contextlib.ExitStack() as undo:
        for name, tensor in chosen.items():
            before = swap_tensor(*homes[name], tensor, allow_missing=True)
            undo.callback(swap_tensor, *homes[name], before, allow_missing=True)
        try:
            yield
        finally:
            now = {name: getattr(*homes[name], _missing) for name in parameters_and_buffers}
            parameters_and_buffers.update({name: tensor for name, tensor in now.items() if tensor is not _missing})


def _tied(own, given):
    """``given`` with every other name of the same tensors."""
    names = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    chosen = dict(given)
    for group in names.values():
        known = [name for name in group if name in given]
        if len({id(given[name]) for name in known}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(known)}, which are tied. "
                "Consider using tie_weights=False"
            )
        for name in group if known else ():
            chosen.setdefault(name, given[known[0]])
    return chosen


def _check_names(module, own, given):
    unknown, missing = sorted(given.keys() - own.keys()), sorted(own.keys() - given.keys())
    parts = [f"Unexpected key(s): {', '.join(map(repr, unknown))}."] if unknown else []
    parts += [f"Missing key(s): {', '.join(map(repr, missing))}."] if missing else []
    if parts:
        raise RuntimeError("\n\t".join([f"Error(s) in reparametrizing for {module._get_name()}:", *parts]))

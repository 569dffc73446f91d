"""adjoin.nn.utils.stateless: a module called with other tensors in the places of its own; adjoin.func.functional_call stands on it."""

import contextlib
import warnings

import adjoin

__all__ = ["functional_call"]

_MISSING = object()


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
    chosen = dict(parameters_and_buffers)
    if tie_weights or strict:
        own = _own(module)
        if tie_weights:
            chosen = _tied(own, chosen)
        if strict:
            _check_names(module, own, chosen)
    for tensor in chosen.values():
        if tensor is not None and not isinstance(tensor, adjoin.Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    places = {name: _place(module, name) for name in chosen}
    with contextlib.ExitStack() as undo:
        for name, tensor in chosen.items():
            owner, key, before = places[name]
            undo.callback(_put, owner, key, before)
            _put(owner, key, tensor)
        try:
            yield
        finally:
            now = {name: _get(owner, key) for name, (owner, key, _) in places.items()}
            parameters_and_buffers.update(
                {name: now[name] for name in parameters_and_buffers if now[name] is not _MISSING}
            )


def _own(module):
    """{full name: tensor} of all parameters and buffers."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for tensors in (part._parameters, part._buffers):
            for key, tensor in tensors.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = tensor
    return found


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


def _place(module, name):
    """(owner, key, what is there): a dictionary of the module's, or the module for a plain attribute."""
    *path, key = name.split(".")
    for part in path:
        inner = getattr(module, part, _MISSING)
        if inner is _MISSING:
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        if not isinstance(inner, adjoin.nn.Module):
            raise TypeError(f"submodule `{part}`: {inner} is not an instance of torch.nn.Module")
        module = inner
    for tensors in (module._parameters, module._buffers):
        if key in tensors:
            return tensors, key, tensors[key]
    before = getattr(module, key, _MISSING)
    if before is not _MISSING and not isinstance(before, adjoin.Tensor):
        raise TypeError(f"attribute `{key}`: {before} is not an instance of torch.Tensor")
    return module, key, before


def _get(owner, key):
    return owner.get(key, _MISSING) if isinstance(owner, dict) else getattr(owner, key, _MISSING)


def _put(owner, key, tensor):
    if isinstance(owner, dict):
        owner[key] = tensor
    elif tensor is not _MISSING:
        setattr(owner, key, tensor)
    elif hasattr(owner, key):
        delattr(owner, key)

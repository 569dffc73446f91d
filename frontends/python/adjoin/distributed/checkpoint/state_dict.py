"""adjoin.distributed.checkpoint.state_dict: states of models and optimizers by the parameters' names, however the model is wrapped.

Names do not tell of DistributedDataParallel and its kin, and an optimizer's state has names in place of numbers: so what one wrapping
saves another loads.
"""

import contextlib
import dataclasses

import adjoin

from ... import distributed as dist
from ...nn.parallel import DataParallel, DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPED = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")


@dataclasses.dataclass
class StateDictOptions:
    """``full_state_dict``: tensors whole, not in parts. ``cpu_offload``: on the processor; with the former, in process 0 alone.
    ``ignore_frozen_params``: without parameters that are not trained. ``broadcast_from_rank0``: set_... take the state of process 0.
    ``flatten_optimizer_state_dict``: one level of names.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _shown(model, key):
    """A name without what wraps."""
    shown, now = [], model
    for part in key.split("."):
        wraps = part == "module" and isinstance(now, (DistributedDataParallel, DataParallel)) or part in _WRAPPED
        if not wraps:
            shown.append(part)
        now = getattr(now, part, None)
    return ".".join(shown)


def _is_first():
    return not dist.is_initialized() or dist.get_rank() == 0


def _brought(state, options):
    """The tensors of a nested state as the options want them."""

    def brought(value):
        if isinstance(value, dict):
            return {key: brought(v) for key, v in value.items()}
        if isinstance(value, list):
            return [brought(v) for v in value]
        if not isinstance(value, adjoin.Tensor):
            return value
        value = value.detach()
        if options.full_state_dict and hasattr(value, "full_tensor"):
            value = value.full_tensor()  # all processes take part
        return value.to("cpu") if options.cpu_offload else value

    made = brought(state)
    return {} if options.full_state_dict and options.cpu_offload and not _is_first() else made


def get_model_state_dict(model, *, submodules=None, options=None):
    """The model's state by plain names."""
    options = options or StateDictOptions()
    state = {_shown(model, key): value for key, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for key, p in model.named_parameters():
            if not p.requires_grad:
                state.pop(_shown(model, key), None)
    if submodules is not None:
        prefixes = [f"{_shown(model, name)}." for name, m in model.named_modules() if m in submodules]
        state = {
            (key if options.keep_submodule_prefixes else key.removeprefix(prefix)): value
            for key, value in state.items()
            for prefix in prefixes
            if key.startswith(prefix)
        }
    return _brought(state, options)


def _from_first(state, options):
    """The state of process 0, if that was asked for."""
    if not options.broadcast_from_rank0 or not dist.is_initialized() or dist.get_world_size() == 1:
        return state
    if not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    held = [state if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(held, 0)
    return held[0]


def _as(value, like):
    """A whole tensor in parts, as another one is."""
    if not isinstance(value, adjoin.Tensor) or not hasattr(like, "full_tensor") or hasattr(value, "full_tensor"):
        return value
    from ..tensor import distribute_tensor

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Takes a state by plain names; the names that are missing, and those that are unknown."""
    options = options or StateDictOptions()
    given = _from_first(model_state_dict, options)
    if given and isinstance(next(iter(given)), adjoin.nn.Module):  # {submodule: its state}
        prefixes = {m: f"{_shown(model, name)}." if name else "" for name, m in model.named_modules()}
        given = {prefixes[m] + key: value for m, state in given.items() for key, value in state.items()}
    own = model.state_dict()
    names = {_shown(model, key): key for key in own}
    state = {names.get(key, key): _as(value, own.get(names.get(key))) for key, value in given.items()}
    return model.load_state_dict(state, strict=options.strict)


def _optimizers(optimizers):
    return (optimizers,) if isinstance(optimizers, adjoin.optim.Optimizer) else tuple(optimizers)


def _names_of(model):
    return {id(p): _shown(model, key) for key, p in model.named_parameters(remove_duplicate=False)}


@contextlib.contextmanager
def _without_effect(optimizer):
    """A step that makes the state and changes no parameter: its gradients and its rate are 0."""
    rates = [g.get("lr") for g in optimizer.param_groups]
    for g in optimizer.param_groups:
        for p in g["params"]:
            if p.requires_grad:
                p.grad = adjoin.zeros_like(p)
        if "lr" in g:
            g["lr"] = adjoin.tensor(0.0) if isinstance(g["lr"], adjoin.Tensor) else 0.0
    yield
    for g, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            g["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _begun(optimizer):
    """An optimizer that has its state, to be saved or to be filled."""
    params = [p for g in optimizer.param_groups for p in g["params"]]
    if not optimizer.state and all(p.grad is None for p in params):
        with _without_effect(optimizer):
            optimizer.step()


def _named_state(model, optimizer):
    """The optimizer's state with the parameters' names in place of their numbers."""
    _begun(optimizer)
    known, state = _names_of(model), optimizer.state_dict()
    params = [p for g in optimizer.param_groups for p in g["params"]]
    strangers = sum(id(p) not in known for p in params)
    if strangers:
        raise RuntimeError(f"get_optimizer_state_dict: {strangers} of the optimizer's parameters are not the model's")
    numbers = [n for g in state["param_groups"] for n in g["params"]]
    name = {n: known[id(p)] for n, p in zip(numbers, params, strict=True)}
    return {
        "state": {name[n]: held for n, held in state["state"].items()},
        "param_groups": [{**g, "params": [name[n] for n in g["params"]]} for g in state["param_groups"]],
    }


def _flat(state):
    """One level: "state.NAME.exp_avg", "param_groups.NAME.lr"."""
    found = {}

    def visit(prefix, value):
        if isinstance(value, dict):
            for key, v in value.items():
                visit(f"{prefix}.{key}", v)
        else:
            found[prefix] = value

    visit("state", state["state"])
    for g in state["param_groups"]:
        for name in g["params"]:
            found.update({f"param_groups.{name}.{key}": value for key, value in g.items() if key != "params"})
    return found


def _nested(flat, own):
    """The levels again, which the optimizer's own state has."""

    def filled(prefix, value):
        if isinstance(value, dict):
            return {key: filled(f"{prefix}.{key}", v) for key, v in value.items()}
        return flat.get(prefix, value)

    groups = []
    for g in own["param_groups"]:
        first = g["params"][0] if g["params"] else None
        groups.append({k: v if k == "params" else flat.get(f"param_groups.{first}.{k}", v) for k, v in g.items()})
    return {"state": filled("state", own["state"]), "param_groups": groups}


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The optimizers' state by the parameters' names."""
    options, joined = options or StateDictOptions(), {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        state = _named_state(model, optimizer)
        joined["state"].update(state["state"])
        joined["param_groups"] += state["param_groups"]
    if submodules is not None:
        inside = tuple(f"{_shown(model, name)}." for name, m in model.named_modules() if m in submodules)
        joined["state"] = {key: v for key, v in joined["state"].items() if key.startswith(inside)}
        joined["param_groups"] = [
            {**g, "params": [n for n in g["params"] if n.startswith(inside)]} for g in joined["param_groups"]
        ]
    return _brought(_flat(joined) if options.flatten_optimizer_state_dict else joined, options)


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Takes a state by the parameters' names."""
    options = options or StateDictOptions()
    given = _from_first(optim_state_dict, options)
    for optimizer in _optimizers(optimizers):
        own = _named_state(model, optimizer)
        held = given if "state" in given and "param_groups" in given else _nested(given, own)
        optimizer.load_state_dict(_numbered(held, own, optimizer))


def _numbered(given, own, optimizer):
    number, state, groups = 0, {}, []
    of_name = {name: g for g in given["param_groups"] for name in g["params"]}
    for g in own["param_groups"]:
        numbers = []
        for name in g["params"]:
            if name not in given["state"] and name in own["state"]:
                raise RuntimeError(f"set_optimizer_state_dict: the state has nothing of {name!r}")
            held = given["state"].get(name)
            if held is not None:
                mine = own["state"].get(name, {})
                state[number] = {key: _as(v, mine.get(key)) for key, v in held.items()}
            numbers.append(number)
            number += 1
        source = next((of_name[name] for name in g["params"] if name in of_name), g)
        groups.append({**g, **{k: v for k, v in source.items() if k != "params"}, "params": numbers})
    return {"state": state, "param_groups": groups}


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """(the model's state, the optimizers' state)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Takes both; what set_model_state_dict gives."""
    incompatible = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return incompatible

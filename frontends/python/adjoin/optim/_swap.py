"""adjoin.optim._swap: an optimizer that steps other tensors for a while."""

import contextlib
from collections import defaultdict


def _refuse(what):
    raise RuntimeError(f"swap_in_optimizer_params_and_state: {what}")


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Within, the optimizer has other parameters, and the state and settings of a state dict; afterwards its own again.

    ``swapin_parameters``: tensors by name, in the order of the optimizer's. ``swapin_optim_state``: as ``optimizer.state_dict()``;
    tensors in it are written in place, other changes stay within.
    """
    if not optimizer.state:
        _refuse("the optimizer has no state yet; make a step first")
    if not isinstance(swapin_optim_state, dict):
        _refuse(f"a state dict is wanted, not a {type(swapin_optim_state).__name__}")
    state, groups = swapin_optim_state.get("state"), swapin_optim_state.get("param_groups")
    if not isinstance(state, dict) or not isinstance(groups, list):
        _refuse("the state dict must have 'state', a dict, and 'param_groups', a list")
    if len(groups) != len(optimizer.param_groups):
        _refuse(f"the state dict has {len(groups)} groups and the optimizer {len(optimizer.param_groups)}")
    for number, (ours, theirs) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        if ours.keys() != theirs.keys():
            _refuse(f"the settings of group {number} differ: {sorted(ours.keys() ^ theirs.keys())} are in one alone")
        if len(ours["params"]) != len(theirs["params"]):
            _refuse(
                f"group {number} has {len(theirs['params'])} parameters in the state dict and {len(ours['params'])} in the optimizer"
            )
    numbers = [number for group in groups for number in group["params"]]
    tensors = list(swapin_parameters.values())
    if len(tensors) != len(numbers):
        _refuse(f"there are {len(tensors)} parameters and the groups have {len(numbers)}")
    strange = sorted(set(state) - set(numbers), key=str)
    if strange:
        _refuse(f"the state has entries of no parameter: {strange}")
    kept, before = optimizer.state, [dict(group) for group in optimizer.param_groups]
    given = iter(tensors)
    try:
        for ours, theirs in zip(optimizer.param_groups, groups, strict=True):
            ours.update(theirs, params=[next(given) for _ in theirs["params"]])
        optimizer.state = defaultdict(dict)
        for number, tensor in zip(numbers, tensors, strict=True):
            optimizer.state[tensor] = dict(state.get(number, {}))
        yield
    finally:
        for group, snapshot in zip(optimizer.param_groups, before, strict=True):
            group.clear()
            group.update(snapshot)
        optimizer.state = kept

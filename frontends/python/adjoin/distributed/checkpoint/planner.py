"""adjoin.distributed.checkpoint.planner: options of saves and loads; the plan itself is made by the package."""


class SavePlanner:
    """What DefaultSavePlanner is made of."""


class LoadPlanner:
    """What DefaultLoadPlanner is made of."""


class DefaultSavePlanner(SavePlanner):
    """Each process saves its own parts; what several have, one of them saves."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None,
                 dedup_save_to_lowest_rank=False, enable_plan_caching=False):  # fmt: skip
        if not flatten_state_dict:
            raise NotImplementedError("DefaultSavePlanner: flatten_state_dict=False is not served; leave it out")
        self.to_lowest = dedup_save_to_lowest_rank


class DefaultLoadPlanner(LoadPlanner):
    """``allow_partial_load``: what the checkpoint does not have stays as it is."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        if not flatten_state_dict:
            raise NotImplementedError("DefaultLoadPlanner: flatten_state_dict=False is not served; leave it out")
        self.allow_partial_load = allow_partial_load


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state of what the checkpoint has; ``keys`` choose some by the beginnings of their names."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def wants(self, name):
        """Whether a name is, or lies under, one of the keys."""
        return self.keys is None or any(name == k or name.startswith(f"{k}.") for k in self.keys)


def plain(planner, kind):
    """The planner; one whose methods somebody else has written is refused."""
    planner = kind() if planner is None else planner
    if type(planner) not in (DefaultSavePlanner, DefaultLoadPlanner, _EmptyStateDictLoadPlanner):
        raise NotImplementedError(
            f"checkpoint: the planner {type(planner).__name__} is not served; use {kind.__name__}(...)"
        )
    return planner

"""adjoin.utils.trainer.processes: what a Trainer asks the others where several processes train together; one alone asks nobody."""

import sys

import adjoin


def _distributed():
    """The module, where a group of several processes is there."""
    module = sys.modules.get("adjoin.distributed")  # who has no group has not loaded it
    return module if module is not None and module.is_initialized() and module.get_world_size() > 1 else None


def place():
    """(rank, how many there are)."""
    module = _distributed()
    return (0, 1) if module is None else (module.get_rank(), module.get_world_size())


def total(*values):
    """The sums of the numbers over all processes, in one message."""
    module = _distributed()
    if module is None:
        return values
    sums = adjoin.tensor(values, dtype=adjoin.float64)
    module.all_reduce(sums)
    return tuple(sums.tolist())


def gathered(mine):
    """[what each process gives], in the order of ranks."""
    module = _distributed()
    if module is None:
        return [mine]
    every = [None] * module.get_world_size()
    module.all_gather_object(every, mine)
    return every


def of_first(ask):
    """What rank 0 finds."""
    module = _distributed()
    if module is None:
        return ask()
    found = [ask() if module.get_rank() == 0 else None]
    module.broadcast_object_list(found, 0)
    return found[0]


def bare(model):
    """The model whose names a file has: that of one process."""
    parallel = sys.modules.get("adjoin.nn.parallel.distributed")
    return model.module if parallel is not None and isinstance(model, parallel.DistributedDataParallel) else model

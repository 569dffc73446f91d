"""adjoin.utils.data.graph_settings: what is said to all pipes that a pipe is made of."""

import inspect

import adjoin

from .datapipes._order import SHARDING_PRIORITIES
from .graph import traverse_dps

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
]  # fmt: skip


def get_all_graph_pipes(graph):
    """The pipes of what traverse_dps() gives, each once."""
    found = {}

    def gather(below):
        for number, (pipe, deeper) in below.items():
            found.setdefault(number, pipe)
            gather(deeper)

    gather(graph)
    return list(found.values())


def _sharded(pipe):
    return hasattr(type(pipe), "apply_sharding") and inspect.isfunction(type(pipe).apply_sharding)


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Says to the pipes that divide the data which reader of how many this is; one above another may not divide, too."""

    def walk(graph, above):
        for pipe, below in graph.values():
            here = above
            if _sharded(pipe):
                if above is not None:
                    raise RuntimeError(
                        f"Sharding twice on a single pipeline is likely unintended and will cause data loss: {pipe} stands below {above}"
                    )
                if len(inspect.signature(pipe.apply_sharding).parameters) > 2:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id)
                here = pipe
            walk(below, here)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _is_shuffler(pipe):
    return all(callable(getattr(type(pipe), name, None)) for name in ("set_shuffle", "set_seed"))


def apply_shuffle_settings(datapipe, shuffle=None):
    """Turns the pipes that shuffle on or off; None leaves them. With True and none of them one is put on top, with a warning."""
    if shuffle is None:
        return datapipe
    found = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffler(pipe)]
    if shuffle and not found:
        import warnings

        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default "
            "buffer size might not be sufficient for your task.", stacklevel=2,
        )  # fmt: skip
        datapipe = datapipe.shuffle()
        found = [datapipe]
    for pipe in found:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Gives each pipe that draws a seed from the generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(type(pipe), "set_seed", None)):
            pipe.set_seed(int(adjoin.empty((), dtype=adjoin.int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The older name."""
    return apply_random_seed(datapipe, rng)

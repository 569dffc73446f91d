"""adjoin.utils.data.datapipes.utils.snapshot: a pipe goes on where another, or it itself in another process, had stopped."""

from ...graph_settings import apply_random_seed
from ..datapipe import _SnapshotState

__all__ = []


def _simple_graph_snapshot_restoration(datapipe, n_iterations, rng=None):
    """Reads ``n_iterations`` examples and drops them, so that the next iterator of the pipe gives what comes after them.

    Pipes that draw get their seeds from the generator ``rng``: the one that gave them before.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not been "
            "restored; read the pipe first, or make it anew"
        )
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for done in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available, {done}"
            ) from None
    datapipe._fast_forward_iterator, datapipe._snapshot_state = iterator, _SnapshotState.Restored

"""adjoin.distributed.tensor.debug: how many collectives calls with DTensors have made."""

from .. import _move


class CommDebugMode:
    """``with CommDebugMode() as comm:``; then ``comm.get_comm_counts()``: {collective: how many}, ``comm.get_total_counts()``."""

    def __init__(self):
        self.comm_counts = {}

    def _count(self, name):
        self.comm_counts[name] = self.comm_counts.get(name, 0) + 1

    def __enter__(self):
        self.comm_counts = {}
        _move.watchers.append(self._count)
        return self

    def __exit__(self, *exc):
        _move.watchers.remove(self._count)

    def get_comm_counts(self):
        """How many of each."""
        return dict(self.comm_counts)

    def get_total_counts(self):
        """How many in all."""
        return sum(self.comm_counts.values())

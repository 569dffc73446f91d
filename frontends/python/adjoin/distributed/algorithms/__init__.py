"""adjoin.distributed.algorithms: ways to train in several processes."""

from .join import Join, Joinable, JoinHook  # noqa: F401

"""adjoin.distributed.elastic.multiprocessing: how a launched process tells what went wrong."""

from . import errors  # noqa: F401

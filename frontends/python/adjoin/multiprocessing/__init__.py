"""adjoin.multiprocessing: Python's multiprocessing, in which tensors are shared instead of copied.

What is sent through a queue or pipe or given to a process arrives on the same memory: a write on
one side is seen on the other. The sender's tensor moves to shared memory for that, as with
``share_memory_()``; if views of it exist here, which would stay behind, a copy is sent instead, so share
first what is to be written from both sides. A pickled tensor may be loaded once; keep the sender alive
until it has arrived.
"""

import multiprocessing
import threading
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context, util  # noqa: F401

from .. import _shared
from . import reductions
from .spawn import (  # noqa: F401
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

reductions.register()
_shared.wait_at_end()
util.register_after_fork(reductions, lambda _: _shared.wait_at_end())

# PyTorch's names. Here both mean memory without a name in few large pieces, reached through a descriptor of the process
# that sends it: as many descriptors as with "file_system" (few), and nothing to clean up, as with "file_descriptor".
_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"

__all__ = [  # noqa: PLE0604
    *multiprocessing.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "init_reductions", "set_sharing_strategy",
    "spawn", "start_processes",
]  # fmt: skip


def _thread_name_file(mode):
    return open(f"/proc/self/task/{threading.get_native_id()}/comm", mode)


def _set_thread_name(name):
    """The name of this thread as `ps` and `top` show it, up to 15 bytes."""
    with _thread_name_file("w") as file:
        file.write(name)


def _get_thread_name():
    """The name that `ps` and `top` show."""
    with _thread_name_file("r") as file:
        return file.read().rstrip("\n")


def init_reductions():
    """Teaches Python's multiprocessing to share tensors; importing this module has done it."""
    reductions.register()


def set_sharing_strategy(new_strategy):
    """Takes PyTorch's names; both are served by one way."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ValueError(f"set_sharing_strategy: {new_strategy!r} is none of {sorted(_STRATEGIES)}")
    _strategy = new_strategy


def get_sharing_strategy():
    """The name that was set last."""
    return _strategy


def get_all_sharing_strategies():
    """The names that set_sharing_strategy takes."""
    return set(_STRATEGIES)

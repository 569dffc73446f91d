"""adjoin.distributed.elastic.multiprocessing.errors: a launched process leaves word of its error in a file that the launcher reads."""

import dataclasses
import functools
import json
import os
import time
import traceback

__all__ = ["ChildFailedError", "ProcessFailure", "record"]


@dataclasses.dataclass
class ProcessFailure:
    """How a process ended."""

    local_rank: int
    pid: int
    exitcode: int
    message: str


class ChildFailedError(Exception):
    """A process that was started did not end well. ``failures``: {rank: ProcessFailure}."""

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        rank, first = self.get_first_failure()
        super().__init__(f"{name} failed in the process of rank {rank} (pid {first.pid}): {first.message}")

    def get_first_failure(self):
        """(rank, failure)."""
        return next(iter(self.failures.items()))


def _tell(error, path):
    told = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))},
    }
    with open(path, "w") as file:
        json.dump({"message": told}, file)


def record(fn, error_handler=None):
    """A function around which errors are written to the file that ``TORCHELASTIC_ERROR_FILE`` names, then raised as ever.

    ``error_handler``: an object whose ``record_exception(error)`` is called instead; its ``initialize()`` before the function.
    """

    @functools.wraps(fn)
    def recorded(*args, **kwargs):
        if hasattr(error_handler, "initialize"):
            error_handler.initialize()
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            path = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if error_handler is not None:
                error_handler.record_exception(error)
            elif path:
                _tell(error, path)
            raise

    return recorded

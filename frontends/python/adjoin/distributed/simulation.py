"""adjoin.distributed.simulation: many processes as threads of this one, over the engine ``simulated``."""

import itertools
import sys
import threading

from . import _group, store
from ._names import DistBackendError, default_pg_timeout

_STACK = 1 << 20  # of a thread: 4,096 of them shall not want all addresses
_worlds = itertools.count()  # what an error still holds of a world that ended is not met again


def run(function, world_size, args=(), *, timeout=default_pg_timeout):
    """Calls ``function(rank, *args)`` in ``world_size`` threads, each a process of one world, which has its own default group.

    What they return, as a list. Where one of them raises, the others hear of it as processes do, and its error is raised here.
    The random generator and the grad mode's default are the process's: seed a generator of your own, or draw before.
    """
    if world_size < 1:
        raise ValueError(f"simulation.run: a world of {world_size}; there must be one process at least")
    server, port = store.serve("127.0.0.1", 0)
    name = f"simulation{next(_worlds)}"
    results, errors = [None] * world_size, []

    def process(rank):
        _group._thread.place = place = _group._Place()
        try:
            link = store.connect("127.0.0.1", port, timeout)
            place.world = _group._join("simulated", link, rank, world_size, name, timeout)
            results[rank] = function(rank, *args)
        except BaseException as error:
            errors.append(error)
            _group.tell_why(error, error.__traceback__)
        finally:
            _group.destroy_process_group()
            del _group._thread.place

    before, turn = threading.stack_size(_STACK), sys.getswitchinterval()
    try:
        # Each thread that waits for the interpreter wakes once a turn: thousands of them would do little else.
        sys.setswitchinterval(max(turn, world_size * turn / 16))
        threads = [threading.Thread(target=process, args=(rank,), daemon=True) for rank in range(world_size)]
        try:
            for thread in threads:
                thread.start()
        finally:
            threading.stack_size(before)
        for thread in threads:
            thread.join()
    finally:  # without the server who still waits gives up
        sys.setswitchinterval(turn)
        store.end(server)
    if errors:
        raise next((e for e in errors if not isinstance(e, DistBackendError)), errors[0])
    return results


__all__ = ["run"]

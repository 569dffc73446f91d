"""adjoin._lazy: a scope whose calls are written down and carried out later, together (libaj_graph)."""

import functools
import json
import linecache
import threading

from . import _C

NO_FUSION, CHECK, WHOLE, TIMED = 2, 4, 1, 32  # AJ_LAZY_... of abi/lazy.h
_here = threading.local()
_opened = False  # was there ever a scope?


def new_memory():
    """What scopes will have met."""
    global _opened
    _opened = True
    return _C.lazy_memory()


def _memory():
    """What this thread's scopes have met."""
    if not hasattr(_here, "memory"):
        _here.memory = new_memory()
    return _here.memory


def scope_is_open():
    """On this thread? Does not load libaj_graph if no scope ever was."""
    return _opened and _C.lazy_depth() > 0


class lazy:
    """``with adjoin.lazy():`` results of calls are computed when somebody asks for them, many calls at once.

    The bits are those of eager. Chains of element-wise calls run as one walk over memory. What was written down is carried
    out at the end of the scope, where a value is asked for (``item``, ``if``, ``print``, NumPy), before a tensor from outside
    is written, and where sizes depend on values (``nonzero``); ``lazy.explain()`` tells each time with its line. calls and
    nbytes: so many are written down at most. check: each call is also carried out alone, and the first that differs is an
    error. Also a decorator.
    """

    def __init__(self, *, fused=True, check=False, calls=0, nbytes=0):
        self.flags = (0 if fused else NO_FUSION) | (CHECK if check else 0)
        self.limits = calls, nbytes

    def __enter__(self):
        from .jit import is_tracing

        self.entered = not is_tracing()  # a trace writes down by itself
        if self.entered:
            _C.lazy_limits(*self.limits)
            _C.lazy_enter(_memory(), self.flags)
        return self

    def __exit__(self, kind, error, traceback):
        if not self.entered:
            return
        try:
            _C.lazy_leave()
        except Exception:
            if error is None:
                raise

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with lazy_like(self):
                return function(*args, **kwargs)

        return inside

    @staticmethod
    def flush():
        """Carries out what is written down."""
        _C.lazy_flush()

    @staticmethod
    def explain():
        """What was carried out in this thread's last scope, and why then: an Explanation, which prints."""
        return Explanation(_memory())

    @staticmethod
    def reset():
        """Forgets what this thread's scopes have met."""
        _C.lazy_forget(_memory())


def lazy_like(other):
    """A scope of the same kind, for a decorated function that calls itself."""
    made = lazy()
    made.flags, made.limits = other.flags, other.limits
    return made


class paused:
    """``with paused():`` calls are carried out at once, whatever scope is open."""

    def __enter__(self):
        _C.lazy_pause()

    def __exit__(self, *error):
        _C.lazy_resume()


def source_of(place):
    """The text of a line "file:12 in f"."""
    file, _, rest = place.rpartition(":")
    number = rest.split(" ", 1)[0]
    return linecache.getline(file, int(number)).strip() if number.isdigit() else ""


class Explanation:
    """Regions of a scope: where each begins, how many calls it has, what was fused, and why it ended where it did."""

    def __init__(self, memory):
        self.regions = json.loads(_C.lazy_report(memory))

    @property
    def breaks(self):
        """The regions that ended because a value or a size was needed."""
        return [r for r in self.regions if r["break"]]

    def __str__(self):
        told = []
        for i, r in enumerate(self.regions):
            peak = f", at most {r['peak'] / 1e3:.1f} kB of its values at once" if r["peak"] else ""
            fused = f", {r['groups']} fused groups of {r['fused']} calls" if r["groups"] else ""
            told.append(
                f"region {i}: {r['calls']} calls ({r['known']} known before) in {r['passes']} walks over tensors{fused}, "
                f"{r['nanoseconds'] / 1e3:.0f} µs{peak}"
            )
            if r["begun"]:
                told.append(f"    begins at {r['begun']}")
            op = f" ({r['op']})" if r["op"] else ""
            at = f" at {r['line']}: {source_of(r['line'])}" if r["line"] else ""
            told.append(f"    ended: {r['reason']}{op}{at}")
        return "\n".join(told) or "nothing was written down"

    __repr__ = __str__

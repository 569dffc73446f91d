"""adjoin.autograd.profiler: the profiler by its older name, and its switch."""

from .._profiler_events import (  # noqa: F401
    EnforceUnique,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    KinetoStepTracker,
    MemRecordsAcc,
)
from ..profiler import profile as _profile
from ..profiler import record_function  # noqa: F401


def __getattr__(name):
    if name in ("load_nvprof", "parse_nvprof_trace"):
        from . import _nvprof

        return getattr(_nvprof, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "load_nvprof", "parse_nvprof_trace"})


class profile(_profile):
    """adjoin.profiler.profile; with enabled=False nothing is counted."""

    def __init__(self, enabled=True, **options):
        super().__init__(**{k: v for k, v in options.items() if k in ("schedule", "on_trace_ready", "profile_memory")})
        self.enabled = enabled

    def start(self):
        """Begins, if enabled."""
        if self.enabled:
            super().start()

    @property
    def function_events(self):
        """Every event by itself, in the order in which they began."""
        return self.events()

    @property
    def self_cpu_time_total(self):
        """The time of all events, each counted once."""
        return self.events().self_cpu_time_total

    def table(self, sort_by=None, row_limit=100, **settings):
        """The events as text, a row each; ``key_averages().table()`` has a row for each op."""
        return self.events().table(sort_by=sort_by, row_limit=row_limit, **settings)

    def __str__(self):
        return self.table()

    def __repr__(self):
        return self.table()


class _Annotations:
    """What names ranges in another program's profile: for that, none is opened here."""

    def __init__(self, enabled=True, record_shapes=False):
        if enabled:
            raise NotImplementedError(
                f"{type(self).__name__}: ops are not told to other profilers; adjoin.profiler.profile() records them, and its "
                "export_chrome_trace(path) writes what chrome://tracing and ui.perfetto.dev show"
            )

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return False


class emit_nvtx(_Annotations):
    """Raises: NVTX is not written to; with ``enabled=False`` it does nothing, as programs with a switch need it."""


class emit_itt(_Annotations):
    """Raises: ITT is not written to; with ``enabled=False`` it does nothing, as programs with a switch need it."""

"""adjoin.autograd.profiler: the profiler by its older name, and its switch."""

from ..profiler import profile as _profile
from ..profiler import record_function  # noqa: F401


class profile(_profile):
    """adjoin.profiler.profile; with enabled=False nothing is counted."""

    def __init__(self, enabled=True, **options):
        super().__init__(**{k: v for k, v in options.items() if k in ("schedule", "on_trace_ready", "profile_memory")})
        self.enabled = enabled

    def start(self):
        """Begins, if enabled."""
        if self.enabled:
            super().start()

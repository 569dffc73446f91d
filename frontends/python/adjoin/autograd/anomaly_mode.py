"""adjoin.autograd.anomaly_mode: finding the forward line behind a failing backward."""

import warnings

from .. import _C


class detect_anomaly:
    """Inside, backward looks for NaN and shows the stack that recorded what failed."""

    def __init__(self, check_nan=True):
        warnings.warn(
            "Anomaly Detection has been enabled. It makes programs slower: leave it on only to look for an error.",
            stacklevel=2,
        )
        self._flags = 1 | (2 if check_nan else 0)

    def __enter__(self):
        self._old = _C.set_anomaly_mode(self._flags)

    def __exit__(self, *exc):
        _C.set_anomaly_mode(self._old)


def _mode():
    """The bits of the mode as they are: 1 keeps stacks, 2 looks for NaN."""
    flags = _C.set_anomaly_mode(0)
    _C.set_anomaly_mode(flags)
    return flags


def is_anomaly_enabled():
    """Whether backward keeps the stacks that recorded what could fail."""
    return bool(_mode() & 1)


def is_anomaly_check_nan_enabled():
    """Whether backward looks for NaN."""
    return bool(_mode() & 2)


class set_detect_anomaly:
    """Turns the search on or off, for good or for a with statement."""

    def __init__(self, mode, check_nan=True):
        self._old = _C.set_anomaly_mode((1 | (2 if check_nan else 0)) if mode else 0)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _C.set_anomaly_mode(self._old)

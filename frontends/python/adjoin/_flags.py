"""adjoin._flags: what programs ask of the build, and switches that change nothing or little here."""

from . import _C, backends

__all__ = [
    "get_deterministic_debug_mode", "is_warn_always_enabled", "kaiser_window", "set_anomaly_enabled",
    "set_deterministic_debug_mode", "set_flush_denormal", "set_warn_always",
]  # fmt: skip

_BUILD = {
    "has_lapack": lambda: bool(_C.find_op("linalg::svd")),
    "has_mkl": backends.mkl.is_available,
    "has_mkldnn": backends.mkldnn.is_available,
    "has_openmp": backends.openmp.is_available,
    "has_mps": backends.mps.is_available,
    "has_cuda": lambda: backends.cuda.is_built(),
}


def __getattr__(name):
    if name in _BUILD:
        return _BUILD[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_BUILD})


_MODES = ("default", "warn", "error")
_warn_always = False


def set_flush_denormal(mode):
    """False: numbers too small for full precision are kept; nothing here turns them to zero."""
    return False


def set_warn_always(b):
    """Keeps the word for who asks: each warning of ours is left to Python's filters, which show it once a line."""
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: b is {type(b).__name__}; True or False is wanted")
    _warn_always = b


def is_warn_always_enabled():
    """What set_warn_always() was told."""
    return _warn_always


def set_deterministic_debug_mode(debug_mode):
    """ "default" (0), "warn" (1) or "error" (2): each but the first turns use_deterministic_algorithms on."""
    from ._functions import use_deterministic_algorithms

    if debug_mode not in _MODES and debug_mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: {debug_mode!r} is none of default, warn, error, 0, 1, 2")
    number = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode():
    """0 if use_deterministic_algorithms is off, 1 if it was told ``warn_only``, else 2."""
    from ._functions import are_deterministic_algorithms_enabled, is_deterministic_algorithms_warn_only_enabled

    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def set_anomaly_enabled(mode, check_nan=True):
    """What ``autograd.set_detect_anomaly`` does when it is called."""
    from .autograd import set_detect_anomaly

    set_detect_anomaly(mode, check_nan)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None,
                  requires_grad=False):  # fmt: skip
    """The window of ``signal.windows.kaiser``, also in halves."""
    if layout not in (None, _C.strided):
        raise RuntimeError(f"kaiser_window: not implemented for sparse types: layout is {layout}; convert what is made")
    from .signal.windows import kaiser

    made_in = _C.float64 if dtype in (_C.float16, _C.bfloat16) else dtype
    made = kaiser(window_length, beta=beta, sym=not periodic, dtype=made_in, device=device)
    return made.to(dtype or made.dtype).requires_grad_(requires_grad)

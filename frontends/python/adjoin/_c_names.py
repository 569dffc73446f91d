"""adjoin._c_names: what libraries reach for in ``torch._C`` beside what is there."""

from . import _C
from ._dispatch_keys import DispatchKey as _Key
from ._dispatch_keys import DispatchKeySet as _Keys


def _log_api_usage_once(event):
    """Does nothing: no use is counted."""


def _get_tracing_state():
    """None: nothing is traced."""


def _is_tracing():
    """False: nothing is traced."""
    return False


def _get_cudnn_enabled():
    """Whether cuDNN may be used."""
    from . import backends

    return backends.cudnn.enabled


NAMES = {
    "DispatchKey": _Key,
    "DispatchKeySet": _Keys,
    "TensorBase": _C.Tensor,
    "_TensorBase": _C.Tensor,
    "_TensorMeta": type(_C.Tensor),
    "_get_cudnn_enabled": _get_cudnn_enabled,
    "_get_tracing_state": _get_tracing_state,
    "_is_tracing": _is_tracing,
    "_log_api_usage_once": _log_api_usage_once,
    # Functions of these subjects are there, whoever computes them.
    "has_lapack": True,
    "has_openmp": True,
    "has_spectral": True,
}

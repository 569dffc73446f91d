"""adjoin.nn.attention: the choice of a kernel for scaled_dot_product_attention, which here is the library's."""

import contextlib
import enum


class SDPBackend(enum.IntEnum):
    """Kernels as PyTorch names them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Checks the names and changes nothing: each device has one kernel, of bounded memory."""
    for backend in [backends] if isinstance(backends, SDPBackend) else backends:
        if not isinstance(backend, SDPBackend):
            raise TypeError(f"sdpa_kernel: {backend!r} is no SDPBackend")
    yield {}

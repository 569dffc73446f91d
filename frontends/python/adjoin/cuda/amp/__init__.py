"""adjoin.cuda.amp: older names for adjoin.amp with device "cuda"."""

import functools

from ... import amp as _amp
from ..._hints import getattr_of


class autocast(_amp.autocast):
    """adjoin.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):
    """adjoin.amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = functools.partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_amp.custom_bwd, device_type="cuda")


def amp_definitely_not_available():
    """Whether there is no CUDA device."""
    from .. import is_available

    return not is_available()


__getattr__ = getattr_of(__name__)

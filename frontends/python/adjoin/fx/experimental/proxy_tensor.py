"""adjoin.fx.experimental.proxy_tensor: Adjoin traces with proxies, not with tensors."""

import contextlib

__all__ = ["disable_proxy_modes_tracing", "get_proxy_mode", "make_fx", "maybe_disable_fake_tensor_mode"]


def make_fx(f, *args, **kwargs):
    """Raises: there is no trace below the ops."""
    raise NotImplementedError(
        f"make_fx({getattr(f, '__name__', f)}): Adjoin has no trace of its ops with tensors; "
        "adjoin.fx.symbolic_trace(f) makes a graph of what f calls"
    )


def get_proxy_mode():
    """None: no such trace runs."""
    return None


def disable_proxy_modes_tracing():
    """A block in which no such trace runs, as everywhere."""
    return contextlib.nullcontext()


def maybe_disable_fake_tensor_mode():
    """A block without fake tensors, as everywhere."""
    return contextlib.nullcontext()

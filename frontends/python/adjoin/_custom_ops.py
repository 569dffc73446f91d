"""adjoin._custom_ops: older names of adjoin.library."""

from .library import custom_op, register_fake


def impl_abstract(qualname, *, func=None):
    """What an op gives for tensors without data."""
    return register_fake(qualname, func)


def impl(qualname, *, device_types=("cpu", "cuda"), func=None):
    """A kernel of an op."""
    from .library import register_kernel

    return register_kernel(qualname, device_types, func)


__all__ = ["custom_op", "impl", "impl_abstract"]

"""adjoin.backends.cuda: whether there is a CUDA device, and the switches that programs set."""


class matmul:
    """Switches of products."""

    allow_tf32 = False


def is_built():
    """Whether a CUDA device can be used: backends are found at run time."""
    from ..cuda import is_available

    return is_available()

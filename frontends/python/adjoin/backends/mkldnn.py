"""adjoin.backends.mkldnn: whether oneDNN is there, and the switches programs set."""

from ._switches import switched

enabled = True
deterministic = False
benchmark = False
allow_tf32 = False


def is_available():
    """Whether oneDNN is there."""
    return False


def is_built():
    """The same as is_available(): backends are found at run time."""
    return is_available()


def flags(**switches):
    """Sets the switches inside a with statement."""
    return switched(globals(), switches)

"""adjoin.backends.opt_einsum: einsum chooses the order of its products itself, by what they cost; no package is asked."""

import contextlib

enabled = False
strategy = None


def is_available():
    """False: the order of products is found without a package."""
    return False


def get_opt_einsum():
    """None: no package is used."""


def set_flags(_enabled=None, _strategy=None):
    """The switches before; what would need the package is refused."""
    if _enabled or _strategy is not None:
        raise ValueError(
            "backends.opt_einsum: opt_einsum is not available: einsum finds the order of its products itself; leave the "
            "switches as they are"
        )
    return enabled, strategy


@contextlib.contextmanager
def flags(enabled=None, strategy=None):
    """``set_flags`` for a block."""
    set_flags(enabled, strategy)
    yield

"""adjoin.backends.mps: no plugin provides Metal."""


def is_available():
    """False."""
    return False


is_built = is_available

"""adjoin.backends.mps: no plugin provides Metal."""


def is_available():
    """False."""
    return False


is_built = is_available


def is_macos_or_newer(major, minor=0):
    """Raises: it is asked of Metal's devices."""
    raise RuntimeError(
        f"is_macos_or_newer({major}, {minor}): no plugin provides Metal; ask backends.mps.is_available() first"
    )

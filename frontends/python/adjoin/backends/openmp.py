"""adjoin.backends.openmp: threads are a pool of our own."""


def is_available():
    """False: OpenMP is not used."""
    return False

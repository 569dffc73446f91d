"""adjoin.backends.blas: which library computes matrix products; another one can be chosen."""

from .. import _C


def available(device="cpu"):
    """(name, file, priority) of each library, the chosen one first."""
    return _C.services(f"aj.blas/{device}")


def get(device="cpu"):
    """The name of the library that is used."""
    found = available(device)
    return found[0][0] if found else None


def set(name, device="cpu"):
    """Uses a library by name; an empty name lets the fastest serve each product."""
    _C.choose_service(f"aj.blas/{device}", name)

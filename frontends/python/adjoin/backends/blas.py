"""adjoin.backends.blas: which library computes matrix products; another one can be chosen."""

from .. import _C


def available(device="cpu"):
    """(name, file, priority) of each library, the chosen one first."""
    return _C.services(f"aj.blas/{device}")


def get(device="cpu"):
    """The name of the library that is used."""
    found = available(device)
    return found[0][0] if found else None


def serving(m, n, k, dtype=None, turned=(False, False), device="cpu"):
    """The name of the library that computes (m, k) @ (k, n) with the threads that are set now."""
    return _C.tuner_serving(device, dtype or _C.get_default_dtype(), *turned, m, n, k)


def tuning(classes=False, device="cpu"):
    """What the command `adjoin tune` has measured, and whether it is used, as a dictionary of texts."""
    return dict(line.split(": ", 1) for line in _C.tuner_show(device, classes).splitlines())


def load_tuning(file, device="cpu"):
    """Chooses by a file of the command `adjoin tune`; an empty name forgets what was measured."""
    _C.tuner_load(device, str(file))


def set(name, device="cpu"):
    """Uses a library by name; an empty name lets the fastest serve each product."""
    _C.choose_service(f"aj.blas/{device}", name)

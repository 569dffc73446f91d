"""adjoin.backends.blas: which library computes matrix products; another one can be chosen."""

from .. import _C


def available(device="cpu"):
    """(name, file, priority) of everybody who is there, the chosen one first."""
    return [one for one in _C.services(f"aj.blas/{device}") if one[1] or one[2] > _BY_NAME]


def get(device="cpu"):
    """The name of the library that is used."""
    chosen = _C.chosen_service(f"aj.blas/{device}")
    found = available(device)
    return chosen or (found[0][0] if found else None)


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
    """Chooses who multiplies, from the next product on; an empty name lets the fastest serve each.

    name: "own", "onednn", "openblas", "blis", "mkl", "blas" (the system's), the path of a library with CBLAS, or
    several by routine: "blis,dgemm=openblas,cgemm=/path/to/lib.so"; who has no routine serves the rest. Raises, and
    changes nothing, if one of them cannot be used. The environment says the same with ADJOIN_BLAS.
    """
    slot = f"aj.blas/{device}"
    before = _C.chosen_service(slot)
    parts = [part.rpartition("=")[::2] for part in name.split(",") if part]
    try:
        for routine, one in parts:
            if routine not in _ROUTINES:
                raise ValueError(f"blas: '{name}': there is no routine '{routine}', only {', '.join(_ROUTINES[1:])}")
            _C.choose_service(slot, one)
            opened = "/" in one or any(one == n and p == _BY_NAME for n, _, p in _C.services(slot))
            if opened and serving(64, 64, 64, _C.float32, device=device) != one:
                raise ValueError(
                    f"blas: '{one}' cannot be used here; available: {', '.join(n for n, *_ in available())}"
                )
    except (RuntimeError, ValueError):
        _C.choose_service(slot, before)
        raise
    _C.choose_service(slot, name)


_BY_NAME = -100  # the priority of libraries that serve only when they are named
_ROUTINES = ("", "sgemm", "dgemm", "cgemm", "zgemm", "hgemm", "bgemm")

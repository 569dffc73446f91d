"""adjoin.backends.mkl: MKL is one of the libraries that adjoin.backends.blas chooses from."""

import ctypes

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """Whether products can go to MKL."""
    from . import blas

    return any("mkl" in name for name, *_ in blas.available())


def _library():
    """The MKL that this process has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "libmkl_rt" in line:
                return ctypes.CDLL(line.split()[-1])
    raise RuntimeError(
        "backends.mkl.verbose: this process has no MKL loaded; ADJOIN_BLAS=mkl chooses it where it is installed"
    )


class verbose:
    """A with statement in which MKL prints each of its calls: ``verbose(VERBOSE_ON)``."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        if self.enable != VERBOSE_OFF:
            _library().MKL_Verbose(VERBOSE_ON)
        return self

    def __exit__(self, *error):
        if self.enable != VERBOSE_OFF:
            _library().MKL_Verbose(VERBOSE_OFF)
        return False

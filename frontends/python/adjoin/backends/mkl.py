"""adjoin.backends.mkl: MKL is one of the libraries that adjoin.backends.blas chooses from."""


def is_available():
    """Whether products can go to MKL."""
    from . import blas

    return any("mkl" in name for name, *_ in blas.available())

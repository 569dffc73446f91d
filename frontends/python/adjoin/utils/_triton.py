"""adjoin.utils._triton: what packages ask before they define kernels of Triton's: none runs on Adjoin's devices."""

import importlib.util


def has_triton_package():
    """Is Triton installed?"""
    return importlib.util.find_spec("triton") is not None


def has_triton():
    """False: compile() makes its own kernels, and Triton does not know the devices."""
    return False


def has_triton_tma():
    """False, as has_triton()."""
    return False


has_triton_tma_device = has_triton_stable_tma_api = has_triton_tma

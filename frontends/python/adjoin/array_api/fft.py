"""adjoin.array_api.fft: the standard's extension of Fourier transforms."""

from .. import fft as _fft
from ._array import as_array

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip


def _one(name):
    """A transform along one axis."""
    compute = getattr(_fft, name)

    def function(x, /, *, n=None, axis=-1, norm="backward"):
        return compute(x, n, axis, norm)

    return _named(function, name)


def _several(name):
    """A transform along several axes."""
    compute = getattr(_fft, name)

    def function(x, /, *, s=None, axes=None, norm="backward"):
        return compute(x, s, axes, norm)

    return _named(function, name)


def _named(function, name):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The array API standard's `{name}`."
    return function


fft = _one("fft")
ifft = _one("ifft")
rfft = _one("rfft")
irfft = _one("irfft")
hfft = _one("hfft")
ihfft = _one("ihfft")
fftn = _several("fftn")
ifftn = _several("ifftn")
rfftn = _several("rfftn")
irfftn = _several("irfftn")


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of a transform of n samples that are d apart."""
    return as_array(_fft.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The same of a real transform."""
    return as_array(_fft.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x, /, *, axes=None):
    """The frequency zero in the middle."""
    return _fft.fftshift(x, (axes,) if isinstance(axes, int) else axes)


def ifftshift(x, /, *, axes=None):
    """The frequency zero in front again."""
    return _fft.ifftshift(x, (axes,) if isinstance(axes, int) else axes)

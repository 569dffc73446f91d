"""adjoin._windows: windows for spectra: sums of cosines, and a triangle."""

import math

from . import _C

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window"]


def _phase(length, periodic, dtype, layout, device):
    """The angle of each place, 0 to 2 pi; a periodic window is one of length + 1 without its last place."""
    if length < 0:
        raise RuntimeError(f"window: length {length} is negative")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"window: the values are floating point numbers: dtype is {dtype}; take a floating one")
    if layout not in (None, _C.strided):
        raise RuntimeError(f"window: not implemented for sparse types: layout is {layout}; convert what is made")
    steps = max(length if periodic else length - 1, 1)
    places = _C.find_op("arange")(length, dtype=_C.float64, device=device)
    return places * (2 * math.pi / steps), dtype or _C.get_default_dtype()


def _finished(window, dtype, requires_grad):
    if window.numel() == 1:
        window = window.new_ones(1)
    return window.to(dtype).requires_grad_(requires_grad)


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """(1 - cos) / 2."""
    angle, dtype = _phase(window_length, periodic, dtype, layout, device)
    return _finished(0.5 - 0.5 * angle.cos(), dtype, requires_grad)


def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, requires_grad=False
):  # fmt: skip
    """alpha - beta cos."""
    angle, dtype = _phase(window_length, periodic, dtype, layout, device)
    return _finished(alpha - beta * angle.cos(), dtype, requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """0.42 - 0.5 cos + 0.08 cos of twice the angle."""
    angle, dtype = _phase(window_length, periodic, dtype, layout, device)
    return _finished(0.42 - 0.5 * angle.cos() + 0.08 * (2 * angle).cos(), dtype, requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle from 0 to 1 and back."""
    angle, dtype = _phase(window_length, periodic, dtype, layout, device)
    return _finished(1 - (angle / math.pi - 1).abs(), dtype, requires_grad)

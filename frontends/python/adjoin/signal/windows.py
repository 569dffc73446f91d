"""adjoin.signal.windows: windows of M places; ``sym=False`` gives a period of one, for spectra."""

import math

import adjoin

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _window(name, M, shape, sym, dtype, layout, device, requires_grad):
    """shape(places, last) at places 0 to last, computed in float64."""
    dtype = dtype or adjoin.get_default_dtype()
    if M < 0:
        raise ValueError(f"{name}: M is {M}; a window has no negative length")
    if not (dtype in (adjoin.float32, adjoin.float64) and layout is adjoin.strided):
        raise ValueError(
            f"{name}: a window is strided and of a floating dtype, float32 or float64, not {layout}, {dtype}; cast what is made with .to(...)"
        )
    places = adjoin.arange(M, dtype=adjoin.float64, device=device)
    last = M - 1 if sym else M
    made = shape(places, last) if M > 1 else adjoin.ones_like(places)
    return made.to(dtype).requires_grad_(requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - ...: t goes round once."""
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: a is empty; it holds the weights of the cosines")

    def shape(places, last):
        angle = places * (2 * math.pi / last)
        return sum((-1) ** i * weight * (i * angle).cos() for i, weight in enumerate(weights))

    return _window("general_cosine", M, shape, sym, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(t)."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """0.54 - 0.46 cos(t)."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """(1 - cos(t)) / 2."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """0.42 - 0.5 cos(t) + 0.08 cos(2 t)."""
    weights = [0.42, 0.5, 0.08]
    return general_cosine(M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """Four cosines, with side lobes below -98 dB (Nuttall, 1981)."""
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """A triangle from 0 to 1 and back."""

    def shape(places, last):
        return 1 - (places * (2 / last) - 1).abs()

    return _window("bartlett", M, shape, sym, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """Half a wave of the sine, through the middles of the places."""

    def shape(places, last):
        return ((places + 0.5) * (math.pi / (last + 1))).sin()

    return _window("cosine", M, shape, sym, dtype, layout, device, requires_grad)


def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False
):  # fmt: skip
    """exp(-|place - center| / tau); only a periodic window may have its center elsewhere than in the middle."""
    if tau <= 0:
        raise ValueError(f"exponential: tau is {tau}; it must be positive")
    if sym and center is not None:
        raise ValueError("exponential: a symmetric window has its center in the middle; leave center out, or sym=False")

    def shape(places, last):
        return (-(places - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, shape, sym, dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """exp(-(place - middle)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"gaussian: std is {std}; it must be positive")

    def shape(places, last):
        return (-(((places - last / 2) / std).square()) / 2).exp()

    return _window("gaussian", M, shape, sym, dtype, layout, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=adjoin.strided, device=None, requires_grad=False):
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1 (Kaiser and Schafer, 1980)."""
    if beta < 0:
        raise ValueError(f"kaiser: beta is {beta}; it must not be negative")

    def shape(places, last):
        x = places * (2 / last) - 1
        whole = adjoin.i0(adjoin.tensor(float(beta), dtype=places.dtype, device=places.device))
        return adjoin.i0(beta * (1 - x.square()).clamp(min=0).sqrt()) / whole

    return _window("kaiser", M, shape, sym, dtype, layout, device, requires_grad)

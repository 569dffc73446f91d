"""tests/ops/closed_forms_fft.py: Fourier transforms by matrices of their definition, for the rows that NumPy does not have."""

import numpy as np
from closed_forms import FORMS, of


def along(x, d, forward):
    """Of complex numbers along one dimension."""
    n = x.shape[d]
    k = np.arange(n)
    turns = np.exp((-2j if forward else 2j) * np.pi * (np.outer(k, k) % n) / n)
    return np.moveaxis(np.tensordot(turns, x, (1, d)), 0, d)


@of("_::fft_c2c")
def c2c(input, dim, forward, scale):
    x = input.astype(np.complex128)
    for d in dim:
        x = along(x, d, forward)
    return x * scale


@of("_::fft_r2c")
def r2c(input, dim, onesided, forward, scale):
    x = c2c(input, dim, forward, scale)
    return np.take(x, range(x.shape[dim[-1]] // 2 + 1), dim[-1]) if onesided else x


@of("_::fft_c2r")
def c2r(input, dim, last, forward, scale):
    x = np.moveaxis(c2c(input, dim[:-1], forward, 1.0), dim[-1], -1)
    whole = np.zeros([*x.shape[:-1], last], np.complex128)
    for k in range(last):
        whole[..., k] = x[..., k] if 2 * k <= last else x[..., last - k].conj()
    for k in {0, last // 2} if last % 2 == 0 else {0}:
        whole[..., k] = whole[..., k].real
    return np.moveaxis(along(whole, x.ndim - 1, forward).real * scale, -1, dim[-1])


def factor(norm, forward, sizes):
    n = np.prod(sizes)
    return n**-0.5 if norm == "ortho" else 1 / n if (norm == "forward") == forward else 1.0


def resized(x, s, dim):
    for n, d in zip(s, dim, strict=True):
        x = np.take(x, range(min(n, x.shape[d])), d)
        x = np.pad(x, [(0, max(n - x.shape[d], 0) if i == d % x.ndim else 0) for i in range(x.ndim)])
    return x


@of("fft::hfft2", "fft::hfftn")
def hfftn(input, s=None, dim=None, norm=None):
    dim = [d % input.ndim for d in (range(input.ndim) if dim is None else dim)]
    sizes = s or [input.shape[d] for d in dim[:-1]] + [2 * (input.shape[dim[-1]] - 1)]
    x = resized(input, [*sizes[:-1], sizes[-1] // 2 + 1], dim)
    return c2r(x, dim, sizes[-1], True, factor(norm, True, sizes))


@of("fft::ihfft2", "fft::ihfftn")
def ihfftn(input, s=None, dim=None, norm=None):
    dim = [d % input.ndim for d in (range(input.ndim) if dim is None else dim)]
    sizes = s or [input.shape[d] for d in dim]
    return r2c(resized(input, sizes, dim), dim, True, False, factor(norm, False, sizes))


def several(function):
    """NumPy's have another name for their dimensions."""
    return lambda input, s=None, dim=None, norm=None: function(input, s, dim, norm)


for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    FORMS[f"fft::{name}"] = several(getattr(np.fft, name))


def centred(window, n_fft, win_length, dtype=np.float64):
    window = np.ones(win_length or n_fft) if window is None else window
    left = (n_fft - len(window)) // 2
    return np.pad(window, (left, n_fft - len(window) - left))


@of("stft")
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=True, return_complex=None, align_to_window=None):  # fmt: skip
    x = np.atleast_2d(input)
    if center:
        x = np.pad(x, [(0, 0), (n_fft // 2, n_fft // 2)], pad_mode)
    elif align_to_window:
        left = (n_fft - win_length) // 2
        x = np.pad(x, [(0, 0), (left, n_fft - win_length - left)])
    hop = hop_length or n_fft // 4
    w = centred(window, n_fft, win_length)
    pieces = [np.fft.fft(x[:, at : at + n_fft] * w) for at in range(0, x.shape[1] - n_fft + 1, hop)]
    out = np.stack(pieces, 2) * (n_fft**-0.5 if normalized else 1)
    out = out[:, : n_fft // 2 + 1] if onesided else out
    out = out if return_complex else np.stack([out.real, out.imag], -1)
    return out.reshape(input.shape[:-1] + out.shape[1:])


@of("istft")
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=True, length=None,
          return_complex=False):  # fmt: skip
    x = input.reshape(-1, *input.shape[-2:])
    hop = hop_length or n_fft // 4
    w = centred(window, n_fft, win_length)
    sums = np.zeros((x.shape[0], n_fft + hop * (x.shape[2] - 1)), np.complex128)
    shares = np.zeros(sums.shape[1])
    for i in range(x.shape[2]):
        piece = np.fft.ifft(x[:, :, i]) if return_complex else np.fft.irfft(x[:, : n_fft // 2 + 1, i], n_fft)
        sums[:, i * hop : i * hop + n_fft] += piece * w * (n_fft**0.5 if normalized else 1)
        shares[i * hop : i * hop + n_fft] += w * w
    start = n_fft // 2 if center else 0
    end = start + length if length else len(shares) - start
    out = sums[:, start:end] / shares[start:end]
    out = np.pad(out, [(0, 0), (0, (length or 0) and length - out.shape[1])])
    return (out if return_complex else out.real).reshape(input.shape[:-2] + (-1,))

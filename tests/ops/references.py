"""tests/ops/references.py: values from NumPy and SciPy for rows that name one, with Adjoin's argument names put into NumPy's."""

import importlib

import closed_forms_fft  # noqa: F401
import closed_forms_loss  # noqa: F401
import closed_forms_nn  # noqa: F401
import closed_forms_optim  # noqa: F401
import closed_forms_random  # noqa: F401
import closed_forms_rows  # noqa: F401
import closed_forms_shape  # noqa: F401
import closed_forms_vision  # noqa: F401
import numpy as np
from closed_forms import FORMS

# These call the forward form once for every element of their result.
SMALL_ONLY = ("convolution_backward", "avg_pool2d_backward", "adaptive_avg_pool2d_backward")
RENAME = {"dim": "axis", "keepdim": "keepdims", "dims": "axis"}


def gelu(x, approximate="none"):
    from scipy.special import erf

    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def divide(input, other, rounding_mode=None):
    q = np.divide(input, other)
    return q if rounding_mode is None else np.floor(q) if rounding_mode == "floor" else np.trunc(q)


def multigammaln(x, p):
    from scipy.special import multigammaln

    return multigammaln(x, p)


def quantile_of(function):
    def quantile(input, q, dim=None, keepdim=False, interpolation="linear"):
        return function(input, q, axis=dim, keepdims=keepdim, method=interpolation)

    return quantile


OWN = {
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": gelu,
    "divide": divide,
    "ldexp": lambda x, y: x * 2.0**y,
    "multigammaln": multigammaln,
    "quantile": quantile_of(np.quantile),
    "nanquantile": quantile_of(np.nanquantile),
    "diff": lambda input, prepend=None, append=None, n=1, dim=-1: np.diff(
        input, n, dim, **{k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    ),
}


def find(ref):
    if ref.startswith("py:"):
        return OWN.get(ref[3:])
    module, _, name = ref.rpartition(".")
    return getattr(importlib.import_module(module), name)


def in_numpys_names(kwargs):
    out = {}
    for key, value in kwargs.items():
        name = RENAME.get(key, key)
        out[name] = tuple(value) if isinstance(value, list) and name == "axis" else value
    return out


def to_numpy(value):
    if isinstance(value, (list, tuple)):
        return [to_numpy(v) for v in value]
    if hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    return value


def known(row):
    """Is there a reference for the row's values?"""
    ref = row.test.get("ref", "")
    return name_of(row) in FORMS or (bool(ref) and find(ref) is not None)


def name_of(row):
    return row.other_name_of or row.name


def compute(row, tensors, other):
    """What the row's `ref` or its closed form gives, or None where NumPy's function takes other arguments than the row's."""
    form = FORMS.get(name_of(row))
    if form and not ("ref" in row.test and find(row.test["ref"])):
        return form(**{k: to_numpy(v) for k, v in tensors.items()}, **other)
    function = find(row.test["ref"])
    if other.get("alpha") == 1:  # NumPy's have none
        other = {k: v for k, v in other.items() if k != "alpha"}
    args = [to_numpy(v) for v in tensors.values()]
    if row.test["ref"].startswith("py:"):
        return function(*args, **other)
    try:
        return function(*args, **in_numpys_names(other))
    except TypeError:  # other names, or none
        return function(*args, *other.values())

"""adjoin.nn.init: initial values; every function writes its tensor in place, unrecorded, and
returns it."""

import math
import warnings

import adjoin

from .._hints import getattr_of
from .._overridden import handed_over, overridden

_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def calculate_gain(nonlinearity, param=None):
    """The factor by which weights before ``nonlinearity`` are scaled so that the variance is kept.

    ``param`` is the negative slope of leaky_relu.
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    known = ", ".join((*_GAINS, "leaky_relu"))
    raise ValueError(f"init: Unsupported nonlinearity {nonlinearity}; it is one of {known}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    if overridden(tensor):
        return handed_over(uniform_, (tensor,), locals())
    with adjoin.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal with that mean and standard deviation."""
    if overridden(tensor):
        return handed_over(normal_, (tensor,), locals())
    with adjoin.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_uniform_(tensor, a, b, generator=None):
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    return normal_(tensor, mean, std, generator)


def _no_grad_fill_(tensor, val):
    return constant_(tensor, val)


def _no_grad_zero_(tensor):
    return constant_(tensor, 0.0)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal, cut off to [a, b] by drawing uniformly between the two quantiles and inverting."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with adjoin.no_grad():
        low, high = (math.erf((edge - mean) / std / math.sqrt(2.0)) for edge in (a, b))
        tensor.uniform_(low, high, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor, val):
    """The value ``val`` everywhere."""
    if overridden(tensor):
        return handed_over(constant_, (tensor,), locals())
    with adjoin.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """One everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zero everywhere."""
    with adjoin.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """The identity; two dimensions."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with adjoin.no_grad():
        tensor.zero_()
        for i in range(min(tensor.shape)):
            tensor[i, i] = 1
        return tensor


def dirac_(tensor, groups=1):
    """Filters that copy as many input channels as they can, per group; three to five dimensions."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with adjoin.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *middle)] = 1
        return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError(
            "init: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, here of shape "
            f"{list(tensor.shape)}; a bias is filled by zeros_() or uniform_()"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with variance gain^2 / fan (He et al., 2015); ``a`` is leaky_relu's slope."""
    if overridden(tensor):
        return handed_over(kaiming_uniform_, (tensor,), locals())
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with variance gain^2 / fan (He et al., 2015); ``a`` is leaky_relu's slope."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Orthonormal rows or columns, whichever are fewer, of the tensor as (size 0, rest) (Saxe et
    al., 2013)."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with adjoin.no_grad():
        short, long = min(rows, columns), max(rows, columns)
        draw = adjoin.empty(long, short, dtype=adjoin.float64).normal_(generator=generator)
        basis = _orthonormal_columns(draw)
        basis = basis if rows >= columns else basis.t()
        return tensor.copy_(basis.reshape(tensor.shape) * gain)


def _orthonormal_columns(matrix):
    """Gram-Schmidt, twice per column, which is as orthogonal as Householder's way for a random
    matrix.

    A positive diagonal of R is built in, so that the result is uniform over orthogonal matrices.
    """
    rows, columns = matrix.shape
    basis = adjoin.zeros(columns, rows, dtype=matrix.dtype)  # one vector per row, so they are contiguous
    for i in range(columns):
        vector = matrix[:, i]
        for _ in range(2):
            if i:
                vector = vector - basis[:i].t() @ (basis[:i] @ vector)
        basis[i] = vector / vector.norm()
    return basis.t()


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal, with the fraction ``sparsity`` of every column set to zero; two dimensions
    (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with adjoin.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = adjoin.randperm(rows, generator=generator)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _old_name(name):
    function = globals()[name + "_"]

    def old(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"{name}_() by its old name."
    return old


uniform, normal, constant, eye, dirac, xavier_uniform, xavier_normal = map(
    _old_name, ("uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal")
)
kaiming_uniform, kaiming_normal, orthogonal, sparse = map(
    _old_name, ("kaiming_uniform", "kaiming_normal", "orthogonal", "sparse")
)


__getattr__ = getattr_of(__name__)

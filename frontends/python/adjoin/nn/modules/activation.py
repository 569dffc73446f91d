"""adjoin.nn.modules.activation: element-wise nonlinearities and softmaxes; input and output (*)."""

import warnings

import adjoin

from .. import functional as F
from ..parameter import Parameter
from .attention import MultiheadAttention  # noqa: F401  (PyTorch has it in this room)
from ._settings import no_data
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip


class _InPlace(Module):
    """An activation that overwrites its input on request."""

    def __init__(self, inplace=False):
        super().__init__()
        no_data(self, inplace)
        self.inplace = inplace

    def _run(self, name, input, *args):
        if self.inplace:
            return getattr(F, name)(input, *args, inplace=True)
        return getattr(F, name)(input, *args)

    def _settings(self):
        return ""

    def extra_repr(self):
        text = self._settings()
        if self.inplace:
            text += (", " if text else "") + "inplace=True"
        return text


class ReLU(_InPlace):
    """max(0, x)."""

    def forward(self, input):
        return input.relu_() if self.inplace else F.relu(input)


class Hardtanh(_InPlace):
    """x clamped to [min_val, max_val]."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__(inplace)
        for old, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                new = old[:-2]
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input):
        return self._run("hardtanh", input, self.min_val, self.max_val)

    def _settings(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"


class ReLU6(Hardtanh):
    """x clamped to [0, 6]."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def _settings(self):
        return ""


class LeakyReLU(_InPlace):
    """x where positive, negative_slope x elsewhere."""

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input):
        return self._run("leaky_relu", input, self.negative_slope)

    def _settings(self):
        return f"negative_slope={self.negative_slope}"


class RReLU(_InPlace):
    """x where positive, elsewhere x times a slope drawn between lower and upper while training,
    else their mean (Xu et al., 2015)."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def _settings(self):
        return f"lower={self.lower}, upper={self.upper}"


class _WithAlpha(_InPlace):
    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def _settings(self):
        return f"alpha={self.alpha}"


class ELU(_WithAlpha):
    """x where positive, alpha (exp(x) - 1) elsewhere (Clevert et al., 2015)."""

    def forward(self, input):
        return self._run("elu", input, self.alpha)


class CELU(_WithAlpha):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)) (Barron, 2017)."""

    def forward(self, input):
        return self._run("celu", input, self.alpha)


class SELU(_InPlace):
    """ELU with the two constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""

    def forward(self, input):
        return self._run("selu", input)


class SiLU(_InPlace):
    """x sigmoid(x) (Elfwing et al., 2017)."""

    def forward(self, input):
        return self._run("silu", input)


class Mish(_InPlace):
    """x tanh(softplus(x)) (Misra, 2019)."""

    def forward(self, input):
        return self._run("mish", input)


class Hardswish(_InPlace):
    """x relu6(x + 3) / 6 (Howard et al., 2019)."""

    def forward(self, input):
        return self._run("hardswish", input)

    def extra_repr(self):
        return ""


class Hardsigmoid(_InPlace):
    """relu6(x + 3) / 6."""

    def forward(self, input):
        return self._run("hardsigmoid", input)

    def extra_repr(self):
        return ""


class Threshold(_InPlace):
    """x where above the threshold, ``value`` elsewhere."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input):
        return self._run("threshold", input, self.threshold, self.value)

    def _settings(self):
        return f"threshold={self.threshold}, value={self.value}"


class GELU(Module):
    """x times the normal distribution function of x; "tanh" approximates it (Hendrycks, Gimpel,
    2016)."""

    def __init__(self, approximate="none"):
        super().__init__()
        no_data(self, approximate)
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input):
        return adjoin.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input):
        return adjoin.tanh(input)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class LogSigmoid(Module):
    """log(sigmoid(x)), without underflow."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input):
        return F.tanhshrink(input)


class _Shrink(Module):
    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """x, but zero in [-lambd, lambd]."""

    def forward(self, input):
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards zero by lambd, and zero in between."""

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class GLU(Module):
    """a sigmoid(b), where a and b are the halves of x along ``dim`` (Dauphin et al., 2016)."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class PReLU(Module):
    """x where positive, weight x elsewhere, with one learned weight or one per channel (He et
    al., 2015)."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(adjoin.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        with adjoin.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    def __init__(self, dim=None):
        super().__init__()
        no_data(self, dim)
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"{type(self).__name__}: dim must be an int or None, not {dim!r}, a {type(dim).__name__}")
        self.dim = dim

    def _dim(self, input):
        """The dimension asked for; without one, the customary guess, with a warning."""
        if self.dim is not None:
            return self.dim
        warnings.warn(
            "Implicit dimension choice for softmax has been deprecated. "
            "Change the call to include dim=X as an argument.",
            stacklevel=4,
        )
        return 0 if input.dim() in (0, 1, 3) else 1

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) over its sum along ``dim``."""

    def forward(self, input):
        return F.softmax(input, self._dim(input))


class LogSoftmax(_AlongDim):
    """The logarithm of softmax, without underflow."""

    def forward(self, input):
        return F.log_softmax(input, self._dim(input))


class Softmin(_AlongDim):
    """softmax(-x)."""

    def forward(self, input):
        return F.softmax(-input, self._dim(input))


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)

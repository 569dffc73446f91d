"""adjoin.distributions.transforms: functions with an inverse and the logarithm of their slope."""

import math

import adjoin
from adjoin.nn import functional as F

from . import constraints


class Transform:
    """``t(x)``, ``t.inv(y)`` and ``t.log_abs_det_jacobian(x, y)``; ``event_dim`` dimensions are one value."""

    bijective = True
    event_dim = 0
    domain = codomain = constraints.real
    sign = 1

    def __init__(self, cache_size=0):
        """Nothing is kept between calls, whatever ``cache_size`` says."""

    def __call__(self, x):
        return self._call(x)

    @property
    def inv(self):
        """The inverse."""
        return _Inverse(self)

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|."""
        raise NotImplementedError

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, forward):
        self.forward = forward
        self.domain, self.codomain, self.event_dim = forward.codomain, forward.domain, forward.event_dim

    sign = property(lambda self: self.forward.sign)
    inv = property(lambda self: self.forward)

    def _call(self, y):
        return self.forward._inverse(y)

    def _inverse(self, x):
        return self.forward._call(x)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return -self.forward.log_abs_det_jacobian(y, x)


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return x


class PowerTransform(Transform):
    """x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        self.exponent = exponent if isinstance(exponent, adjoin.Tensor) else adjoin.tensor(float(exponent))

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x):
        info = adjoin.finfo(x.dtype)
        return x.sigmoid().clamp(info.tiny, 1 - info.eps)

    def _inverse(self, y):
        info = adjoin.finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return y.log() - adjoin.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return 2 * (math.log(2.0) - x - F.softplus(-2 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return -F.softplus(-x)


class AffineTransform(Transform):
    """loc + scale x."""

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    @property
    def sign(self):
        """Whether it rises (1) or falls (-1)."""
        return self.scale.sign() if isinstance(self.scale, adjoin.Tensor) else math.copysign(1, self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        scale = self.scale if isinstance(self.scale, adjoin.Tensor) else adjoin.full_like(x, self.scale)
        found = scale.abs().log().expand(x.shape)
        for _ in range(self.event_dim):
            found = found.sum(-1)
        return found


class ComposeTransform(Transform):
    """One transform after the other."""

    def __init__(self, parts, cache_size=0):
        self.parts = list(parts)
        self.event_dim = max([part.event_dim for part in self.parts], default=0)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain

    @property
    def sign(self):
        """The product of the parts' signs."""
        found = 1
        for part in self.parts:
            found = found * part.sign
        return found

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        total = adjoin.zeros_like(x)
        for _ in range(self.event_dim):
            total = total.sum(-1)
        for part in self.parts:
            after = part(x)
            slope = part.log_abs_det_jacobian(x, after)
            for _ in range(self.event_dim - part.event_dim):
                slope = slope.sum(-1)
            total, x = total + slope, after
        return total


identity_transform = ComposeTransform([])

"""adjoin.distributions.elementwise: functions with an inverse and the logarithm of their slope: what all are, those of
one number, and several in a row."""

import math

import adjoin
from adjoin.nn import functional as F

from . import constraints


def sum_last(x, dims):
    """The sum over so many last dimensions."""
    return x.sum(tuple(range(-dims, 0))) if dims > 0 else x


def _same(a, b):
    """Whether two parameters, numbers or tensors, are equal in all elements."""
    return bool((adjoin.as_tensor(a) == adjoin.as_tensor(b)).all())


class Transform:
    """``t(x)``, ``t.inv(y)`` and ``t.log_abs_det_jacobian(x, y)``.

    The last ``domain.event_dim`` dimensions of x are one value, the last ``codomain.event_dim`` ones of y.
    """

    bijective = True
    domain = codomain = constraints.real
    sign = 1

    event_dim = property(lambda self: self.domain.event_dim)

    def __init__(self, cache_size=0):
        """Nothing is kept between calls, whether ``cache_size`` is 0 or 1."""
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")

    def __call__(self, x):
        return self._call(x)

    @property
    def inv(self):
        """The inverse."""
        return _InverseTransform(self)

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of the result for a shape of the input."""
        return adjoin.Size(shape)

    def inverse_shape(self, shape):
        """The shape of the input for a shape of the result."""
        return adjoin.Size(shape)

    def with_cache(self, cache_size=1):
        """The same: nothing is kept between calls."""
        Transform.__init__(self, cache_size)
        return self

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, forward):
        self.forward = forward
        self.domain, self.codomain, self.bijective = forward.codomain, forward.domain, forward.bijective

    sign = property(lambda self: self.forward.sign)
    inv = property(lambda self: self.forward)

    def _call(self, y):
        return self.forward._inverse(y)

    def _inverse(self, x):
        return self.forward._call(x)

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return -self.forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        """See the base."""
        return self.forward.inverse_shape(shape)

    def inverse_shape(self, shape):
        """See the base."""
        return self.forward.forward_shape(shape)


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


class AbsTransform(Transform):
    """|x|; of the two inverses the positive one is given."""

    bijective = False
    codomain = constraints.nonnegative

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        self.exponent = exponent if isinstance(exponent, adjoin.Tensor) else adjoin.tensor(float(exponent))

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = object.__hash__

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
        self.loc, self.scale = loc, scale
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    def __eq__(self, other):
        if not isinstance(other, AffineTransform) or self.event_dim != other.event_dim:
            return False
        return _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = object.__hash__

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

    def forward_shape(self, shape):
        """See the base."""
        shapes = [p.shape for p in (self.loc, self.scale) if isinstance(p, adjoin.Tensor)]
        return adjoin.broadcast_shapes(shape, *shapes)

    inverse_shape = forward_shape


class ComposeTransform(Transform):
    """One transform after the other."""

    def __init__(self, parts, cache_size=0):
        self.parts = list(parts)
        if self.parts:
            self.domain = self._side("domain", "codomain", self.parts[::-1])
            self.codomain = self._side("codomain", "domain", self.parts)

    @staticmethod
    def _side(near, far, parts):
        """What enters the last of parts, or leaves it, of as many dimensions as any of them needs."""
        dims = getattr(parts[0], far).event_dim
        for part in parts:
            dims = max(dims, getattr(part, far).event_dim)
            dims += getattr(part, near).event_dim - getattr(part, far).event_dim
        found = getattr(parts[-1], near)
        return constraints.independent(found, dims - found.event_dim) if dims > found.event_dim else found

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __repr__(self):
        lines = ",\n    ".join(repr(part) for part in self.parts)
        return f"ComposeTransform(\n    {lines}\n)"

    bijective = property(lambda self: all(part.bijective for part in self.parts))

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
        if not self.parts:
            return adjoin.zeros_like(x)
        total, dims = 0, self.domain.event_dim
        for part in self.parts:
            after = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape):
        """See the base."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return adjoin.Size(shape)

    def inverse_shape(self, shape):
        """See the base."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return adjoin.Size(shape)


identity_transform = ComposeTransform([])

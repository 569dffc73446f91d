"""adjoin.distributions.elementwise: functions with an inverse and the logarithm of their slope: what all are, those of
one number, and several in a row."""

import copy
import math
import weakref

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
    _cache_size = 0
    _kept = (None, None)  # the last x and its y
    _inv = None  # a weak reference to the inverse: t.inv is the same object as long as somebody has it

    event_dim = property(lambda self: self.domain.event_dim)

    def __init__(self, cache_size=0):
        """``cache_size=1``: the last x and its y are kept, and whoever asks for one by the other gets that tensor: exact where the
        inverse is not, as at the ends of ``TanhTransform``."""
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size

    def __call__(self, x):
        if not self._cache_size:
            return self._call(x)
        if x is not self._kept[0]:
            self._kept = x, self._call(x)
        return self._kept[1]

    def _inv_call(self, y):
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._kept[1]:
            self._kept = self._inverse(y), y
        return self._kept[0]

    @property
    def inv(self):
        """The inverse."""
        found = self._inv and self._inv()
        if found is None:
            found = self._inverted()
            self._inv = weakref.ref(found)
        return found

    def _inverted(self):
        return _InverseTransform(self)

    @property
    def sign(self):
        """1 where a function of one number rises, -1 where it falls."""
        raise NotImplementedError(
            f"{type(self).__name__}: only a function of one number that rises or falls everywhere has a sign"
        )

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_inv")}

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
        """The same with another ``cache_size``."""
        if cache_size == self._cache_size:
            return self
        made = copy.copy(self)
        made._inv = None
        Transform.__init__(made, cache_size)
        return made

    def _said(self):
        """What tells it from others of its class."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kept", "_inv", "_cache_size")}

    def __eq__(self, other):
        return type(self) is type(other) and self._said() == other._said()

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, forward):
        self._inv = forward
        self.domain, self.codomain, self.bijective = forward.codomain, forward.domain, forward.bijective

    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self):
        return self.__dict__

    def _said(self):
        return {"of": self._inv}

    _cache_size = property(lambda self: self._inv._cache_size)

    def __call__(self, y):
        return self._inv._inv_call(y)

    def _inv_call(self, x):
        return self._inv(x)

    def with_cache(self, cache_size=1):
        """See the base."""
        return self._inv.with_cache(cache_size).inv

    def log_abs_det_jacobian(self, x, y):
        """See the base."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        """See the base."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        """See the base."""
        return self._inv.forward_shape(shape)


class ExpTransform(Transform):
    """exp(x)."""

    codomain = constraints.positive
    sign = 1

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
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
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


def _clipped_sigmoid(x):
    """The sigmoid, kept inside of (0, 1): its logarithms are finite."""
    info = adjoin.finfo(x.dtype)
    return x.sigmoid().clamp(info.tiny, 1 - info.eps)


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    sign = 1

    _call = staticmethod(_clipped_sigmoid)

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
    sign = 1

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
    sign = 1

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
        super().__init__(cache_size)
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

    _inverse_of = None

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        if self.parts:
            self.domain = self._side("domain", "codomain", self.parts[::-1])
            self.codomain = self._side("codomain", "domain", self.parts)

    def with_cache(self, cache_size=1):
        """See the base: the parts keep, too."""
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _inverted(self):
        made = ComposeTransform([part.inv for part in reversed(self.parts)])
        made._cache_size, made._inverse_of = self._cache_size, self
        return made

    @property
    def inv(self):
        """The inverse: the parts' inverses, the last one first."""
        return self._inverse_of or super().inv

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

"""adjoin.distributions.continuous: distributions of real numbers whose samples are functions of their parameters."""

import math

import adjoin

from . import constraints
from .distribution import EULER, Distribution, to_tensors
from .exponential_family import ExponentialFamily


class _LocScale(Distribution):
    """loc + scale * z with some z; a subclass gives z's numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = to_tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _uniform(self, sample_shape):
        """In (0, 1): 0 would be infinity."""
        tiny = adjoin.finfo(self.loc.dtype).tiny
        return adjoin.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device).clamp(
            min=tiny
        )

    def _standard(self, value):
        self._validate_sample(value)
        return (value - self.loc) / self.scale

    def icdf(self, value):
        """The inverse of cdf."""
        return self.loc + self.scale * self._standard_icdf(value)

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.icdf(self._uniform(sample_shape))


class Normal(_LocScale, ExponentialFamily):
    """The normal distribution: mean loc, standard deviation scale."""

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.scale**2)
    stddev = property(lambda self: self.scale)
    _natural_params = property(lambda self: (self.loc / self.scale**2, -0.5 / self.scale**2))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x, y):
        return -(x**2) / (4 * y) + 0.5 * (-math.pi / y).log()

    def rsample(self, sample_shape=()):
        """See the base."""
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * adjoin.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value):
        """See the base."""
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value):
        """See the base."""
        return 0.5 * (1 + adjoin.erf(self._standard(value) / math.sqrt(2)))

    def _standard_icdf(self, value):
        return math.sqrt(2) * adjoin.erfinv(2 * value - 1)

    def entropy(self):
        """See the base."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(_LocScale):
    """Laplace's distribution: density exp(-|x - loc| / scale) / (2 scale)."""

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale**2)

    def log_prob(self, value):
        """See the base."""
        return -self._standard(value).abs() - (2 * self.scale).log()

    def cdf(self, value):
        """See the base."""
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * adjoin.expm1(-z.abs())

    def _standard_icdf(self, value):
        side = value - 0.5
        return -side.sign() * adjoin.log1p(-2 * side.abs())

    def entropy(self):
        """See the base."""
        return 1 + (2 * self.scale).log()


class Cauchy(_LocScale):
    """Cauchy's distribution, which has neither mean nor variance."""

    mean = property(lambda self: adjoin.full_like(self.loc, math.nan))
    variance = property(lambda self: adjoin.full_like(self.loc, math.inf))
    mode = property(lambda self: self.loc)

    def log_prob(self, value):
        """See the base."""
        return -adjoin.log1p(self._standard(value) ** 2) - self.scale.log() - math.log(math.pi)

    def cdf(self, value):
        """See the base."""
        return adjoin.atan(self._standard(value)) / math.pi + 0.5

    def _standard_icdf(self, value):
        return adjoin.tan(math.pi * (value - 0.5))

    def entropy(self):
        """See the base."""
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocScale):
    """Gumbel's distribution of greatest values."""

    mean = property(lambda self: self.loc + self.scale * EULER)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: (math.pi * self.scale) ** 2 / 6)

    def log_prob(self, value):
        """See the base."""
        z = self._standard(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value):
        """See the base."""
        return (-(-self._standard(value)).exp()).exp()

    def _standard_icdf(self, value):
        return -(-value.log()).log()

    def entropy(self):
        """See the base."""
        return self.scale.log() + 1 + EULER


class Uniform(Distribution):
    """The same density from low up to high."""

    arg_constraints = dict.fromkeys(("low", "high"), constraints.dependent(is_discrete=False, event_dim=0))
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = to_tensors(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._checks_values() and not (self.low < self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    support = constraints.dependent_property(
        lambda self: constraints.interval(self.low, self.high), is_discrete=False, event_dim=0
    )
    mean = property(lambda self: (self.low + self.high) / 2)
    mode = property(lambda self: adjoin.full_like(self.low, math.nan))
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape=()):
        """See the base."""
        share = adjoin.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + share * (self.high - self.low)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        """See the base."""
        return value * (self.high - self.low) + self.low

    def entropy(self):
        """See the base."""
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """Waiting times between events of a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        (self.rate,) = to_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: adjoin.zeros_like(self.rate))
    variance = property(lambda self: self.rate**-2)
    _natural_params = property(lambda self: (-self.rate,))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x):
        return -(-x).log()

    def rsample(self, sample_shape=()):
        """See the base."""
        share = adjoin.rand(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device)
        return self.icdf(share)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return -adjoin.expm1(-self.rate * value)

    def icdf(self, value):
        """See the base."""
        return -adjoin.log1p(-value) / self.rate

    def entropy(self):
        """See the base."""
        return 1 - self.rate.log()

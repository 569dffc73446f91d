"""adjoin.distributions.tails: StudentT, HalfCauchy, Weibull, Pareto, InverseGamma and Kumaraswamy."""

import math

import adjoin

from . import constraints
from ._gamma_samples import gamma_samples
from .distribution import EULER, Distribution, to_tensors, uniform_inside


class StudentT(Distribution):
    """Student's distribution of df degrees of freedom, moved by loc and stretched by scale."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = to_tensors(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mean = property(lambda self: adjoin.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        """See the base."""
        df = self.df
        found = adjoin.where(df > 2, self.scale**2 * df / (df - 2), math.inf)
        return adjoin.where(df <= 1, math.nan, found)

    def rsample(self, sample_shape=()):
        """See the base."""
        shape = self._extended_shape(sample_shape)
        x = adjoin.randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = 2 * gamma_samples(shape, 0.5 * self.df)
        return self.loc + self.scale * x * adjoin.rsqrt(squares / self.df)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        df, y = self.df, (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * (df.log() + math.log(math.pi)) + adjoin.lgamma(0.5 * df)
        return adjoin.lgamma(0.5 * (df + 1)) - norm - 0.5 * (df + 1) * adjoin.log1p(y**2 / df)

    def entropy(self):
        """See the base."""
        df = self.df
        beta = adjoin.lgamma(0.5 * df) + math.lgamma(0.5) - adjoin.lgamma(0.5 * (df + 1))
        slope = adjoin.digamma(0.5 * (df + 1)) - adjoin.digamma(0.5 * df)
        return self.scale.log() + 0.5 * (df + 1) * slope + 0.5 * df.log() + beta


class HalfCauchy(Distribution):
    """The size of a Cauchy number around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        (self.scale,) = to_tensors(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    mean = property(lambda self: adjoin.full_like(self.scale, math.inf))
    mode = property(lambda self: adjoin.zeros_like(self.scale))
    variance = property(lambda self: adjoin.full_like(self.scale, math.inf))

    def rsample(self, sample_shape=()):
        """See the base."""
        return (
            self.scale
            * adjoin.empty_like(self.scale.detach().expand(self._extended_shape(sample_shape))).cauchy_().abs()
        )

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        density = math.log(2 / math.pi) - self.scale.log() - adjoin.log1p((value / self.scale) ** 2)
        return adjoin.where(value >= 0, density, -math.inf)

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return adjoin.atan(value / self.scale) * (2 / math.pi)

    def icdf(self, value):
        """The inverse of cdf."""
        return self.scale * adjoin.tan(value * (math.pi / 2))

    def entropy(self):
        """See the base."""
        return self.scale.log() + math.log(2 * math.pi)


class Weibull(Distribution):
    """Weibull's distribution: -log(1 - cdf) is (x / scale)^concentration."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = to_tensors(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, n):
        return self.scale**n * adjoin.lgamma(1 + n / self.concentration).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)

    @property
    def mode(self):
        """See the base."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** (1 / k)

    def rsample(self, sample_shape=()):
        """See the base."""
        u = uniform_inside(self.scale.detach().expand(self._extended_shape(sample_shape)))
        return self.icdf(u)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        k, z = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * z.log() - z**k

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return -adjoin.expm1(-((value / self.scale) ** self.concentration))

    def icdf(self, value):
        """The inverse of cdf."""
        return self.scale * (-adjoin.log1p(-value)) ** (1 / self.concentration)

    def entropy(self):
        """See the base."""
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1


class Pareto(Distribution):
    """Pareto's distribution: 1 - cdf is (scale / x)^alpha from scale on."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = to_tensors(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    support = constraints.dependent_property(
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )
    mode = property(lambda self: self.scale)

    @property
    def mean(self):
        """See the base."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        """See the base."""
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def rsample(self, sample_shape=()):
        """See the base."""
        u = uniform_inside(self.scale.detach().expand(self._extended_shape(sample_shape)))
        return self.icdf(u)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value):
        """The inverse of cdf."""
        return self.scale * (-adjoin.log1p(-value) / self.alpha).exp()

    def entropy(self):
        """See the base."""
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class InverseGamma(Distribution):
    """1 / x for x of the gamma distribution."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = to_tensors(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self):
        """See the base."""
        return adjoin.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self):
        """See the base."""
        a = self.concentration
        return adjoin.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.rate / gamma_samples(self._extended_shape(sample_shape), self.concentration)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return a * rate.log() - (a + 1) * value.log() - rate / value - adjoin.lgamma(a)

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return adjoin.special.gammaincc(self.concentration, self.rate / value)

    def entropy(self):
        """See the base."""
        a = self.concentration
        return a + self.rate.log() + adjoin.lgamma(a) - (1 + a) * adjoin.digamma(a)


class Kumaraswamy(Distribution):
    """Kumaraswamy's distribution on (0, 1): 1 - cdf is (1 - x^a)^b."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = to_tensors(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b * (adjoin.lgamma(first) + adjoin.lgamma(b) - adjoin.lgamma(first + b)).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)

    @property
    def mode(self):
        """See the base."""
        a, b = self.concentration1, self.concentration0
        place = ((a - 1) / (a * b - 1)).clamp(min=0) ** (1 / a)
        return adjoin.where((a < 1) | (b < 1), math.nan, place)

    def rsample(self, sample_shape=()):
        """See the base."""
        u = uniform_inside(self.concentration1.detach().expand(self._extended_shape(sample_shape)))
        return self.icdf(u)

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return -adjoin.expm1(self.concentration0 * adjoin.log1p(-(value**self.concentration1)))

    def icdf(self, value):
        """The inverse of cdf."""
        return (-adjoin.expm1(adjoin.log1p(-value) / self.concentration0)) ** (1 / self.concentration1)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * adjoin.log1p(-(value**a))

    def entropy(self):
        """See the base."""
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * (adjoin.digamma(b + 1) + EULER) - a.log() - b.log()

"""adjoin.distributions.gamma: Gamma, Beta, Dirichlet and chi-squared."""

import adjoin

from . import constraints
from ._gamma_samples import dirichlet_samples, gamma_samples
from .distribution import to_tensors
from .exponential_family import ExponentialFamily


class Gamma(ExponentialFamily):
    """The gamma distribution; concentration is the shape, rate the inverse of the scale."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = to_tensors(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate**2)
    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x, y):
        return adjoin.lgamma(x + 1) - (x + 1) * (-y).log()

    def rsample(self, sample_shape=()):
        """See the base."""
        return gamma_samples(self._extended_shape(sample_shape), self.concentration) / self.rate

    def log_prob(self, value):
        """See the base; a number is taken, too."""
        value = adjoin.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return adjoin.xlogy(a, rate) + adjoin.xlogy(a - 1, value) - rate * value - adjoin.lgamma(a)

    def entropy(self):
        """See the base."""
        a = self.concentration
        return a - self.rate.log() + adjoin.lgamma(a) + (1 - a) * adjoin.digamma(a)

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return adjoin.special.gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        (self.df,) = to_tensors(df)
        super().__init__(0.5 * self.df, adjoin.full_like(self.df, 0.5), validate_args=validate_args)

    def _expanded(self, made):
        made.concentration, made.rate = (x.expand(made.batch_shape) for x in (self.concentration, self.rate))


def _peak(concentration):
    """The shares of greatest density; where it is infinite at every corner, the corner of the greatest concentration."""
    more = (concentration - 1).clamp(min=0)
    corner = adjoin.nn.functional.one_hot(concentration.argmax(-1), concentration.shape[-1]).to(concentration.dtype)
    return adjoin.where((concentration < 1).all(-1, keepdim=True), corner, more / more.sum(-1, keepdim=True))


class Dirichlet(ExponentialFamily):
    """Shares that add to 1; density proportional to the product of x^(concentration - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, keepdim=True))
    mode = property(lambda self: _peak(self.concentration))
    _natural_params = property(lambda self: (self.concentration - 1,))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x):
        return adjoin.lgamma(x + 1).sum(-1) - adjoin.lgamma((x + 1).sum(-1))

    @property
    def variance(self):
        """See the base."""
        total = self.concentration.sum(-1, keepdim=True)
        return self.mean * (1 - self.mean) / (total + 1)

    def rsample(self, sample_shape=()):
        """See the base."""
        return dirichlet_samples(self._extended_shape(sample_shape), self.concentration)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        a = self.concentration
        return adjoin.xlogy(a - 1, value).sum(-1) + adjoin.lgamma(a.sum(-1)) - adjoin.lgamma(a).sum(-1)

    def entropy(self):
        """See the base."""
        a = self.concentration
        total = a.sum(-1)
        norm = adjoin.lgamma(a).sum(-1) - adjoin.lgamma(total)
        return norm - (a.shape[-1] - total) * adjoin.digamma(total) - ((a - 1) * adjoin.digamma(a)).sum(-1)


class Beta(ExponentialFamily):
    """A share in [0, 1]: Dirichlet's distribution of two."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = to_tensors(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    _total = property(lambda self: self.concentration1 + self.concentration0)
    mean = property(lambda self: self.concentration1 / self._total)
    mode = property(lambda self: _peak(self._both())[..., 0])
    variance = property(lambda self: self.mean * (1 - self.mean) / (self._total + 1))
    _natural_params = property(lambda self: (self.concentration1 - 1, self.concentration0 - 1))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x, y):
        return adjoin.lgamma(x + 1) + adjoin.lgamma(y + 1) - adjoin.lgamma(x + y + 2)

    def rsample(self, sample_shape=()):
        """See the base."""
        return dirichlet_samples((*self._extended_shape(sample_shape), 2), self._both())[..., 0]

    def _both(self):
        return adjoin.stack([self.concentration1, self.concentration0], -1)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return adjoin.xlogy(a - 1, value) + adjoin.xlogy(b - 1, 1 - value) - self._norm()

    def _norm(self):
        a, b = self.concentration1, self.concentration0
        return adjoin.lgamma(a) + adjoin.lgamma(b) - adjoin.lgamma(a + b)

    def entropy(self):
        """See the base."""
        a, b = self.concentration1, self.concentration0
        ends = (a - 1) * adjoin.digamma(a) + (b - 1) * adjoin.digamma(b)
        return self._norm() - ends + (a + b - 2) * adjoin.digamma(a + b)

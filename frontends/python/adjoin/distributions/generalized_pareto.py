"""adjoin.distributions.generalized_pareto: what is above a threshold, by Pickands, Balkema and de Haan."""

import math

import adjoin

from . import constraints
from .distribution import Distribution, to_tensors

_SMALL = 5e-3  # below, six terms of a series are exact, and have derivatives that are


class GeneralizedPareto(Distribution):
    """loc + scale * z of which z is above x with probability (1 + c x)^(-1 / c), for c = 0 exp(-x); c is the concentration."""

    arg_constraints = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = to_tensors(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From loc on; up to loc - scale / concentration where that is negative."""
        c = self.concentration
        end = self.loc - self.scale / adjoin.where(c < 0, c, -1.0)
        return constraints.interval(self.loc, adjoin.where(c < 0, end, math.inf))

    mode = property(lambda self: self.loc)

    @property
    def mean(self):
        """See the base; nan where there is none, from concentration = 1 on."""
        c = self.concentration
        return adjoin.where(c < 1, self.loc + self.scale / adjoin.where(c < 1, 1 - c, 1.0), math.nan)

    @property
    def variance(self):
        """See the base; nan where it is not finite, from concentration = 1 / 2 on."""
        c = self.concentration
        safe = adjoin.where(c < 0.5, c, 0.0)
        return adjoin.where(c < 0.5, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.nan)

    def _log_above(self, z):
        """The logarithm of the probability of more than z, and log(1 + c z)."""
        u, log = self.concentration * z, adjoin.log1p(self.concentration * z)
        near = u.abs() < _SMALL
        series = z * (1 - u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u / 6)))))
        return -adjoin.where(near, series, log / adjoin.where(near, 1.0, self.concentration)), log

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        above, log = self._log_above((value - self.loc) / self.scale)
        return above - log - self.scale.log()

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        return -adjoin.expm1(self._log_above((value - self.loc) / self.scale)[0])

    def icdf(self, value):
        """The inverse of cdf."""
        w = -adjoin.log1p(-value)
        u = self.concentration * w
        near = u.abs() < _SMALL
        series = w * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6)))))
        return self.loc + self.scale * adjoin.where(
            near, series, adjoin.expm1(u) / adjoin.where(near, 1.0, self.concentration)
        )

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.icdf(adjoin.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def entropy(self):
        """See the base."""
        return self.scale.log() + self.concentration + 1

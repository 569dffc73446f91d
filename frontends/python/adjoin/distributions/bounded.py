"""adjoin.distributions.bounded: VonMises, on the circle, and ContinuousBernoulli, between 0 and 1."""

import math

import adjoin

from . import constraints
from .discrete import _Bits
from .distribution import Distribution, to_tensors, uniform_inside
from .exponential_family import ExponentialFamily


class VonMises(Distribution):
    """Angles about loc, the more alike the larger the concentration; ``variance`` is the circular one."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = to_tensors(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1 - self._resultant())

    def _resultant(self):
        """The mean of cos(x - loc)."""
        return adjoin.special.i1e(self.concentration) / adjoin.special.i0e(self.concentration)

    def _log_norm(self):
        return math.log(2 * math.pi) + self.concentration + adjoin.special.i0e(self.concentration).log()

    def sample(self, sample_shape=()):
        """See the base: by rejection from a wrapped Cauchy distribution."""
        shape = self._extended_shape(sample_shape)
        with adjoin.no_grad():
            k = self.concentration.double().expand(shape)
            tau = 1 + (1 + 4 * k * k).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = adjoin.where(k < 1e-5, 1 / k, (1 + rho * rho) / (2 * rho))  # the quotient cancels where k is small
            found, wanted = adjoin.zeros_like(k), adjoin.ones_like(k, dtype=adjoin.bool)
            while wanted.any():
                z = (math.pi * uniform_inside(k)).cos()
                f = (1 + r * z) / (r + z)
                c, u = k * (r - f), uniform_inside(k)
                fits = wanted & ((c * (2 - c) > u) | ((c / u).log() + 1 - c >= 0))
                angle = (adjoin.rand_like(k) - 0.5).sign() * f.clamp(-1, 1).acos()
                found = adjoin.where(fits, angle, found)
                wanted = wanted & ~fits
            turned = adjoin.remainder(found + math.pi + self.loc, 2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return self.concentration * (value - self.loc).cos() - self._log_norm()

    def entropy(self):
        """See the base."""
        return self._log_norm() - self.concentration * self._resultant()


class ContinuousBernoulli(_Bits, ExponentialFamily):
    """Numbers between 0 and 1 of density proportional to probs^x (1 - probs)^(1 - x).

    It is exp(x t - A(t)) for the logit t: mean and variance are derivatives of A. ``lims`` is where other libraries
    begin a series about probs = 0.5; here it begins where each formula needs it.
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        super().__init__(probs, logits, validate_args)
        self._lims = lims

    _natural_params = property(lambda self: (self.logits,))
    _mean_carrier_measure = 0

    def _parts(self, t=None):
        """(t, its size or 1 where that is small, whether it is small)."""
        t = self.logits if t is None else t
        near = t.abs() < 0.1
        return t, adjoin.where(near, 1.0, t.abs()), near

    def _log_partition(self, t=None):
        t, size, near = self._parts(t)
        far = (-adjoin.expm1(-size) / size).log() + t.clamp(min=0)
        return adjoin.where(near, t / 2 + t**2 / 24 - t**4 / 2880, far)

    _log_normalizer = _log_partition

    @property
    def mean(self):
        """See the base."""
        t, size, near = self._parts()
        far = -1 / adjoin.expm1(-size) - 1 / size
        return adjoin.where(near, 0.5 + t / 12 - t**3 / 720, adjoin.where(t < 0, 1 - far, far))

    @property
    def variance(self):
        """See the base."""
        t, size, near = self._parts()
        far = 1 / size**2 - (-size).exp() / adjoin.expm1(-size) ** 2
        return adjoin.where(near, 1 / 12 - t**2 / 240 + t**4 / 6048, far)

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.icdf(uniform_inside(self._param.detach().expand(self._extended_shape(sample_shape))))

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return value * self.logits - self._log_partition()

    def cdf(self, value):
        """See the base."""
        self._validate_sample(value)
        t, size, near = self._parts()
        below = adjoin.where(t < 0, value, 1 - value)  # the share on the side of the smaller density falls off
        far = adjoin.expm1(-below * size) / adjoin.expm1(-size)
        share = adjoin.where(t < 0, far, 1 - far)
        middle = value + value * (value - 1) * t / 2 * (1 + (2 * value - 1) * t / 6)
        return adjoin.where(near, middle, share)

    def icdf(self, value):
        """The inverse of cdf."""
        t, size, near = self._parts()
        below = adjoin.where(t < 0, value, 1 - value)
        far = -adjoin.log1p(below * adjoin.expm1(-size)) / size
        safe = adjoin.where(t == 0, 1.0, adjoin.where(near, t, 1.0))
        middle = adjoin.where(t == 0, value + 0 * t, adjoin.log1p(value * adjoin.expm1(safe)) / safe)
        return adjoin.where(near, middle, adjoin.where(t < 0, far, 1 - far))

    def entropy(self):
        """See the base."""
        return self._log_partition() - self.logits * self.mean

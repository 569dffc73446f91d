"""adjoin.distributions.fisher_snedecor: the ratio of two variances."""

import adjoin

from . import constraints
from ._gamma_samples import gamma_samples
from .distribution import Distribution, to_tensors


class FisherSnedecor(Distribution):
    """(X / df1) / (Y / df2) of two chi-squared numbers of df1 and df2 degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = to_tensors(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        """See the base; nan where there is none, up to df2 = 2."""
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, float("nan"))

    @property
    def mode(self):
        """Where the density is greatest; nan up to df1 = 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self):
        """See the base; nan where there is none, up to df2 = 4."""
        a, b = self.df1, self.df2
        found = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return found.masked_fill(b <= 4, float("nan"))

    def rsample(self, sample_shape=()):
        """See the base."""
        x, y = (gamma_samples(self._extended_shape(sample_shape), df / 2) / df for df in (self.df1, self.df2))
        return (x / y).clamp(min=adjoin.finfo(x.dtype).tiny)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        norm = adjoin.lgamma(a) + adjoin.lgamma(b) - adjoin.lgamma(a + b)
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * adjoin.log1p(ratio * value) - norm

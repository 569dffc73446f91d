"""adjoin.distributions.logistic_normal: shares made of normal numbers."""

from . import constraints
from .continuous import Normal
from .distribution import put_into
from .joint import TransformedDistribution
from .vectors import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """n + 1 shares of n normal numbers, by StickBreakingTransform."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)

    def expand(self, batch_shape, _instance=None):
        """See the base."""
        base = self.base_dist.expand(batch_shape).base_dist
        _instance = self._get_checked_instance(LogisticNormal, _instance)
        return put_into(_instance, LogisticNormal(base.loc, base.scale, self._validate_args))

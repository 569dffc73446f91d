"""adjoin.distributions.relaxed: classes whose samples have derivatives: relaxed ones (Maddison and others, 2017; Jang and others,
2017), and one-hot vectors with a straight-through gradient (Bengio and others, 2013)."""

import adjoin

from . import constraints
from .discrete import Bernoulli, OneHotCategorical
from .distribution import Distribution, uniform_inside


class RelaxedBernoulli(Distribution):
    """A number in (0, 1) that tends to 0 or 1 as the temperature falls."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._bits = Bernoulli(probs, logits)
        super().__init__(self._bits.batch_shape, validate_args=validate_args)

    probs = property(lambda self: self._bits.probs)
    logits = property(lambda self: self._bits.logits)

    def _expanded(self, made):
        made._bits = self._bits.expand(made.batch_shape)

    def rsample(self, sample_shape=()):
        """See the base."""
        logits = self.logits.expand(self._extended_shape(sample_shape))
        u = uniform_inside(logits.detach())
        return adjoin.sigmoid((u.log() - adjoin.log1p(-u) + logits) / self.temperature)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        kind = adjoin.finfo(value.dtype)
        inside = value.clamp(kind.tiny, 1 - kind.eps)
        score = inside.log() - adjoin.log1p(-inside)
        away = self.logits - score * self.temperature
        density = adjoin.as_tensor(self.temperature).log() + away + 2 * adjoin.nn.functional.logsigmoid(-away)
        return density - inside.log() - adjoin.log1p(-inside)


class RelaxedOneHotCategorical(Distribution):
    """Shares that tend to a single 1 as the temperature falls."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._classes = OneHotCategorical(probs, logits)
        super().__init__(self._classes.batch_shape, self._classes.event_shape, validate_args)

    probs = property(lambda self: self._classes.probs)
    logits = property(lambda self: self._classes.logits)

    def _expanded(self, made):
        made._classes = self._classes.expand(made.batch_shape)

    def rsample(self, sample_shape=()):
        """See the base."""
        logits = self.logits.expand(self._extended_shape(sample_shape))
        gumbel = -(-uniform_inside(logits.detach()).log()).log()
        return ((logits + gumbel) / self.temperature).softmax(-1)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        k, temperature = self.event_shape[0], adjoin.as_tensor(self.temperature, dtype=value.dtype)
        logs = value.log()
        score = self.logits - logs * temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        scale = adjoin.lgamma(adjoin.tensor(float(k), dtype=value.dtype)) + (k - 1) * temperature.log()
        return score + scale - logs.sum(-1)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A class as a vector with a single 1, whose gradient is that of its probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        """See the base."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())

"""adjoin.distributions.counts: how often something happens: Binomial, Multinomial, NegativeBinomial."""

import adjoin

from . import constraints
from .discrete import Categorical, _Bits, _one_of
from .distribution import Distribution, to_tensors
from ._gamma_samples import draw_gamma


class _Count(_Bits):
    """What a number of trials and a probability (or its logit) describe."""

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        name = "logits" if probs is None else "probs"
        total, given = to_tensors(total_count, logits if probs is None else probs)
        self.total_count = total.to(given.dtype)
        self.__dict__[name] = given
        Distribution.__init__(self, given.shape, validate_args=validate_args)


class Binomial(_Count):
    """How many of total_count trials succeed, each with probability probs."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_Bits.arg_constraints}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(total_count, probs, logits, validate_args)

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        """See the base."""
        shape = self._extended_shape(sample_shape)
        with adjoin.no_grad():
            most = int(self.total_count.max())
            each = adjoin.rand((most, *shape), dtype=self.probs.dtype, device=self.probs.device)
            counted = adjoin.arange(most, device=each.device).reshape((-1,) + (1,) * len(shape)) < self.total_count
            return ((each < self.probs) & counted).sum(0).to(self.probs.dtype)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        ways = adjoin.lgamma(n + 1) - adjoin.lgamma(value + 1) - adjoin.lgamma(n - value + 1)
        return ways + value * logits + n * adjoin.nn.functional.logsigmoid(-logits)

    def entropy(self):
        """See the base."""
        if not bool((self.total_count == self.total_count.max()).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand=True):
        """See the base."""
        n = int(self.total_count.max())
        if int(self.total_count.min()) != n:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = adjoin.arange(1 + n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self.batch_shape))
        return values.expand((1 + n, *self.batch_shape)) if expand else values


class NegativeBinomial(_Count):
    """How many successes, each with probability probs, come before total_count failures."""

    arg_constraints = {"total_count": constraints.nonnegative, **_Bits.arg_constraints}
    support = constraints.nonnegative_integer
    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / adjoin.sigmoid(-self.logits))

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            return adjoin.poisson(draw_gamma(self._extended_shape(sample_shape), self.total_count) * self.logits.exp())

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        n, logsigmoid = self.total_count, adjoin.nn.functional.logsigmoid
        ways = adjoin.lgamma(n + value) - adjoin.lgamma(1 + value) - adjoin.lgamma(n)
        ways = adjoin.where(n + value == 0, 0.0, ways)
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + ways


class Multinomial(Distribution):
    """How often each class is drawn in total_count draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def _expanded(self, made):
        made._categorical = self._categorical.expand(made.batch_shape)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))
            return adjoin.nn.functional.one_hot(drawn, self.event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        ways = adjoin.lgamma(value.sum(-1) + 1) - adjoin.lgamma(value + 1).sum(-1)
        logits = adjoin.where((value == 0) & (self.logits == -float("inf")), 0.0, self.logits)
        return ways + (logits * value).sum(-1)

    def entropy(self):
        """See the base."""
        n = adjoin.tensor(float(self.total_count), dtype=self.probs.dtype)
        each = Binomial(self.total_count, self.probs)
        values = each.enumerate_support(False)[1:]
        weight = (each.log_prob(values).exp() * adjoin.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - adjoin.lgamma(n + 1) + weight

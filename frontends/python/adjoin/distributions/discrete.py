"""adjoin.distributions.discrete: distributions of classes and whole numbers, by probabilities or by logits."""

import adjoin
from adjoin.nn import functional as F

from . import constraints
from .distribution import Distribution, to_tensors
from .exponential_family import ExponentialFamily


def _one_of(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class _Bits(Distribution):
    """What one probability describes."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        if probs is None:
            (self.logits,) = to_tensors(logits)
        else:
            (self.probs,) = to_tensors(probs)
        super().__init__(self._param.shape, validate_args=validate_args)

    _param = property(lambda self: self.__dict__.get("probs", self.__dict__.get("logits")))
    param_shape = property(lambda self: self._param.shape)

    def __getattr__(self, name):
        if name == "probs":
            return self.logits.sigmoid() if "logits" in self.__dict__ else None
        if name == "logits" and "probs" in self.__dict__:
            eps = adjoin.finfo(self.probs.dtype).eps
            clear = self.probs.clamp(eps, 1 - eps)
            return clear.log() - adjoin.log1p(-clear)
        raise AttributeError(name)


class Bernoulli(_Bits, ExponentialFamily):
    """1 with probability probs, otherwise 0."""

    support = constraints.boolean
    has_enumerate_support = True
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    _natural_params = property(lambda self: (self.logits,))
    _mean_carrier_measure = 0

    def _log_normalizer(self, x):
        return F.softplus(x)

    mode = property(lambda self: (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, float("nan")))

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            return adjoin.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        logits, value = adjoin.broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        """See the base."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        """See the base."""
        values = adjoin.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((2,) + (1,) * len(self.batch_shape))
        return values.expand((2, *self.batch_shape)) if expand else values


class Geometric(_Bits):
    """How often 0 comes before the first 1."""

    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits, validate_args)
        if self._checks_values() and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(f"Expected parameter probs of Geometric to be positive but found {self.probs}")

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: adjoin.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            u = adjoin.rand(probs.shape, dtype=probs.dtype, device=probs.device).clamp(
                min=adjoin.finfo(probs.dtype).tiny
            )
            return (u.log() / adjoin.log1p(-probs)).floor()

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        probs = self.probs
        return adjoin.where((probs == 1) & (value == 0), 0.0, value * adjoin.log1p(-probs)) + probs.log()

    def entropy(self):
        """See the base."""
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    """One of the classes 0 to K - 1; the last dimension of probs (of any sum) or logits is the classes'."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def __getattr__(self, name):
        if name == "probs" and "logits" in self.__dict__:
            return self.logits.softmax(-1)
        if name == "logits" and "probs" in self.__dict__:
            eps = adjoin.finfo(self.probs.dtype).eps
            return self.probs.clamp(eps, 1 - eps).log()
        raise AttributeError(name)

    _param = property(lambda self: self.__dict__.get("probs", self.__dict__.get("logits")))
    param_shape = property(lambda self: self._param.shape)
    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1), is_discrete=True, event_dim=0
    )
    mean = variance = property(lambda self: adjoin.full(self.batch_shape, float("nan"), dtype=self._param.dtype))
    mode = property(lambda self: self._param.argmax(-1))

    def sample(self, sample_shape=()):
        """See the base."""
        count = 1
        for size in sample_shape:
            count *= size
        with adjoin.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = (
                adjoin.multinomial(rows, count, replacement=True)
                if count
                else rows.new_zeros((rows.shape[0], 0)).long()
            )
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        shape = adjoin.broadcast_shapes(value.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self):
        """See the base."""
        logits = self.logits.clamp(min=adjoin.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        """See the base."""
        values = adjoin.arange(self._num_events, device=self._param.device)
        values = values.reshape((-1,) + (1,) * len(self.batch_shape))
        return values.expand((self._num_events, *self.batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """A class as a vector with a single 1."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=False)
        self._validate_args = self._categorical._validate_args

    probs = mean = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: self._vector(self._categorical.mode))

    def _vector(self, classes):
        return F.one_hot(classes, self.event_shape[0]).to(self._categorical._param.dtype)

    def expand(self, batch_shape, _instance=None):
        """See the base."""
        made = type(self).__new__(type(self)) if _instance is None else _instance
        made._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(made, batch_shape, self.event_shape, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def sample(self, sample_shape=()):
        """See the base."""
        return self._vector(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        """See the base."""
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        """See the base."""
        return self._vector(self._categorical.enumerate_support(expand))


class Poisson(ExponentialFamily):
    """How many events of a rate happen; samples by multiplication (Knuth, 1969), so for rates up to a few hundred."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        (self.rate,) = to_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x):
        return x.exp()

    def sample(self, sample_shape=()):
        """See the base."""
        with adjoin.no_grad():
            left = self.rate.expand(self._extended_shape(sample_shape)).clone()
            made = adjoin.zeros_like(left)
            while True:  # waiting times, until they fill the unit of time
                left = left + adjoin.rand_like(left).clamp(min=adjoin.finfo(left.dtype).tiny).log()
                more = left > 0
                if not more.any():
                    return made
                made = made + more

    def log_prob(self, value):
        """See the base."""
        self._validate_sample(value)
        return adjoin.xlogy(value, self.rate) - self.rate - adjoin.lgamma(value + 1)

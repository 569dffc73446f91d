"""adjoin.distributions.distribution: what all distributions share: shapes, checks of parameters and values."""

import warnings

import adjoin

from . import constraints

EULER = 0.57721566490153286060  # Euler's constant: minus the mean logarithm of an exponential variable


def uniform_inside(t):
    """Uniform in (0, 1), in the shape of t: at the ends logarithms are infinite."""
    eps = adjoin.finfo(t.dtype).eps
    return adjoin.rand_like(t).clamp(eps, 1 - eps)


def set_default_validate_args(value):
    """Whether distributions check their parameters and values unless told."""
    if value not in (True, False):
        raise ValueError(f"set_default_validate_args: {value!r} is neither True nor False")
    Distribution._validate_args = value


def to_tensors(*values):
    """Numbers and tensors as tensors of one shape."""
    given = [v for v in values if isinstance(v, adjoin.Tensor)]
    kind = {"dtype": given[0].dtype, "device": given[0].device} if given else {"dtype": adjoin.get_default_dtype()}
    return adjoin.broadcast_tensors(*(v if isinstance(v, adjoin.Tensor) else adjoin.tensor(v, **kind) for v in values))


def put_into(instance, made):
    """What expand() gives: what was made, or the object of a subclass that wants its contents."""
    if instance is None:
        return made
    instance.__dict__.update(made.__dict__)
    return instance


class Distribution:
    """Base: values of shape ``event_shape``, drawn with parameters of shape ``batch_shape`` independently.

    A subclass names the constraints of its parameters in ``arg_constraints`` and of its values in ``support``.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__  # of a class, of a subclass, of one object

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = adjoin.Size(batch_shape), adjoin.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._checks_values():
            return
        for name, constraint in self._stated("arg_constraints", {}, "arg_constraints = {}").items():
            value = self.__dict__.get(name)
            if value is None or constraints.is_dependent(constraint):  # another parameter says the same
                continue
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def arg_constraints(self):
        """{name of a parameter: its constraint}."""
        raise NotImplementedError(f"{type(self)} does not define `arg_constraints`")

    @property
    def support(self):
        """The constraint of the values."""
        raise NotImplementedError(f"{type(self)} does not define `support`")

    def _checks_values(self):
        """A trace records no decisions, so nothing is checked there."""
        return self._validate_args and not adjoin.jit.is_tracing()

    def _stated(self, name, otherwise, empty):
        """What a subclass says of its constraints; one that says nothing is told how."""
        try:
            return getattr(self, name)
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `{name}`. Please set `{empty}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return otherwise

    @property
    def batch_shape(self):
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self):
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self):
        """Where the density, or the probability, is greatest."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Values, without derivatives: sample_shape x batch_shape x event_shape."""
        with adjoin.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Values as functions of the parameters, for those distributions that have ``has_rsample``."""
        raise NotImplementedError(f"{type(self).__name__}: samples have no derivatives; use sample()")

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at value."""
        raise NotImplementedError

    def entropy(self):
        """The entropy in nats."""
        raise NotImplementedError

    def perplexity(self):
        """exp of the entropy."""
        return adjoin.exp(self.entropy())

    def cdf(self, value):
        """The probability of what is not above value."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values, along a new first dimension."""
        raise NotImplementedError

    def _get_checked_instance(self, cls, _instance=None):
        """The object that a class's expand() fills: a subclass with another __init__ has to give it, as it alone knows the rest."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                ".expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape, _instance=None):
        """The same distribution with parameters of a larger shape."""
        made = type(self).__new__(type(self)) if _instance is None else _instance
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in made.__dict__})
        for name in self._parameters():
            value = self.__dict__.get(name)
            if value is not None:
                events = value.shape[len(self._batch_shape) :]
                made.__dict__[name] = value.expand(tuple(batch_shape) + tuple(events))
        made._batch_shape = adjoin.Size(batch_shape)
        made._validate_args = False
        self._expanded(made)
        made._validate_args = self._validate_args
        return made

    def _parameters(self):
        try:
            return tuple(self.arg_constraints)
        except NotImplementedError:
            return ()

    def _expanded(self, made):
        """What else expand() has to do in a subclass."""

    def _extended_shape(self, sample_shape=()):
        return adjoin.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        """Raises ValueError unless value could be a sample."""
        if not self._validate_args:
            return
        if not isinstance(value, adjoin.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if tuple(value.shape[value.dim() - events :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        try:
            adjoin.broadcast_shapes(tuple(value.shape[: value.dim() - events]), tuple(self._batch_shape))
        except RuntimeError:
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {self._batch_shape + self._event_shape}."
            ) from None
        if not self._checks_values():
            return
        support = self._stated("support", constraints.dependent, "support = constraints.dependent")
        if not (constraints.is_dependent(support) or support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self):
        found = []
        for name in self._parameters():
            value = self.__dict__.get(name)
            if value is not None:
                found.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(found)})"

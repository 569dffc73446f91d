"""adjoin.distributions.mixture: a mixture of distributions of one family."""

import adjoin

from . import constraints
from .discrete import Categorical
from .distribution import Distribution, put_into


class MixtureSameFamily(Distribution):
    """A component is drawn from a Categorical, the value from that component: the last of its batch's dimensions."""

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily: the mixture must be a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("MixtureSameFamily: the components must be a Distribution")
        batch, events = tuple(component_distribution.batch_shape[:-1]), component_distribution.event_shape
        many = mixture_distribution.probs.shape[-1]
        if not component_distribution.batch_shape or component_distribution.batch_shape[-1] != many:
            raise ValueError(
                f"MixtureSameFamily: {many} weights do not fit components of batch shape {tuple(component_distribution.batch_shape)}"
            )
        adjoin.broadcast_shapes(tuple(mixture_distribution.batch_shape), batch)
        self._mixture, self._component = mixture_distribution, component_distribution
        super().__init__(batch, events, validate_args)

    @property
    def mixture_distribution(self):
        """Which component is drawn."""
        return self._mixture

    @property
    def component_distribution(self):
        """The components."""
        return self._component

    @constraints.dependent_property
    def support(self):
        """Where the components have theirs."""
        return self._component.support

    def _weights(self):
        return self._mixture.probs.reshape(tuple(self._mixture.probs.shape) + (1,) * len(self._event_shape))

    def _place(self):
        return -1 - len(self._event_shape)

    @property
    def mean(self):
        """The weighted mean of the means."""
        return (self._weights() * self._component.mean).sum(self._place())

    @property
    def variance(self):
        """The mean of the variances and the variance of the means."""
        apart = (self._component.mean - self.mean.unsqueeze(self._place())) ** 2
        return (self._weights() * (self._component.variance + apart)).sum(self._place())

    def cdf(self, x):
        """The probability of what is not above x."""
        return (self._component.cdf(x.unsqueeze(self._place())) * self._mixture.probs).sum(-1)

    def log_prob(self, x):
        """The logarithm of the density at x."""
        self._validate_sample(x)
        each = self._component.log_prob(x.unsqueeze(self._place()))
        return adjoin.logsumexp(each + adjoin.log_softmax(self._mixture.logits, -1), -1)

    def sample(self, sample_shape=()):
        """Values: sample_shape x batch_shape x event_shape."""
        with adjoin.no_grad():
            values = self._component.sample(sample_shape)
            chosen = self._mixture.expand(self._batch_shape).sample(sample_shape)
            chosen = chosen.reshape(tuple(chosen.shape) + (1,) * (1 + len(self._event_shape)))
            wanted = [*values.shape]
            wanted[self._place()] = 1
            return values.gather(values.dim() + self._place(), chosen.expand(wanted)).squeeze(self._place())

    def expand(self, batch_shape, _instance=None):
        """The same mixture with a larger batch."""
        component = self._component.expand((*batch_shape, self._component.batch_shape[-1]))
        _instance = self._get_checked_instance(MixtureSameFamily, _instance)
        return put_into(_instance, MixtureSameFamily(self._mixture.expand(batch_shape), component, self._validate_args))

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture},\n  {self._component})"

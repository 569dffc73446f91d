"""adjoin.distributions.exponential_family: densities exp(natural parameters x statistics - log normalizer), and what follows from
that."""

import adjoin

from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Base of distributions with the density exp(t(x) p - F(p)) h(x).

    A subclass gives the natural parameters p as the tuple ``_natural_params``, F as ``_log_normalizer(*p)``, and as
    ``_mean_carrier_measure`` the expected log h(x). Entropy and divergence within a class follow from them.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__}: _natural_params is not given; a subclass has to give it")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__}: _log_normalizer is not given; a subclass has to give it")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(
            f"{type(self).__name__}: _mean_carrier_measure is not given; a subclass has to give it"
        )

    def entropy(self):
        """By the derivatives of the log normalizer, which are the expected statistics: F(p) - p F'(p) - E log h."""
        carrier = self._mean_carrier_measure
        normalizer, pairs = self._expected()
        return normalizer - carrier - sum(self._inner(p, mean) for p, mean in pairs)

    def _expected(self):
        """F(p), and pairs of a natural parameter and the expectation of its statistic."""
        with adjoin.enable_grad():
            params = [p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*params)
            means = adjoin.autograd.grad(normalizer.sum(), params, create_graph=True)
        if not any(p.requires_grad for p in self._natural_params):  # nobody asked for derivatives
            normalizer, means = normalizer.detach(), [mean.detach() for mean in means]
        return normalizer, list(zip(self._natural_params, means, strict=True))

    def _inner(self, a, b):
        return (a * b).reshape((*self._batch_shape, -1)).sum(-1)


def bregman(p, q):
    """The Kullback-Leibler divergence of two of one class: the Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}: two exponential families "
            "share no log normalizer; register_kl() adds a formula"
        )
    normalizer, pairs = p._expected()
    others = q._natural_params
    found = q._log_normalizer(*others) - normalizer
    for (param, mean), other in zip(pairs, others, strict=True):
        product = (other - param) * mean
        found = found - product.reshape((*found.shape, -1)).sum(-1)
    return found

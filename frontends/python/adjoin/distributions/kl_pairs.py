"""adjoin.distributions.kl_pairs: Kullback-Leibler divergences of two classes: minus the entropy of p, minus the expected log density of q,
which is made of moments of p. Where p has values that q has not, the divergence is infinite."""

import math

import adjoin

from .bounded import ContinuousBernoulli
from .continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from .counts import Binomial
from .discrete import Bernoulli, Poisson
from .distribution import EULER
from .gamma import Beta, Gamma
from .kl import register_kl
from .tails import Pareto

_INF = math.inf


def _ends(d):
    """Between which numbers the values are."""
    if isinstance(d, Uniform):
        return d.low, d.high
    if isinstance(d, Pareto):
        return d.scale, _INF
    if isinstance(d, (Beta, ContinuousBernoulli)):
        return 0.0, 1.0
    return (0.0, _INF) if isinstance(d, (Exponential, Gamma)) else (-_INF, _INF)


def _mean_of_log(p):
    """E log x."""
    if isinstance(p, Beta):
        return adjoin.digamma(p.concentration1) - adjoin.digamma(p._total)
    if isinstance(p, Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    if isinstance(p, Uniform):
        return _mean_of_log_between(p.low, p.high)
    return adjoin.digamma(p.concentration) - p.rate.log()  # of a Gamma


def _mean_of_log_between(low, high):
    """E log x of a uniform number; outside of the positive ones the result is not used."""
    low, high = low.clamp(min=0), high.clamp(min=0)
    return (adjoin.xlogy(high, high) - adjoin.xlogy(low, low)) / (high - low) - 1


def _mean_of_exp(p, slope):
    """E exp(-slope x)."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + slope)
    if isinstance(p, Gamma):
        return (1 + slope / p.rate) ** -p.concentration
    if isinstance(p, Normal):
        return ((slope * p.scale) ** 2 / 2 - slope * p.loc).exp()
    if isinstance(p, Uniform):
        return ((-slope * p.low).exp() - (-slope * p.high).exp()) / (slope * (p.high - p.low))
    raise AssertionError(f"E exp(-s x) of {type(p).__name__}")


def _log_exponential(p, q):
    return q.rate.log() - q.rate * p.mean


def _log_gamma(p, q):
    a, rate = q.concentration, q.rate
    return adjoin.xlogy(a, rate) - adjoin.lgamma(a) + (a - 1) * _mean_of_log(p) - rate * p.mean


def _log_normal(p, q):
    apart = p.variance + (p.mean - q.loc) ** 2
    return -0.5 * (math.log(2 * math.pi) + apart / q.scale**2) - q.scale.log()


def _log_gumbel(p, q):
    slope = 1 / q.scale
    return -q.scale.log() - (p.mean - q.loc) * slope - (q.loc * slope).exp() * _mean_of_exp(p, slope)


def _log_laplace(p, q):
    """By the mean of the folded normal distribution."""
    apart = (p.loc - q.loc) / p.scale
    size = math.sqrt(2 / math.pi) * (-(apart**2) / 2).exp() + apart * adjoin.erf(apart / math.sqrt(2))
    return -(2 * q.scale).log() - p.scale * size / q.scale


def _log_uniform(p, q):
    return -(q.high - q.low).log()


def _log_pareto(p, q):
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_of_log(p)


def _log_beta(p, q):
    """Of a uniform number: 1 - x is one, too."""
    other = _mean_of_log_between(1 - p.high, 1 - p.low)
    return (q.concentration1 - 1) * _mean_of_log(p) + (q.concentration0 - 1) * other - q._norm()


def _log_continuous_bernoulli(p, q):
    return q.logits * p.mean - q._log_partition()


def _infinite(p, q):
    """q has no density where p has values, whatever the parameters."""
    return adjoin.full_like(p.mean + q.mean, _INF)


def _by_moments(log):
    def divergence(p, q):
        found = -p.entropy() - log(p, q)
        (low, high), (first, last) = _ends(p), _ends(q)
        outside = (adjoin.as_tensor(low) < adjoin.as_tensor(first)) | (adjoin.as_tensor(high) > adjoin.as_tensor(last))
        return adjoin.where(outside.to(found.device), _INF, found)

    return divergence


_OF_Q = {
    Exponential: _log_exponential, Gamma: _log_gamma, Normal: _log_normal, Gumbel: _log_gumbel, Laplace: _log_laplace,
    Uniform: _log_uniform, Pareto: _log_pareto, Beta: _log_beta, ContinuousBernoulli: _log_continuous_bernoulli,
}  # fmt: skip

_PAIRS = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}

_NEVER = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}

for _p, _others in _PAIRS.items():
    for _q in _others:
        register_kl(_p, _q)(_by_moments(_OF_Q[_q]))
for _p, _others in _NEVER.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    """x! is 1 for 0 and 1."""
    return -p.entropy() - p.probs * q.rate.log() + q.rate

"""adjoin.distributions.kl: the Kullback-Leibler divergence of two distributions, by a table of pairs."""

import math

import adjoin
from adjoin.nn import functional as F

from ._linear import solve_lower
from .bounded import ContinuousBernoulli, VonMises
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .counts import Binomial
from .discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import EULER
from .elementwise import sum_last
from .exponential_family import ExponentialFamily, bregman
from .gamma import Beta, Dirichlet, Gamma
from .joint import HalfNormal, Independent, MultivariateNormal, TransformedDistribution
from .low_rank import LowRankMultivariateNormal
from .tails import HalfCauchy, InverseGamma, Kumaraswamy, Pareto, Weibull

_KL_REGISTRY = {}  # (class of p, class of q) -> function; libraries look for their bases in it


def register_kl(type_p, type_q):
    """A decorator: the function computes kl_divergence(p, q) for p and q of these classes."""

    def decorate(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return decorate


def kl_divergence(p, q):
    """The expectation under p of log(p / q)."""
    for of_p in type(p).__mro__:
        for of_q in type(q).__mro__:
            if (of_p, of_q) in _KL_REGISTRY:
                return _KL_REGISTRY[of_p, of_q](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p._normal, q._normal)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return adjoin.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + adjoin.lgamma(b)
        - adjoin.lgamma(a)
        + (a - b) * adjoin.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Beta, Beta)
def _beta(p, q):
    sums = p._total
    near = (p.concentration1 - q.concentration1) * adjoin.digamma(p.concentration1)
    far = (p.concentration0 - q.concentration0) * adjoin.digamma(p.concentration0)
    return q._norm() - p._norm() + near + far + (q._total - sums) * adjoin.digamma(sums)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    norms = adjoin.lgamma(total.squeeze(-1)) - adjoin.lgamma(b.sum(-1)) - (adjoin.lgamma(a) - adjoin.lgamma(b)).sum(-1)
    return norms + ((a - b) * (adjoin.digamma(a) - adjoin.digamma(total))).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    """By logits, which tell probabilities near 1 apart; a case that never happens adds nothing, one that q has not is infinite."""

    def case(share, of_q, sign):
        found = share * (F.softplus(sign * q.logits) - F.softplus(sign * p.logits))
        found = adjoin.where(of_q == 0, math.inf, found)
        return adjoin.where(share == 0, 0.0, found)

    return case(p.probs, q.probs, -1) + case(1 - p.probs, 1 - q.probs, 1)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - adjoin.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = adjoin.where((q.probs == 0).expand(terms.shape), math.inf, terms)
    return adjoin.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: the two Independent reinterpret different numbers of dimensions")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(VonMises, VonMises)
def _von_mises(p, q):
    near = p.concentration - q.concentration * (p.loc - q.loc).cos()
    return q._log_norm() - p._log_norm() + p._resultant() * near


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.logits - q.logits) * p.mean + q._log_partition() - p._log_partition()


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Low Rank Multivariate Normals with different event shapes cannot be computed"
        )
    reduced, diagonal = q._reduced(), q.cov_diag.unsqueeze(-1)
    wide = ((p.cov_factor.square() / diagonal).sum(-1) + p.cov_diag / q.cov_diag).sum(-1)
    less = (reduced @ p.cov_factor).square().sum((-1, -2)) + (reduced.square() * p.cov_diag.unsqueeze(-2)).sum((-1, -2))
    apart = q._distance(q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (wide - less + apart - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    spread = solve_lower(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril).square().sum(-1).sum(-1)
    apart = solve_lower(q._unbroadcasted_scale_tril, (q.loc - p.loc).unsqueeze(-1)).square().sum(-1).sum(-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread + apart - p.event_shape[0])


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    """q of fewer trials lacks values of p; with more, the numbers of ways have no closed form."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * _bernoulli(p, q)
    return adjoin.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Chyzak and Nielsen (2019)."""
    return (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p, q):
    return ((p.scale + q.scale) ** 2 / (4 * p.scale * q.scale)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + apart + ratio * EULER + (adjoin.lgamma(1 + ratio) - apart).exp() - 1 - EULER


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return adjoin.where(p.scale < q.scale, math.inf, found)


@register_kl(Weibull, Weibull)
def _weibull(p, q):
    """Bauckhage (2013)."""
    k, m = p.concentration, q.concentration
    spread = (p.scale / q.scale) ** m * adjoin.lgamma(m / k + 1).exp()
    return (
        k.log() - k * p.scale.log() - m.log() + m * q.scale.log() + (k - m) * (p.scale.log() - EULER / k) + spread - 1
    )


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p, q):
    return _gamma(p, q)  # 1 / x changes no divergence


@register_kl(Kumaraswamy, Kumaraswamy)
def _kumaraswamy(p, q):
    """-log(1 - x^a) is exponential of rate b; of two unlike a there is no closed form."""
    if not bool((p.concentration1 == q.concentration1).all()):
        raise NotImplementedError("KL between Kumaraswamys of different concentration1 is not implemented")
    ratio = q.concentration0 / p.concentration0
    return ratio - 1 - ratio.log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    """What one transform makes of both changes no divergence."""
    if p.transforms != q.transforms:
        raise NotImplementedError("kl_divergence: the two distributions are transformed differently")
    if p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two transformed distributions have different event shapes")
    found = kl_divergence(p.base_dist, q.base_dist)
    return sum_last(found, len(p.event_shape) - len(p.base_dist.event_shape))


register_kl(ExponentialFamily, ExponentialFamily)(bregman)

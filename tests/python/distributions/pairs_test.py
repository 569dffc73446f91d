"""tests/python/distributions/pairs_test.py: divergences of two classes against sums over a fine grid, peaks of densities, inverses of
cumulative ones, transforms that keep, and what programs ask of classes before anything is made."""

import math
import pickle

import adjoin
import pytest
from adjoin import distributions as D
from adjoin.distributions import constraints


def t(*values):
    return adjoin.tensor(values, dtype=adjoin.float64)


ONE = {
    "beta": D.Beta(t(2.0), t(3.0)), "bernoulli": D.ContinuousBernoulli(probs=t(0.3)), "exponential": D.Exponential(t(1.7)),
    "gamma": D.Gamma(t(2.5), t(1.5)), "gumbel": D.Gumbel(t(0.3), t(0.8)), "laplace": D.Laplace(t(0.2), t(0.6)), "normal": D.Normal(t(-0.3), t(0.7)),
    "pareto": D.Pareto(t(1.2), t(5.0)), "uniform": D.Uniform(t(1.3), t(2.1)), "inner": D.Uniform(t(0.2), t(0.9)), "outer": D.Uniform(t(-0.5), t(1.5)),
    "weibull": D.Weibull(t(1.1), t(1.6)), "cauchy": D.Cauchy(t(0.1), t(1.3)), "half_cauchy": D.HalfCauchy(t(1.3)), "inverse": D.InverseGamma(t(3.0), t(2.0)),
    "kumaraswamy": D.Kumaraswamy(t(2.0), t(3.0)),
}  # fmt: skip
OTHER = {
    "gumbel": D.Gumbel(t(-0.2), t(1.1)), "pareto": D.Pareto(t(1.0), t(4.0)), "weibull": D.Weibull(t(0.9), t(2.1)), "cauchy": D.Cauchy(t(0.4), t(0.9)),
    "half_cauchy": D.HalfCauchy(t(0.7)), "inverse": D.InverseGamma(t(2.5), t(1.0)), "kumaraswamy": D.Kumaraswamy(t(2.0), t(1.4)),
    "bernoulli": D.ContinuousBernoulli(logits=t(30.0)),
}  # fmt: skip


def expected(p, q):
    """The integral of p log(p / q), by the midpoints of equal shares of probability where there is an inverse."""
    if isinstance(p, D.Beta):
        x = (adjoin.arange(200_000, dtype=adjoin.float64) + 0.5) / 200_000
        weight = p.log_prob(x).exp() / 200_000
    elif isinstance(p, (D.Gamma, D.InverseGamma)):
        x = (adjoin.arange(400_000, dtype=adjoin.float64) + 0.5) * 2e-4
        weight = p.log_prob(x).exp() * 2e-4
    else:
        share = (adjoin.arange(400_000, dtype=adjoin.float64) + 0.5) / 400_000
        x, weight = p.icdf(share), 1 / 400_000
    return float(((p.log_prob(x) - q.log_prob(x)) * weight).sum())


FINITE = [
    ("beta", "bernoulli"), ("beta", "exponential"), ("beta", "gamma"), ("beta", "normal"), ("beta", "outer"), ("bernoulli", "exponential"),
    ("bernoulli", "normal"), ("bernoulli", "outer"), ("exponential", "gamma"), ("exponential", "gumbel"), ("exponential", "normal"),
    ("gamma", "exponential"), ("gamma", "gumbel"), ("gamma", "normal"), ("gumbel", "normal"), ("laplace", "normal"), ("normal", "gumbel"),
    ("normal", "laplace"), ("pareto", "exponential"), ("pareto", "gamma"), ("pareto", "normal"), ("inner", "beta"), ("inner", "bernoulli"),
    ("uniform", "exponential"), ("uniform", "gamma"), ("uniform", "gumbel"), ("uniform", "normal"), ("uniform", "pareto"),
]  # fmt: skip


@pytest.mark.parametrize("p, q", FINITE)
def test_divergences_of_two_classes(p, q):
    assert D.kl_divergence(ONE[p], ONE[q]).item() == pytest.approx(expected(ONE[p], ONE[q]), rel=2e-3)


@pytest.mark.parametrize("name", OTHER)
def test_divergences_within_a_class(name):
    p, q = ONE[name], OTHER[name]
    assert D.kl_divergence(p, q).item() == pytest.approx(expected(p, q), rel=5e-3)
    assert D.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    "p, q",
    [("uniform", "beta"), ("outer", "exponential"), ("inner", "pareto"), ("beta", "uniform"), ("beta", "pareto"), ("normal", "gamma"),
     ("exponential", "uniform"), ("gamma", "beta"), ("gumbel", "pareto"), ("laplace", "bernoulli"), ("pareto", "outer"), ("uniform", "inner")],
)  # fmt: skip
def test_divergences_are_infinite_where_q_has_no_density(p, q):
    assert D.kl_divergence(ONE[p], ONE[q]).item() == math.inf


def test_divergences_of_counts():
    p, q = D.Binomial(5, t(0.2, 0.7)), D.Binomial(5, t(0.4, 0.7))
    x = p.enumerate_support()
    wanted = (p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))).sum(0)
    assert adjoin.allclose(D.kl_divergence(p, q), wanted)
    assert D.kl_divergence(p, D.Binomial(4, t(0.2, 0.7))).isinf().all()
    with pytest.raises(NotImplementedError, match="total_count"):
        D.kl_divergence(D.Binomial(4, t(0.2)), p)
    bit, rate = D.Bernoulli(t(0.3)), D.Poisson(t(2.0))
    x = bit.enumerate_support()
    wanted = (bit.log_prob(x).exp() * (bit.log_prob(x) - rate.log_prob(x))).sum(0)
    assert adjoin.allclose(D.kl_divergence(bit, rate), wanted)
    assert D.kl_divergence(rate, bit).item() == math.inf
    sure = D.Bernoulli(probs=t(0.0, 1.0, 1.0))
    assert D.kl_divergence(sure, sure).tolist() == [0, 0, 0]
    assert D.kl_divergence(sure, D.Bernoulli(probs=t(0.0, 1.0, 0.0))).tolist() == [0, 0, math.inf]
    far = D.kl_divergence(D.Bernoulli(logits=t(60.0)), D.Bernoulli(logits=t(50.0)))
    assert far.item() == pytest.approx(math.exp(-50), rel=1e-3)


def test_divergences_of_transformed_distributions():
    def made(loc):
        return D.TransformedDistribution(D.Normal(loc, t(1.0, 2.0)), [D.ExpTransform()])

    p, q = made(t(0.0, 1.0)), made(t(1.0, 1.0))
    assert adjoin.allclose(D.kl_divergence(p, q), D.kl_divergence(p.base_dist, q.base_dist))
    assert adjoin.allclose(D.kl_divergence(D.LogNormal(t(0.0), t(1.0)), D.LogNormal(t(1.0), t(1.0))), t(0.5))
    shares = D.LogisticNormal(t(0.0, 1.0), t(1.0, 1.0)), D.LogisticNormal(t(1.0, 1.0), t(1.0, 1.0))
    assert D.kl_divergence(*shares).item() == pytest.approx(0.5)
    with pytest.raises(NotImplementedError, match="transformed differently"):
        D.kl_divergence(p, D.TransformedDistribution(p.base_dist, [D.SigmoidTransform()]))


@pytest.mark.parametrize("name", ["beta", "gamma", "weibull", "kumaraswamy", "pareto", "gumbel", "inverse"])
def test_the_mode_has_the_greatest_density(name):
    d = ONE[name]
    peak = d.log_prob(d.mode)
    for away in (0.9, 0.99, 1.01, 1.1):
        near = d.mode * away
        inside = d.support.check(near)
        assert (~inside | (d.log_prob(near.where(inside, d.mode)) <= peak)).all()


def test_modes_of_shares():
    assert D.Dirichlet(t(2.0, 2.0, 1.0)).mode.tolist() == [0.5, 0.5, 0]
    assert D.Dirichlet(t(0.2, 0.5, 0.2)).mode.tolist() == [0, 1, 0]
    assert D.Dirichlet(t(1.0, 1.0)).mode.isnan().all()
    assert D.Beta(t(2.0, 3.0), t(3.0, 0.8)).mode.tolist() == pytest.approx([1 / 3, 1])
    assert D.Independent(D.Normal(t(1.0, 2.0), t(1.0, 1.0)), 1).mode.tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        _ = D.Multinomial(2, t(0.5, 0.5)).mode


@pytest.mark.parametrize("name", ["pareto", "weibull", "kumaraswamy"])
def test_icdf_is_the_inverse(name):
    share = t(0.01, 0.3, 0.5, 0.999)
    assert adjoin.allclose(ONE[name].cdf(ONE[name].icdf(share)), share)


@pytest.mark.parametrize("name", ["gamma", "inverse"])
def test_cdf_is_the_integral_of_the_density(name):
    d, x = ONE[name], (adjoin.arange(40_000, dtype=adjoin.float64) + 0.5) * 1e-4
    assert float(d.log_prob(x).exp().sum() * 1e-4) == pytest.approx(float(d.cdf(t(4.0))), rel=1e-6)
    assert D.Gamma(2.0, 1.0).log_prob(3).item() == pytest.approx(math.log(3) - 3)


def test_small_shares_are_neither_zero_nor_one():
    adjoin.manual_seed(3)
    drawn = D.Beta(adjoin.tensor(1e-2), adjoin.tensor(1e-2)).sample((20_000,))
    assert ((drawn > 0) & (drawn < 1)).all()
    assert 0.45 < (drawn < 0.1).float().mean() < 0.55 and 0.45 < (drawn > 0.9).float().mean() < 0.55
    a = t(1e-2, 1e-2).requires_grad_()
    D.Dirichlet(a).rsample((1000,))[:, 0].sum().backward()
    assert a.grad.isfinite().all()
    # The mean of the slopes is the slope of the mean: E x = a / (a + b).
    a, b = t(0.05).requires_grad_(), t(0.1)
    D.Beta(a, b).rsample((200_000,)).mean().backward()
    assert a.grad.item() == pytest.approx(0.1 / 0.15**2, rel=0.05)


def test_an_own_generator_draws_without_derivatives():
    draws = adjoin.Generator()
    for draw in adjoin._standard_gamma, adjoin._sample_dirichlet:
        a = t(0.5, 2.0)
        first = draw(a, generator=draws.manual_seed(5))
        assert adjoin.equal(first, draw(a, generator=draws.manual_seed(5)))
        with pytest.raises(NotImplementedError, match="generator= is for samples without derivatives"):
            draw(a.requires_grad_(), generator=draws)


def test_what_a_value_must_be():
    with pytest.raises(ValueError, match=r"not broadcastable with batch_shape\+event_shape"):
        D.Normal(t(0.0, 1.0), t(1.0, 1.0)).log_prob(adjoin.ones(7, 5))
    with pytest.raises(ValueError, match="within the support"):
        D.Pareto(t(1.0), t(1.0)).cdf(t(0.5))
    assert D.Multinomial(4, t(0.5, 0.5)).log_prob(t(1.0, 1.0)).item() == pytest.approx(math.log(0.5))


def test_classes_say_what_is_known_of_values():
    for cls, discrete, dims in (
        (D.Uniform, False, 0), (D.Binomial, True, 0), (D.Categorical, True, 0), (D.Multinomial, True, 1), (D.Pareto, False, 0), (D.GeneralizedPareto, False, 0),
    ):  # fmt: skip
        assert isinstance(cls.support, constraints.Constraint)
        assert (cls.support.is_discrete, cls.support.event_dim) == (discrete, dims)
    assert all(c.event_dim == 0 for c in D.Uniform.arg_constraints.values())
    with pytest.raises(NotImplementedError, match="cannot be determined statically"):
        _ = D.Independent.support.event_dim
    assert list(D.Chi2.arg_constraints) == ["df"] and D.Chi2(t(2.0)).expand([3]).log_prob(1).shape == (3,)
    assert D.Bernoulli(t(0.2, 0.4)).param_shape == (2,)


class Bare(D.Distribution):
    def log_prob(self, value):
        self._validate_sample(value)
        return value * 0


def test_a_class_without_constraints_is_told_how():
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare.log_prob(adjoin.zeros(2))
    assert Bare(validate_args=False).log_prob(adjoin.zeros(2)).tolist() == [0, 0]


def test_a_trace_checks_no_values():
    def density(x, loc, scale):
        return D.Normal(loc, scale).log_prob(x)

    x, loc, scale = t(0.3), t(0.1), t(2.0)
    traced = adjoin.jit.trace(density, (x, loc, scale))
    assert adjoin.equal(traced(t(0.7), loc, scale), density(t(0.7), loc, scale))


def test_subclasses_expand_to_themselves():
    class Mine(D.Independent):
        pass

    class Logs(D.LogNormal):
        pass

    class Other(D.LogNormal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    assert type(Mine(D.Normal(t(0.0, 1.0), t(1.0, 1.0)), 1).expand([4])) is Mine
    assert type(Logs(t(0.0), t(1.0)).expand([2, 1])) is Logs
    with pytest.raises(NotImplementedError, match=r"custom .expand\(\) method"):
        Other(t(0.0)).expand([2])


def test_transforms_keep_the_last_value():
    x = t(20.0)
    plain, keeps = D.TanhTransform(), D.TanhTransform(cache_size=1)
    assert plain.inv(plain(x)).item() != 20  # tanh is 1 there
    y = keeps(x)
    assert keeps.inv(y) is x and keeps(x) is y and keeps.inv.inv is keeps
    assert keeps.inv(y.clone()) is not x
    squashed = D.TransformedDistribution(D.Normal(t(20.0), t(0.1)), [D.TanhTransform(cache_size=1)])
    assert squashed.log_prob(squashed.rsample()).isfinite().all()
    both = D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.TanhTransform()], cache_size=1)
    y = both(x)
    assert both.inv(y) is x and both.with_cache(1) is both
    assert plain.with_cache(0) is plain and plain.with_cache()._cache_size == 1 and plain == keeps
    assert both.inv.inv is both and plain.inv is plain.inv and plain.inv.inv is plain
    assert D.transforms.identity_transform.inv == D.transforms.identity_transform
    with pytest.raises(NotImplementedError, match="rises or falls"):
        _ = D.AbsTransform().sign
    again = pickle.loads(pickle.dumps(keeps))
    assert again == keeps and again._kept == (None, None) and again._cache_size == 1


def test_bases_are_found_among_the_registered_pairs():
    from adjoin.distributions.kl import _KL_REGISTRY, register_kl

    class Mine(D.Normal):
        pass

    assert any(issubclass(Mine, p) and issubclass(D.Normal, q) for p, q in _KL_REGISTRY)
    register_kl(Mine, D.Normal)(lambda p, q: "found")
    try:
        assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == "found"
    finally:
        del _KL_REGISTRY[Mine, D.Normal]

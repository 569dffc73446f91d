"""tests/python/distributions/distributions_test.py: densities that integrate to 1, moments, entropies and divergences that sums over them
confirm, samples that have those moments."""

import math

import adjoin
import numpy as np
import pytest
from adjoin import distributions as d
from adjoin.distributions import _gamma_samples, constraints, exponential_family
from adjoin.distributions.distribution import EULER
from scipy import special, stats

FINE = adjoin.float64


def t(*values):
    return adjoin.tensor(values, dtype=FINE)


CONTINUOUS = {  # the distribution, another of its kind, between what values nearly everything lies
    "Normal": (d.Normal(t(0.5), t(0.8)), d.Normal(t(0.0), t(1.5)), -9, 9),
    "LogNormal": (d.LogNormal(t(0.1), t(0.4)), d.LogNormal(t(0.0), t(0.5)), 1e-6, 30),
    "HalfNormal": (d.HalfNormal(t(0.8)), d.HalfNormal(t(1.5)), 0, 9),
    "Laplace": (d.Laplace(t(0.5), t(0.5)), d.Laplace(t(0.0), t(1.5)), -20, 20),
    "Cauchy": (d.Cauchy(t(0.5), t(0.5)), None, None, None),
    "Gumbel": (d.Gumbel(t(0.5), t(0.5)), None, -4, 25),
    "Uniform": (d.Uniform(t(-1.0), t(2.0)), d.Uniform(t(-2.0), t(3.0)), -1, 2),
    "Exponential": (d.Exponential(t(1.5)), d.Exponential(t(0.7)), 0, 30),
    "Gamma": (d.Gamma(t(2.5), t(1.5)), d.Gamma(t(3.0), t(1.0)), 1e-9, 40),
    "Chi2": (d.Chi2(t(4.0)), d.Chi2(t(5.0)), 1e-9, 80),
    "Beta": (d.Beta(t(2.5), t(3.0)), d.Beta(t(2.0), t(1.5)), 1e-9, 1 - 1e-9),
    "tanh of a normal": (
        d.TransformedDistribution(d.Normal(t(0.2), t(0.5)), d.TanhTransform()),
        None,
        -1 + 1e-9,
        1 - 1e-9,
    ),
}


def midpoints(low, high, count=100_001):
    step = (high - low) / count
    return (adjoin.arange(count, dtype=FINE) + 0.5) * step + low, step


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "Cauchy"])
def test_densities(name):
    p, q, low, high = CONTINUOUS[name]
    x, step = midpoints(low, high)
    log_p = p.log_prob(x)
    weight = log_p.exp() * step
    assert weight.sum().item() == pytest.approx(1, abs=1e-4)
    mean = (weight * x).sum()
    if name == "tanh of a normal":
        return
    assert p.mean.item() == pytest.approx(mean.item(), abs=1e-3)
    assert p.variance.item() == pytest.approx((weight * (x - mean) ** 2).sum().item(), abs=2e-3)
    assert p.entropy().item() == pytest.approx(-(weight * log_p).sum().item(), abs=1e-3)
    if q is not None:
        assert d.kl_divergence(p, q).item() == pytest.approx((weight * (log_p - q.log_prob(x))).sum().item(), abs=1e-3)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples(name):
    adjoin.manual_seed(1)
    p = CONTINUOUS[name][0]
    x = p.sample((20_000,))
    assert x.shape == (20_000, 1) and not x.requires_grad and p.support.check(x).all()
    if name not in ("Cauchy", "tanh of a normal"):
        assert x.mean().item() == pytest.approx(p.mean.item(), abs=6 * p.stddev.item() / 141)
        assert x.var().item() == pytest.approx(p.variance.item(), rel=0.15)
    if name not in ("Gamma", "Chi2", "Beta"):
        share = (adjoin.arange(1, 10, dtype=FINE) / 10).unsqueeze(1)
        assert p.cdf(p.icdf(share)).flatten().tolist() == pytest.approx(share.flatten().tolist(), abs=1e-6)
        found = (x <= p.icdf(share[4:5])).double().mean().item()
        assert found == pytest.approx(0.5, abs=0.02)


def test_samples_with_derivatives():
    loc, scale = (t(x).requires_grad_() for x in (0.5, 2.0))
    for kind in (d.Normal, d.Laplace, d.Gumbel, d.Cauchy, d.LogNormal):
        x = kind(loc, scale).rsample((3,))
        (slope,) = adjoin.autograd.grad(x.sum(), loc)
        wanted = x.sum().item() if kind is d.LogNormal else 3.0
        assert slope.item() == pytest.approx(wanted)
    with pytest.raises(NotImplementedError, match="Poisson: samples have no derivatives"):
        d.Poisson(scale).rsample()


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 2.5, 40.0, 3000.0])
def test_gamma_variables_move_with_their_concentration(a):
    share = np.array([1e-6, 0.01, 0.2, 0.5, 0.9, 0.999, 1 - 1e-9])
    x, h = special.gammaincinv(a, share), 1e-5 * min(a, 1)
    wanted = (special.gammaincinv(a + h, share) - special.gammaincinv(a - h, share)) / (2 * h)
    keep = x > 1e-300
    found = _gamma_samples.slope(adjoin.full((keep.sum().item(),), a, dtype=FINE), adjoin.from_numpy(x[keep]))
    np.testing.assert_allclose(found.numpy(), wanted[keep], rtol=2e-4)


GAMMAS = {  # the distribution, and by its parameters what its mean is
    "Gamma": (d.Gamma, (2.5, 1.5), lambda a, b: a / b), "Chi2": (d.Chi2, (3.0,), lambda a: a),
    "Beta": (d.Beta, (0.8, 2.0), lambda a, b: a / (a + b)), "InverseGamma": (d.InverseGamma, (6.0, 2.0), lambda a, b: b / (a - 1)),
    "FisherSnedecor": (d.FisherSnedecor, (4.0, 14.0), lambda a, b: b / (b - 2) + 0 * a),
    "the square of StudentT": (d.StudentT, (12.0, 0.5, 2.0), lambda df, m, s: m**2 + s**2 * df / (df - 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", GAMMAS)
def test_samples_of_gamma_variables_have_derivatives(name):
    kind, values, mean = GAMMAS[name]
    adjoin.manual_seed(11)
    params = [t(v).requires_grad_() for v in values]
    assert kind.has_rsample
    x = kind(*params).rsample((60_000,))
    found = adjoin.autograd.grad((x.square() if "square" in name else x).mean(), params)
    wanted = adjoin.autograd.grad(mean(*params).sum(), params)
    for one, other, param in zip(found, wanted, params, strict=True):
        assert (one * param).item() == pytest.approx((other * param).item(), abs=0.03 * mean(*params).item())
    assert not kind(*params).sample().requires_grad
    single = kind(*(p.detach().float().requires_grad_() for p in params)).rsample((3,))
    single.sum().backward()
    assert single.dtype is adjoin.float32


def test_samples_of_shares_and_matrices_have_derivatives():
    adjoin.manual_seed(12)
    a = t(0.7, 2.0, 4.0).requires_grad_()
    x = d.Dirichlet(a).rsample((60_000,))
    (found,) = adjoin.autograd.grad(x[:, 1].mean(), a)
    assert found.tolist() == pytest.approx([-2 / 6.7**2, 4.7 / 6.7**2, -2 / 6.7**2], abs=0.004)
    df = t(6.0).squeeze().requires_grad_()
    made = d.Wishart(df, adjoin.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=FINE)).rsample((20_000,))
    (slopes,) = adjoin.autograd.grad(made.mean(0)[1, 1], df)
    assert slopes.item() == pytest.approx(2, abs=0.1)
    (once,) = adjoin.autograd.grad(d.Gamma(a, 1.0).rsample().square().sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives by their parameters, not second ones"):
        adjoin.autograd.grad(once.sum(), a)


DISCRETE = {
    "Bernoulli": (d.Bernoulli(t(0.3)), d.Bernoulli(logits=t(0.5)), 2),
    "Geometric": (d.Geometric(t(0.4)), d.Geometric(t(0.3)), 200),
    "Poisson": (d.Poisson(t(3.5)), d.Poisson(t(2.0)), 60),
    "Categorical": (d.Categorical(t(1.0, 2.0, 3.0)), d.Categorical(logits=t(0.0, 1.0, 0.5)), 3),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    adjoin.manual_seed(2)
    p, q, count = DISCRETE[name]
    x = adjoin.arange(count, dtype=FINE)
    log_p = p.log_prob(x)
    weight = log_p.exp()
    assert weight.sum().item() == pytest.approx(1)
    assert d.kl_divergence(p, q).item() == pytest.approx((weight * (log_p - q.log_prob(x))).sum().item())
    if name != "Poisson":
        assert p.entropy().item() == pytest.approx(-(weight * log_p).sum().item(), abs=1e-6)
    drawn = p.sample((20_000,))
    mean = (weight * x).sum().item()
    assert drawn.double().mean().item() == pytest.approx(mean, abs=0.08) and p.support.check(drawn).all()
    if name != "Categorical":
        assert p.mean.item() == pytest.approx(mean)
        assert p.variance.item() == pytest.approx((weight * (x - mean) ** 2).sum().item())


def test_vectors():
    adjoin.manual_seed(3)
    covariance = adjoin.tensor([[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 1.5]], dtype=FINE)
    loc = t(1.0, -1.0, 0.5)
    p = d.MultivariateNormal(loc, covariance)
    for other in (
        d.MultivariateNormal(loc, scale_tril=p.scale_tril),
        d.MultivariateNormal(loc, precision_matrix=p.precision_matrix),
    ):
        assert (other.covariance_matrix - covariance).abs().max().item() < 1e-12
        assert abs(d.kl_divergence(p, other).item()) < 1e-12
    x = p.sample((20_000,))
    apart = x - x.mean(0)
    assert (apart.T @ apart / len(x) - covariance).abs().max().item() < 0.1
    assert p.entropy().item() == pytest.approx(-p.log_prob(x).mean().item(), abs=0.05)
    own = d.Independent(d.Normal(loc, t(1.0, 2.0, 3.0)), 1)
    same = d.MultivariateNormal(loc, scale_tril=adjoin.diag(t(1.0, 2.0, 3.0)))
    assert own.log_prob(x[:5]).tolist() == pytest.approx(same.log_prob(x[:5]).tolist())
    assert p.expand((2, 4)).sample((5,)).shape == (5, 2, 4, 3)
    shares = d.Dirichlet(t(1.0, 2.0, 3.0)).sample((20_000,))
    assert shares.mean(0).tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.01)
    one = d.OneHotCategorical(t(0.2, 0.8))
    assert one.log_prob(t(0.0, 1.0)).item() == pytest.approx(math.log(0.8)) and one.sample((4,)).sum().item() == 4
    assert one.enumerate_support().tolist() == [[1, 0], [0, 1]]


def test_checks():
    with pytest.raises(ValueError, match="Expected parameter scale .* GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support .*Boolean"):
        d.Bernoulli(0.5).log_prob(adjoin.tensor(0.5))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        d.Categorical()
    with pytest.raises(ValueError, match="PositiveDefinite"):
        d.MultivariateNormal(adjoin.zeros(2), -adjoin.eye(2))
    with pytest.raises(ValueError, match="right-most size"):
        d.Dirichlet(adjoin.ones(3)).log_prob(adjoin.ones(2) / 2)
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)
    assert repr(d.Normal(0.0, adjoin.ones(3))) == "Normal(loc: adjoin.Size([3]), scale: adjoin.Size([3]))"
    assert constraints.simplex.check(adjoin.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]


def test_an_actor_learns():
    """REINFORCE on a bandit with three arms, as programs write it."""
    adjoin.manual_seed(0)
    logits = adjoin.nn.Parameter(adjoin.zeros(3))
    optimizer = adjoin.optim.Adam([logits], lr=0.1)
    rewards = adjoin.tensor([0.1, 0.2, 1.0])
    for _ in range(60):
        policy = d.Categorical(logits=logits)
        action = policy.sample((16,))
        loss = -(policy.log_prob(action) * (rewards[action] - 0.4)).mean() - 0.01 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert d.Categorical(logits=logits).probs[2].item() > 0.7


def on_circle(p, count=20_000):
    x, step = midpoints(-math.pi, math.pi, count)
    return x, p.log_prob(x).exp() * step


@pytest.mark.parametrize("concentration", [1e-6, 0.5, 3.0, 200.0])
def test_angles(concentration):
    stats = pytest.importorskip("scipy.stats")
    p, q = d.VonMises(t(0.7), t(concentration)), d.VonMises(t(-0.4), t(1.7))
    x, weight = on_circle(p)
    assert weight.sum().item() == pytest.approx(1, rel=1e-6)
    known = stats.vonmises(concentration, loc=0.7)
    assert p.log_prob(t(1.1, -3.0)).tolist() == pytest.approx(known.logpdf([1.1, -3.0]).tolist())
    assert p.entropy().item() == pytest.approx(-(weight * p.log_prob(x)).sum().item(), abs=1e-6)
    assert p.variance.item() == pytest.approx(1 - (weight * (x - 0.7).cos()).sum().item(), abs=1e-6)
    assert d.kl_divergence(p, q).item() == pytest.approx(
        (weight * (p.log_prob(x) - q.log_prob(x))).sum().item(), abs=1e-6
    )
    adjoin.manual_seed(0)
    drawn = p.sample((20_000,))
    assert drawn.abs().max().item() <= math.pi and drawn.shape == (20_000, 1)
    assert (drawn - 0.7).cos().mean().item() == pytest.approx(1 - p.variance.item(), abs=0.02)
    assert p.expand((2, 3)).sample((4,)).shape == (4, 2, 3)


@pytest.mark.parametrize("probs", [1e-5, 0.3, 0.499, 0.5, 0.5001, 0.53, 0.9])
def test_between_zero_and_one(probs):
    p, q = d.ContinuousBernoulli(t(probs)), d.ContinuousBernoulli(logits=t(0.8))
    x, step = midpoints(0, 1)
    weight = p.log_prob(x).exp() * step
    mean = (weight * x).sum()
    assert weight.sum().item() == pytest.approx(1, abs=1e-6) and p.mean.item() == pytest.approx(mean.item(), abs=1e-6)
    assert p.variance.item() == pytest.approx((weight * (x - mean) ** 2).sum().item(), abs=1e-6)
    assert p.entropy().item() == pytest.approx(-(weight * p.log_prob(x)).sum().item(), abs=1e-6)
    assert d.kl_divergence(p, q).item() == pytest.approx(
        (weight * (p.log_prob(x) - q.log_prob(x))).sum().item(), abs=1e-6
    )
    share = (adjoin.arange(1, 10, dtype=FINE) / 10).unsqueeze(1)
    assert p.cdf(p.icdf(share)).flatten().tolist() == pytest.approx(share.flatten().tolist(), abs=1e-5)
    assert p.cdf((x + step / 2)[:50_000:5_000]).tolist() == pytest.approx(
        weight.cumsum(0)[:50_000:5_000].tolist(), abs=2e-5
    )
    logits = p.logits.clone().requires_grad_()
    slope = adjoin.autograd.grad(d.ContinuousBernoulli(logits=logits).log_prob(t(0.25)), logits)[0]
    assert slope.item() == pytest.approx(0.25 - p.mean.item(), abs=1e-7)
    assert d.ContinuousBernoulli(probs=logits.sigmoid()).rsample((3,)).requires_grad


def test_narrow_covariances():
    loc, narrow, diagonal = (
        t(1.0, -1.0, 0.5, 2.0),
        adjoin.sin(adjoin.arange(8, dtype=FINE)).reshape(4, 2),
        t(0.5, 1.0, 2.0, 0.2),
    )
    p = d.LowRankMultivariateNormal(loc, narrow, diagonal)
    whole = d.MultivariateNormal(loc, narrow @ narrow.T + adjoin.diag(diagonal))
    x = adjoin.cos(adjoin.arange(12, dtype=FINE)).reshape(3, 4)
    assert p.log_prob(x).tolist() == pytest.approx(whole.log_prob(x).tolist())
    assert p.entropy().item() == pytest.approx(whole.entropy().item())
    for name in ("variance", "covariance_matrix", "precision_matrix", "scale_tril"):
        assert (getattr(p, name) - getattr(whole, name)).abs().max().item() < 1e-12
    q = d.LowRankMultivariateNormal(loc * 0.5, narrow[:, :1], diagonal + 1)
    full_q = d.MultivariateNormal(q.loc, q.covariance_matrix)
    wanted = d.kl_divergence(whole, full_q).item()
    for pair in ((p, q), (whole, q), (p, full_q)):
        assert d.kl_divergence(*pair).item() == pytest.approx(wanted)
    adjoin.manual_seed(0)
    drawn = p.sample((20_000,))
    apart = drawn - drawn.mean(0)
    assert (apart.T @ apart / len(drawn) - p.covariance_matrix).abs().max().item() < 0.15
    assert p.expand((2, 3)).rsample((5,)).shape == (5, 2, 3, 4)
    with pytest.raises(ValueError, match="cov_diag must be a batch of vectors with shape 4"):
        d.LowRankMultivariateNormal(loc, narrow, diagonal[:2])


# Families, and what belongs to them


FAMILIES = {
    "Normal": lambda a, b: d.Normal(a, b), "Exponential": lambda a, b: d.Exponential(b), "Gamma": lambda a, b: d.Gamma(a.exp(), b),
    "Beta": lambda a, b: d.Beta(a.exp(), b), "Bernoulli": lambda a, b: d.Bernoulli(logits=a),
    "ContinuousBernoulli": lambda a, b: d.ContinuousBernoulli(logits=a),
    "Dirichlet": lambda a, b: d.Dirichlet(adjoin.stack((a.exp(), b, b + 1), -1)),
    "Wishart": lambda a, b: d.Wishart(b + 2, adjoin.diag_embed(adjoin.stack((a.exp(), b), -1)) + 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_families_follow_from_their_log_normalizer(name):
    first, second = t(0.4, -0.3), t(1.5, 0.7)
    p, q = FAMILIES[name](first, second), FAMILIES[name](second, first + 1.2)
    assert isinstance(p, d.ExponentialFamily)
    own = d.ExponentialFamily.entropy(p)
    assert own.tolist() == pytest.approx(p.entropy().tolist()) and own.shape == p.batch_shape and not own.requires_grad
    apart = exponential_family.bregman(p, q)
    if name != "Wishart":
        assert apart.tolist() == pytest.approx(d.kl_divergence(p, q).tolist())
    assert (apart > 0).all() and exponential_family.bregman(p, p).abs().max().item() < 1e-12

    def entropies(a, b):
        return d.ExponentialFamily.entropy(FAMILIES[name](a, b))

    assert adjoin.autograd.gradcheck(entropies, (first.clone().requires_grad_(), second.clone().requires_grad_()))


def test_a_family_of_a_program():
    class Rayleigh(d.ExponentialFamily):
        arg_constraints = {"scale": constraints.positive}

        def __init__(self, scale):
            self.scale = scale
            super().__init__(scale.shape)

        _natural_params = property(lambda self: (-1 / (2 * self.scale**2),))
        _mean_carrier_measure = property(lambda self: (2 * self.scale**2).log() / 2 - EULER / 2)  # of log x

        def _log_normalizer(self, x):
            return -(-2 * x).log()

    p, q = Rayleigh(t(0.5, 2.0)), Rayleigh(t(1.0, 1.0))
    assert p.entropy().tolist() == pytest.approx(stats.rayleigh(scale=[0.5, 2.0]).entropy().tolist())
    ratio = t(0.25, 4.0)
    assert d.kl_divergence(p, q).tolist() == pytest.approx((ratio - 1 - ratio.log()).tolist())
    with pytest.raises(NotImplementedError, match="_mean_carrier_measure is not given"):
        d.Poisson(t(1.0)).entropy()
    with pytest.raises(NotImplementedError, match="No KL.*two exponential families share no log normalizer"):
        exponential_family.bregman(p, d.Exponential(t(1.0)))


def numbers_of(p, same, x, moments="mv"):
    """What a distribution says at x, beside what SciPy says."""
    assert p.log_prob(x).tolist() == pytest.approx(same.logpdf(x.numpy()).tolist(), rel=1e-9)
    wanted = same.stats(moments=moments)
    for name, value in zip(("mean", "variance"), wanted, strict=True):
        assert getattr(p, name).tolist() == pytest.approx(value.tolist(), rel=1e-9, nan_ok=True)


def test_ratios_of_variances():
    df1, df2 = t(1.0, 3.0, 7.0), t(5.0, 4.5, 20.0)
    p = d.FisherSnedecor(df1, df2)
    numbers_of(p, stats.f(df1.numpy(), df2.numpy()), t(0.3, 1.2, 4.0))
    assert p.mode.tolist() == pytest.approx([math.nan, 1 / 3 * 4.5 / 6.5, 5 / 7 * 20 / 22], nan_ok=True)
    scarce = d.FisherSnedecor(t(3.0), t(2.0))
    assert scarce.mean.isnan().all() and scarce.variance.isnan().all()
    assert adjoin.autograd.gradcheck(
        lambda a, b, x: d.FisherSnedecor(a, b).log_prob(x),
        [v.clone().requires_grad_() for v in (df1, df2, t(0.3, 1.2, 4.0))],
    )
    adjoin.manual_seed(1)
    x = d.FisherSnedecor(t(3.0), t(8.0)).sample((4000,))
    assert stats.kstest(x.flatten().numpy(), stats.f(3, 8).cdf).pvalue > 1e-3 and p.expand((2, 3)).sample(
        (4,)
    ).shape == (4, 2, 3)


def test_above_a_threshold():
    loc, scale, c = t(0.5, -1.0, 0.0, 1.0, 0.0), t(0.7, 2.0, 1.0, 1.0, 3.0), t(0.2, -0.4, 0.0, 1e-7, 0.45)
    p, same = d.GeneralizedPareto(loc, scale, c), stats.genpareto(c.numpy(), loc.numpy(), scale.numpy())
    x = loc + scale * t(0.5, 2.0, 1.5, 0.3, 9.0)
    numbers_of(p, same, x)
    assert p.cdf(x).tolist() == pytest.approx(same.cdf(x.numpy()).tolist(), rel=1e-9)
    assert p.icdf(p.cdf(x)).tolist() == pytest.approx(x.tolist(), rel=1e-9)
    assert p.entropy().tolist() == pytest.approx((1 + c + scale.log()).tolist())
    assert p.support.check(loc + scale * t(1.0, 2.4, 9.0, 9.0, 9.0)).all() and not p.support.check(loc + scale * 2.6)[1]
    heavy = d.GeneralizedPareto(t(0.0), t(1.0), t(1.0))
    assert heavy.mean.isnan().all() and heavy.variance.isnan().all()
    given = [v.clone().requires_grad_() for v in (loc, scale, c)]
    for what in (
        lambda p: p.log_prob(x),
        lambda p: p.cdf(x),
        lambda p: p.icdf(t(0.1, 0.4, 0.7, 0.9, 0.99)),
        d.GeneralizedPareto.entropy,
    ):
        assert adjoin.autograd.gradcheck(
            lambda *a, what=what: what(d.GeneralizedPareto(*a, validate_args=False)), given
        )
    adjoin.manual_seed(2)
    drawn = p.rsample((4000,))
    for i, one in enumerate(zip(c.tolist(), loc.tolist(), scale.tolist(), strict=True)):
        assert stats.kstest(drawn[:, i].numpy(), stats.genpareto(*one).cdf).pvalue > 1e-3
    assert d.GeneralizedPareto(*given).rsample((2,)).requires_grad


def test_shares_of_normal_numbers():
    loc, scale = t(0.3, -0.2), t(0.7, 1.1)
    p = d.LogisticNormal(loc, scale)
    assert p.event_shape == (3,) and p.loc.equal(loc) and p.scale.equal(scale)
    shares, step = midpoints(0.0, 1.0, 600)
    a, b = adjoin.meshgrid(shares, shares, indexing="ij")
    inside = a + b < 1 - step / 2
    grid = adjoin.stack((a, b, 1 - a - b), -1)[inside]
    assert (p.log_prob(grid).exp().sum() * step**2).item() == pytest.approx(1, abs=1e-3)
    adjoin.manual_seed(3)
    x = d.LogisticNormal(loc.clone().requires_grad_(), scale).rsample((3000,))
    assert x.requires_grad and p.support.check(x.detach()).all()
    back = d.StickBreakingTransform().inv(x.detach())
    assert stats.kstest(((back - loc) / scale).flatten().numpy(), stats.norm.cdf).pvalue > 1e-3
    wide = d.LogisticNormal(loc.expand(5, 2), scale).expand((3, 5))
    assert wide.sample((6,)).shape == (6, 3, 5, 3) and isinstance(wide, d.LogisticNormal)
    assert d.LogisticNormal(t(0.1).squeeze(), t(1.0).squeeze()).event_shape == (2,)


COVARIANCE = [[2.0, 0.5, 0.3], [0.5, 1.0, -0.2], [0.3, -0.2, 1.5]]


def test_matrices_of_squares():
    covariance = adjoin.tensor(COVARIANCE, dtype=FINE)
    p, same = d.Wishart(t(5.5).squeeze(), covariance), stats.wishart(5.5, COVARIANCE)
    adjoin.manual_seed(4)
    x = p.sample((4000,))
    assert p.log_prob(x[:5]).tolist() == pytest.approx([same.logpdf(one.numpy()) for one in x[:5]])
    assert p.entropy().item() == pytest.approx(same.entropy())
    assert (p.mean - adjoin.tensor(same.mean())).abs().max().item() < 1e-12
    assert (p.variance - adjoin.tensor(same.var())).abs().max().item() < 1e-12
    assert (p.mode - adjoin.tensor(same.mode())).abs().max().item() < 1e-12
    assert ((x.mean(0) - p.mean).abs() < 6 * (p.variance / len(x)).sqrt()).all()
    assert ((x.var(0) / p.variance - 1).abs() < 0.25).all() and p.support.check(x).all()
    for other in ({"scale_tril": p.scale_tril}, {"precision_matrix": p.precision_matrix}):
        assert d.Wishart(5.5, **other).log_prob(x[:3]).tolist() == pytest.approx(p.log_prob(x[:3]).tolist())
    q = d.Wishart(4.0, covariance * 1.5)
    log = p.log_prob(x) - q.log_prob(x)
    assert d.kl_divergence(p, q).item() == pytest.approx(log.mean().item(), abs=5 * log.std().item() / 63)
    assert p.expand((2,)).sample((3,)).shape == (3, 2, 3, 3) and p.expand((2,)).entropy().shape == (2,)
    root = p.scale_tril.clone().requires_grad_()
    assert adjoin.autograd.gradcheck(
        lambda df, root: (
            d.Wishart(df, scale_tril=root.tril()).log_prob(x[:2]),
            d.Wishart(df, scale_tril=root.tril()).entropy(),
        ),
        (t(5.5).squeeze().requires_grad_(), root),
    )
    d.Wishart(5.5, scale_tril=root).rsample().sum().backward()
    assert root.grad.abs().sum().item() > 0
    with pytest.raises(ValueError, match="greater than ndim - 1 = 2"):
        d.Wishart(2.0, covariance)
    with pytest.raises(ValueError, match="Exactly one of covariance_matrix"):
        d.Wishart(5.0)


@pytest.mark.parametrize("concentration", [0.7, 1.0, 2.5])
def test_factors_of_correlations(concentration):
    p = d.LKJCholesky(3, t(concentration).squeeze(), validate_args=False)
    adjoin.manual_seed(5)
    x = p.sample((3000,))
    assert constraints.corr_cholesky.check(x).all() and x.shape == (3000, 3, 3)
    correlations = x @ x.mT
    beta = concentration + 3 / 2 - 1  # each correlation, from -1 to 1, has this beta distribution
    for i, j in ((1, 0), (2, 0), (2, 1)):
        found = (correlations[:, i, j] + 1) / 2
        assert stats.kstest(found.numpy(), stats.beta(beta, beta).cdf).pvalue > 1e-3
    two = d.LKJCholesky(2, t(concentration).squeeze())
    r, step = midpoints(-1.0, 1.0, 20_001)
    factor = adjoin.stack((adjoin.stack((r * 0 + 1, r * 0), -1), adjoin.stack((r, (1 - r * r).sqrt()), -1)), -2)
    assert (two.log_prob(factor).exp().sum() * step).item() == pytest.approx(1, abs=5e-3)
    a, b, c = (2 * adjoin.rand(3, 100_000, dtype=FINE) - 1).unbind()
    rest = (1 - b * b - c * c).clamp(min=1e-12)
    zero = adjoin.zeros_like(a)
    rows = ((zero + 1, zero, zero), (a, (1 - a * a).sqrt(), zero), (b, c, rest.sqrt()))
    weight = p.log_prob(adjoin.stack([adjoin.stack(row, -1) for row in rows], -2)).exp() * (rest > 1e-12)
    if concentration >= 1:  # otherwise the density is infinite on the border
        assert 8 * weight.mean().item() == pytest.approx(1, abs=0.03)
    with pytest.raises(ValueError, match="greater than or equal to 2. Found dim=1"):
        d.LKJCholesky(1)


def test_wishart_draws_again_what_rounding_made_singular():
    covariance = adjoin.eye(3) + 0.3
    drawn = d.Wishart(adjoin.tensor(2.3), covariance)
    adjoin.manual_seed(1)
    assert not drawn.support.check(drawn.rsample((3000,), max_try_correction=0)).all()
    adjoin.manual_seed(1)
    x = drawn.sample((3000,))
    assert drawn.support.check(x).all() and drawn.log_prob(x).isfinite().all()
    assert (x.mean(0) - drawn.mean).abs().max() < 0.4

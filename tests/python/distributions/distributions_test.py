"""tests/python/distributions/distributions_test.py: densities that integrate to 1, moments, entropies and divergences that sums over them
confirm, samples that have those moments."""

import math

import adjoin
import pytest
from adjoin import distributions as d
from adjoin.distributions import constraints

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
    with pytest.raises(NotImplementedError, match="Gamma: samples have no derivatives"):
        d.Gamma(loc, scale).rsample()


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

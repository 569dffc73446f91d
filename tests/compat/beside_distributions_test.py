"""tests/compat/beside_distributions_test.py: densities, moments, entropies, divergences and their derivatives beside PyTorch's."""

import pytest

torch = pytest.importorskip("torch")

import adjoin
from beside import near, ours

torch.manual_seed(0)
A, B = torch.rand(3, 4, dtype=torch.float64) + 0.5, torch.rand(4, dtype=torch.float64) + 0.5
R = torch.randn(3, 4, dtype=torch.float64)
M = torch.randn(3, 3, dtype=torch.float64)
SPD = M @ M.T + 3 * torch.eye(3, dtype=torch.float64)
CASES = {
    "Normal": ({"loc": R, "scale": B}, {"loc": R + 1, "scale": A}),
    "LogNormal": ({"loc": R, "scale": B}, {"loc": R + 1, "scale": A}),
    "HalfNormal": ({"scale": A}, {"scale": B}),
    "Laplace": ({"loc": R, "scale": B}, {"loc": R + 1, "scale": A}),
    "Cauchy": ({"loc": R, "scale": B}, None),
    "Gumbel": ({"loc": R, "scale": B}, None),
    "Uniform": ({"low": -A, "high": B}, {"low": -A - 1, "high": B + 1}),
    "Exponential": ({"rate": A}, {"rate": B}),
    "Gamma": ({"concentration": A, "rate": B}, {"concentration": B, "rate": A}),
    "Chi2": ({"df": A * 3}, {"df": B * 2}),
    "Beta": ({"concentration1": A, "concentration0": B}, {"concentration1": B, "concentration0": A}),
    "Dirichlet": ({"concentration": A}, {"concentration": A + 1}),
    "Bernoulli": ({"probs": A / 2}, {"probs": A / 3}),
    "Bernoulli of logits": ({"logits": R}, {"logits": R / 2}),
    "Geometric": ({"probs": A / 2}, {"probs": A / 3}),
    "Poisson": ({"rate": A * 3}, {"rate": A}),
    "Categorical": ({"probs": A}, {"probs": A.flip(1)}),
    "Categorical of logits": ({"logits": R}, {"logits": R.flip(0)}),
    "OneHotCategorical": ({"logits": R}, {"probs": A}),
    "MultivariateNormal": ({"loc": R[:, :3], "covariance_matrix": SPD}, {"loc": R[0, :3], "scale_tril": SPD.tril()}),
    "Multinomial": ({"probs": A}, None),
    "StudentT": ({"df": A * 4, "loc": R, "scale": B}, None),
    "HalfCauchy": ({"scale": A}, None),
    "Weibull": ({"scale": A, "concentration": B}, None),
    "Pareto": ({"scale": A, "alpha": B * 4}, None),
    "InverseGamma": ({"concentration": A * 4, "rate": B}, None),
    "Kumaraswamy": ({"concentration1": A, "concentration0": B}, None),
    "Binomial": ({"total_count": torch.tensor(5.0, dtype=torch.float64), "probs": A / 2}, None),
    "Binomial of logits": ({"total_count": torch.tensor(5.0, dtype=torch.float64), "logits": R}, None),
    "NegativeBinomial": ({"total_count": A * 3, "logits": R}, None),
    "RelaxedBernoulli": ({"temperature": A[0, 0], "logits": R}, None),
    "RelaxedOneHotCategorical": ({"temperature": A[0, 0], "logits": R}, None),
    "OneHotCategoricalStraightThrough": ({"logits": R}, None),
    "MultivariateNormal of precision": ({"loc": R[:, :3], "precision_matrix": SPD}, None),
}


def make(lib, name, settings, convert, grad=True):
    params = {k: convert(v).requires_grad_(grad) for k, v in settings.items()}
    return getattr(lib.distributions, name.split(" of ")[0])(**params), list(params.values())


@pytest.mark.parametrize("name", CASES)
def test_numbers(name):
    first, second = CASES[name]
    (their, their_params), (own, own_params) = (
        make(lib, name, first, c) for lib, c in ((torch, torch.clone), (adjoin, ours))
    )
    value = their.sample((5,))
    mine = ours(value)
    pairs = [(own.log_prob(mine), their.log_prob(value))]
    for method in ("entropy", "mean", "variance", "stddev", "mode"):
        try:
            wanted = getattr(their, method)
            wanted = wanted() if callable(wanted) else wanted
        except NotImplementedError:
            continue
        if method == "mode" and name in ("Beta", "Dirichlet", "Kumaraswamy"):
            continue
        found = getattr(own, method)
        pairs.append((found() if callable(found) else found, wanted))
    if name in ("Normal", "LogNormal", "HalfNormal", "Laplace", "Cauchy", "Gumbel", "Uniform", "Exponential"):
        share = torch.rand(5, 3, 4, dtype=torch.float64)
        pairs += [(own.cdf(mine), their.cdf(value)), (own.icdf(ours(share)), their.icdf(share))]
    for a, b in pairs:
        near(a, b, 1e-6)
    pairs[0][1].sum().backward()
    pairs[0][0].sum().backward()
    for a, b in zip(own_params, their_params, strict=True):
        near(a.grad, b.grad, 1e-6)
    assert own.batch_shape == tuple(their.batch_shape) and own.event_shape == tuple(their.event_shape)
    assert own.sample((2,)).shape == tuple(their.sample((2,)).shape)
    assert own.expand((2, *their.batch_shape)).log_prob(mine[0]).shape == tuple(
        their.expand((2, *their.batch_shape)).log_prob(value[0]).shape
    )
    if name not in (
        "LogNormal",
        "HalfNormal",
        "HalfCauchy",
        "InverseGamma",
        "Chi2",
        "Beta",
    ):  # those PyTorch prints without their parameters
        text = [repr(make(lib, name, first, c, False)[0]) for lib, c in ((adjoin, ours), (torch, torch.clone))]
        assert text[0] == text[1].replace("torch.Size", "adjoin.Size")
    if second is not None:
        pair = [
            lib.distributions.kl_divergence(make(lib, name, first, c)[0], make(lib, name, second, c)[0])
            for lib, c in ((adjoin, ours), (torch, torch.clone))
        ]
        near(pair[0], pair[1], 1e-6)


def test_transforms():
    d, t = torch.distributions, adjoin.distributions
    chains = [
        ("ExpTransform", ()), ("SigmoidTransform", ()), ("TanhTransform", ()), ("SoftplusTransform", ()),
        ("AffineTransform", (0.5, -2.0)), ("PowerTransform", (3.0,)),
    ]  # fmt: skip
    x = torch.rand(3, 4, dtype=torch.float64) + 0.1
    for name, args in chains:
        their, own = getattr(d.transforms, name)(*args), getattr(t, name)(*args)
        y = their(x)
        near(own(ours(x)), y, 1e-6)
        near(own.inv(ours(y)), x, 1e-6)
        near(own.log_abs_det_jacobian(ours(x), ours(y)), their.log_abs_det_jacobian(x, y), 1e-6)
    theirs = d.TransformedDistribution(
        d.Normal(torch.zeros(4), torch.ones(4)), [d.AffineTransform(1.0, -2.0), d.ExpTransform()]
    )
    mine = t.TransformedDistribution(
        t.Normal(adjoin.zeros(4), adjoin.ones(4)), [t.AffineTransform(1.0, -2.0), t.ExpTransform()]
    )
    v = x.float()
    near(mine.log_prob(ours(v)), theirs.log_prob(v))
    near(mine.cdf(ours(v)), theirs.cdf(v))
    near(mine.icdf(ours(v / 2)), theirs.icdf(v / 2), 1e-4)
    near(
        t.Independent(mine, 1).log_prob(ours(v)),
        d.Independent(theirs, 1).log_prob(v),
    )


BAD = {
    "scale": lambda d, lib: d.Normal(0.0, -1.0),
    "probs": lambda d, lib: d.Bernoulli(1.5),
    "both": lambda d, lib: d.Bernoulli(0.5, logits=1.0),
    "value": lambda d, lib: d.Bernoulli(0.5).log_prob(lib.tensor(0.5)),
    "classes": lambda d, lib: d.Categorical(lib.ones(3)).log_prob(lib.tensor(3)),
    "low": lambda d, lib: d.Uniform(1.0, 0.0),
    "event": lambda d, lib: d.Dirichlet(lib.ones(3)).log_prob(lib.ones(4) / 4),
    "kl": lambda d, lib: d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5)),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name):
    kinds = []
    for lib in (adjoin, torch):
        with pytest.raises((ValueError, NotImplementedError)) as error:
            BAD[name](lib.distributions, lib)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]

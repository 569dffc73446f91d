"""tests/python/distributions/transforms_test.py: transforms of distributions: inverses, slopes against autograd's Jacobian, constraints."""

import math
import pickle

import adjoin
import pytest
from adjoin import distributions as D
from adjoin.autograd.functional import jacobian
from adjoin.distributions import (
    Distribution,
    Normal,
    TransformedDistribution,
    biject_to,
    constraints,
    transform_to,
    transforms,
    utils,
)

VECTORS = {
    "stick breaking": transforms.StickBreakingTransform(),
    "corr cholesky": transforms.CorrCholeskyTransform(),
    "reshape": transforms.ReshapeTransform((3,), (3, 1)),
    "independent": transforms.IndependentTransform(transforms.ExpTransform(), 1),
    "cumulative": transforms.IndependentTransform(
        transforms.CumulativeDistributionTransform(Normal(adjoin.tensor(0.3, dtype=adjoin.float64), 1.2)), 1
    ),
    "cat": transforms.IndependentTransform(
        transforms.CatTransform([transforms.ExpTransform(), transforms.TanhTransform()], -1, [1, 2]), 1
    ),
    "stack": transforms.IndependentTransform(
        transforms.StackTransform(
            [transforms.ExpTransform(), transforms.identity_transform, transforms.SigmoidTransform()], -1
        ),
        1,
    ),
    "compose": transforms.ComposeTransform(
        [transforms.AffineTransform(0.5, -2.0), transforms.StickBreakingTransform()]
    ),
    "affine": transforms.AffineTransform(0.5, adjoin.tensor([1.0, -2.0, 3.0], dtype=adjoin.float64), event_dim=1),
    "inverse": transforms.IndependentTransform(transforms.SoftplusTransform(), 1),
}


@pytest.fixture
def x():
    adjoin.manual_seed(5)
    return adjoin.randn(2, 3, dtype=adjoin.float64)


def free_elements(name, y):
    """As many elements as x has: the others follow from them."""
    if name in ("stick breaking", "compose"):
        return y[..., :-1]
    return utils.tril_matrix_to_vec(y, -1) if name == "corr cholesky" else y.reshape(-1, 3)


@pytest.mark.parametrize("name", VECTORS)
def test_a_transform_of_vectors(name, x):
    t = VECTORS[name]
    y = t(x)
    assert tuple(y.shape) == tuple(t.forward_shape(x.shape)) and tuple(t.inverse_shape(y.shape)) == tuple(x.shape)
    adjoin.testing.assert_close(t.inv(y), x)
    slope = t.log_abs_det_jacobian(x, y)
    assert slope.shape == (2,) and t.codomain.check(y).all()
    for row, found in zip(x, slope, strict=True):
        matrix = jacobian(lambda r: free_elements(name, t(r[None]))[0], row)
        adjoin.testing.assert_close(found.item(), math.log(abs(_determinant(matrix.tolist()))), rtol=1e-9, atol=1e-9)
    assert adjoin.autograd.gradcheck(lambda x: (t(x), t.log_abs_det_jacobian(x, t(x))), x.requires_grad_())


def _determinant(m):
    (a, b, c), (d, e, f), (g, h, i) = m
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def test_matrices():
    x = adjoin.randn(4, 3, 3, dtype=adjoin.float64)
    factor = transform_to(constraints.lower_cholesky)(x)
    assert constraints.lower_cholesky.check(factor).all()
    definite = transform_to(constraints.positive_definite)
    adjoin.testing.assert_close(definite(x), factor @ factor.mT)
    adjoin.testing.assert_close(definite(definite.inv(definite(x))), definite(x))


@pytest.mark.parametrize("constraint", [
    constraints.real, constraints.positive, constraints.nonnegative, constraints.unit_interval, constraints.simplex,
    constraints.corr_cholesky, constraints.interval(-1.0, 2.0), constraints.half_open_interval(0.0, 3.0),
    constraints.less_than(-1.0), constraints.greater_than_eq(4.0), constraints.real_vector,
    constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real, constraints.less_than(0.0)], -1),
])  # fmt: skip
@pytest.mark.parametrize("registry", [biject_to, transform_to])
def test_a_registry_reaches_what_is_allowed(registry, constraint, x):
    assert constraint.check(registry(constraint)(10 * x)).all() or constraint is constraints.corr_cholesky
    assert constraint.check(registry(constraint)(x)).all()


def test_what_a_registry_does_not_know():
    with pytest.raises(NotImplementedError, match="no transform to _Boolean is known"):
        biject_to(constraints.boolean)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        biject_to.register(3, lambda c: c)


def test_checks():
    t = adjoin.tensor
    lower = t([[1.0, 0.0], [0.6, 0.8]])
    cases = {"lower_triangular": lower, "corr_cholesky": lower, "square": lower, "symmetric": t([[1.0, 0.5], [0.5, 1.0]]),
             "positive_semidefinite": t([[1.0, 1.0], [1.0, 1.0]]), "positive_definite": t([[1.0, 0.5], [0.5, 1.0]])}  # fmt: skip
    for name, good in cases.items():
        assert getattr(constraints, name).check(good), name
    for name, bad in {"lower_triangular": lower.mT, "corr_cholesky": 2 * lower, "square": adjoin.ones(2, 3), "symmetric": lower,
                      "positive_semidefinite": -lower @ lower.mT, "positive_definite": t([[1.0, 1.0], [1.0, 1.0]])}.items():  # fmt: skip
        assert not getattr(constraints, name).check(bad), name
    assert constraints.positive_integer.check(t([0.0, 1.0, 1.5])).tolist() == [False, True, False]
    assert repr(constraints.positive) == "GreaterThan(lower_bound=0.0)" and repr(constraints.real) == "Real()"
    with pytest.raises(ValueError, match="dependent"):
        constraints.dependent.check(t(1.0))


def test_a_constraint_that_depends_on_the_distribution():
    class UpTo(Distribution):
        def __init__(self, top):
            self.top = top
            super().__init__(validate_args=False)

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(0, self.top)

    assert constraints.is_dependent(UpTo.support) and UpTo.support.event_dim == 0
    assert UpTo(3).support.upper_bound == 3


def test_distributions_of_other_shapes():
    base = Normal(adjoin.zeros(3), 1.0)
    shares = TransformedDistribution(base, [transforms.AffineTransform(0.5, 2.0), transforms.StickBreakingTransform()])
    assert shares.event_shape == (4,) and shares.batch_shape == () and shares.sample((2,)).shape == (2, 4)
    square = TransformedDistribution(Normal(adjoin.zeros(4), 1.0), transforms.ReshapeTransform((4,), (2, 2)))
    assert square.event_shape == (2, 2)
    adjoin.testing.assert_close(square.log_prob(adjoin.zeros(2, 2)).item(), -2 * math.log(2 * math.pi))
    wide = TransformedDistribution(Normal(0.0, 1.0), transforms.AffineTransform(adjoin.zeros(3), adjoin.ones(3)))
    assert wide.batch_shape == (3,) and wide.log_prob(adjoin.zeros(3)).shape == (3,)
    with pytest.raises(ValueError, match="at least 1"):
        TransformedDistribution(Normal(0.0, 1.0), transforms.StickBreakingTransform())


def test_tools():
    assert [tuple(v.shape) for v in utils.broadcast_all(1, adjoin.ones(3), adjoin.ones(2, 1))] == [(2, 3)] * 3
    with pytest.raises(ValueError, match="instances of Number"):
        utils.broadcast_all("1")
    matrix = adjoin.arange(9.0).reshape(3, 3).tril(-1)
    adjoin.testing.assert_close(utils.vec_to_tril_matrix(utils.tril_matrix_to_vec(matrix, -1), -1), matrix)
    p = adjoin.tensor([0.2, 0.8])
    adjoin.testing.assert_close(utils.logits_to_probs(utils.probs_to_logits(p)), p)
    adjoin.testing.assert_close(utils.logits_to_probs(utils.probs_to_logits(p, is_binary=True), is_binary=True), p)


def test_a_transformed_class_of_ones_own_fills_its_parts_itself():
    class Squashed(D.TransformedDistribution):
        def __init__(self, loc, scale):
            self.base_dist, self.transforms = D.Normal(loc, scale), [D.transforms.TanhTransform()]
            D.Distribution.__init__(self, self.base_dist.batch_shape, validate_args=False)

    own, whole = Squashed(0.3, 0.8), D.TransformedDistribution(D.Normal(0.3, 0.8), D.transforms.TanhTransform())
    value = adjoin.tensor([-0.4, 0.2])
    assert own.log_prob(value).equal(whole.log_prob(value)) and own.cdf(value).equal(whole.cdf(value))
    own.transforms = [*own.transforms, D.transforms.AffineTransform(1.0, 2.0)]
    assert own.log_prob(1 + 2 * value).allclose(whole.log_prob(value) - math.log(2), atol=1e-5)


def test_the_inverse_is_kept_where_patches_of_libraries_look_for_it():
    whole = D.transforms.ComposeTransform([D.transforms.ExpTransform(), D.transforms.AffineTransform(1.0, 2.0)])
    assert whole._inv is None and whole.inv.inv is whole
    back = whole.inv
    assert whole._inv() is back
    one = D.transforms.ExpTransform().inv
    copied = pickle.loads(pickle.dumps(one))
    assert copied == one and copied != D.transforms.TanhTransform().inv and copied(adjoin.tensor(1.0)).item() == 0

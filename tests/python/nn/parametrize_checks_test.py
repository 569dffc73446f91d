"""tests/python/nn/parametrize_checks_test.py: what parametrizations are refused, and complex weights under the ready-made ones."""

import adjoin
import pytest
from adjoin import nn
from adjoin.nn.utils import parametrizations, parametrize


class Same(nn.Module):
    def forward(self, x):
        return x


class Shorter(Same):
    def forward(self, x):
        return x[:-1]


class Wider(Same):
    def forward(self, x):
        return x.double()


class TwoBack(Same):
    def right_inverse(self, x):
        return x, x


class DoubleBack(Same):
    def right_inverse(self, x):
        return x.double()


class Longer(Same):
    def right_inverse(self, x):
        return adjoin.cat([x, x])


class NoneBack(nn.Module):
    def forward(self, x, y):
        return x

    def right_inverse(self, x):
        return None, x


class NoTensor(Same):
    def forward(self, x):
        return "text"


@pytest.mark.parametrize(
    "part,words,again",
    [
        (Shorter, "may not change the shape", "may not change the shape"),
        (Wider, "may not change the dtype", "may not change the dtype"),
        (NoTensor, "must return a tensor. Got str", "must return a tensor. Got str"),
        (DoubleBack, "outputs one tensor, it may not change the dtype", "must have the same dtype as module.weight"),
        (NoneBack, "element 0 of the sequence with type NoneType", None),
        (TwoBack, None, "right_inverse must return a tensor. Got: tuple"),
        (Longer, None, "must have the same shape as module.weight"),
    ],
)
def test_what_is_refused_leaves_the_module_as_it_was(part, words, again):
    if words:
        layer = nn.Linear(3, 4)
        with pytest.raises(ValueError, match=words):
            parametrize.register_parametrization(layer, "weight", part())
        assert not parametrize.is_parametrized(layer) and type(layer) is nn.Linear
    if again:
        layer = parametrize.register_parametrization(nn.Linear(3, 4), "weight", Same())
        with pytest.raises(ValueError, match=again):
            parametrize.register_parametrization(layer, "weight", part())
        assert len(layer.parametrizations.weight) == 1 and layer(adjoin.ones(3)).shape == (4,)


def test_a_further_one_changes_no_original():
    class Halved(Same):
        def forward(self, x):
            return x / 2

        def right_inverse(self, x):
            return x * 2

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Same())
    before = layer.parametrizations.weight.original.detach().clone()
    parametrize.register_parametrization(layer, "weight", Halved())
    assert layer.parametrizations.weight.original.equal(before) and layer.weight.equal(before / 2)


@pytest.mark.parametrize("dtype", [adjoin.float64, adjoin.complex128])
def test_spectral_norm_is_the_largest_singular_value(dtype):
    adjoin.manual_seed(1)
    for norm in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        layer = nn.Linear(4, 3, dtype=dtype)
        weight = layer.weight.detach().clone()
        norm(layer, n_power_iterations=200)
        layer(adjoin.ones(4, dtype=dtype))
        assert adjoin.allclose(layer.weight, weight / adjoin.linalg.svdvals(weight).max().to(dtype))


@pytest.mark.parametrize("map", ["matrix_exp", "cayley"])
def test_a_complex_weight_stays_unitary_while_it_is_trained(map):
    adjoin.manual_seed(2)
    layer = nn.Linear(4, 3, dtype=adjoin.complex128)
    parametrizations.orthogonal(layer, orthogonal_map=map)
    step = adjoin.optim.SGD(layer.parameters(), lr=0.3)
    start = layer.weight.detach().clone()
    for _ in range(3):
        step.zero_grad()
        layer(adjoin.rand(5, 4, dtype=adjoin.complex128)).abs().sum().backward()
        step.step()
    weight = layer.weight.detach()
    assert adjoin.allclose(weight @ weight.mH, adjoin.eye(3, dtype=weight.dtype)) and not adjoin.allclose(weight, start)
    square = nn.Linear(4, 4, dtype=adjoin.complex128)
    parametrizations.orthogonal(square, orthogonal_map=map)
    unitary = adjoin.linalg.qr(adjoin.randn(4, 4, dtype=adjoin.complex128))[0]
    square.weight = unitary
    assert adjoin.allclose(square.weight, unitary)

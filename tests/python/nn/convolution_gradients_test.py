"""tests/python/nn/convolution_gradients_test.py: nn.grad, parameters of classes of one's own, and what walks through a module."""

import copy
import inspect

import adjoin
import adjoin.nn.grad
import pytest
from adjoin import nn

SETTINGS = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}, {"padding": "same"}]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_gradients_are_those_of_backward(dims, settings):
    adjoin.manual_seed(dims)
    x = adjoin.randn(2, 4, *[7] * dims, dtype=adjoin.float64, requires_grad=True)
    w = adjoin.randn(6, 4 // settings.get("groups", 1), *[3] * dims, dtype=adjoin.float64, requires_grad=True)
    made = getattr(nn.functional, f"conv{dims}d")(x, w, **settings)
    g = adjoin.randn_like(made)
    made.backward(g)
    of_input, of_weight = (getattr(nn.grad, f"conv{dims}d_{which}") for which in ("input", "weight"))
    assert adjoin.allclose(of_input(x.shape, w, g, **settings), x.grad)
    assert adjoin.allclose(of_weight(x, w.shape, g, **settings), w.grad)
    plain = of_input(x.shape, w.detach(), g, **settings)
    assert not plain.requires_grad and of_input(x.shape, w, g, **settings).requires_grad
    with pytest.raises(ValueError, match="grad_output has the shape"):
        of_input(x.shape, w, g[:1], **settings)


def test_functional_has_the_module_too():
    assert nn.functional.grad is nn.grad is adjoin.nn.grad


class Named(adjoin.Tensor):
    @staticmethod
    def __new__(cls, data, name):
        made = adjoin.Tensor._make_subclass(cls, data)
        made.label = name
        return made


def test_a_parameter_keeps_the_class_of_its_tensor():
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(Named(adjoin.ones(2, 2), "w"))
    assert type(layer.weight) is Named and isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    assert not isinstance(layer.weight + 1, nn.Parameter) and isinstance(layer.weight + 1, Named)
    twin = copy.deepcopy(layer)
    assert type(twin.weight) is Named and isinstance(twin.weight, nn.Parameter) and twin.weight is not layer.weight
    layer(adjoin.ones(2)).sum().backward()
    adjoin.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.weight.tolist() == [[0, 0], [0, 0]]


def test_parameters_and_modules_come_as_generators():
    class Own(nn.Sequential):
        def named_parameters(self, *args, **kwargs):
            yield from super().named_parameters(*args, **kwargs)

    for model in (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), Own(nn.Linear(2, 2), nn.BatchNorm1d(2))):
        for name in ("parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules"):
            each = getattr(model, name)()
            assert inspect.isgenerator(each), name
            assert (
                len(list(each)) == {"p": 4, "b": 3, "m": 3}[name.removeprefix("named_")[0]] and next(each, None) is None
            )

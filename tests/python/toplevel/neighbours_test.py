"""tests/python/toplevel/neighbours_test.py: what packages written for PyTorch do to modules, functions, optimizers and tensors."""

import functools
import inspect
import typing

import adjoin
import numpy
import pytest
from adjoin import nn

T = typing.TypeVar("T")


def test_a_module_may_be_generic_and_have_other_bases():
    class Wrapped(nn.Module, typing.Generic[T]):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 3)

        def forward(self, x):
            return self.inner(x)

    class Whole(Wrapped[int]):
        pass

    assert Wrapped[int]()(adjoin.ones(2)).shape == Whole()(adjoin.ones(2)).shape == (3,)
    seen = []

    class Counted:
        def __init_subclass__(cls, tag=None, **rest):
            super().__init_subclass__(**rest)
            seen.append(tag)

    class Both(nn.Module, Counted, tag=3):
        pass

    assert seen == [3] and Both().training
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        type("Wrong", (nn.Module,), {}, colour=1)


def test_signatures_and_annotations():
    for module in (nn.Linear(2, 3), nn.Sequential(), nn.Module()):
        assert str(inspect.signature(module)) == "(*args, **kwargs)"
    assert list(inspect.signature(nn.Linear).parameters)[:3] == ["in_features", "out_features", "bias"]
    assert list(inspect.signature(nn.Linear(2, 3).forward).parameters) == ["input"]
    assert nn.Linear.__annotations__["in_features"] is int and nn.Module.__annotations__["training"] is bool
    assert typing.get_type_hints(nn.Conv2d)["groups"] is int


def test_functions_carry_attributes():
    for function in (nn.functional.relu, adjoin.add, adjoin.Tensor.mul):
        function.added_by_somebody = 3
        assert function.added_by_somebody == 3 and "added_by_somebody" in vars(function)
        del function.added_by_somebody
        assert not hasattr(function, "added_by_somebody")

    @functools.wraps(nn.functional.relu)
    def wrapper(x):
        return x

    assert wrapper.__name__ == "relu" and adjoin.ones(1).mul.__self__ is not None


def test_no_module_is_a_compiled_one():
    assert not isinstance(nn.Linear(2, 3), adjoin.jit.ScriptModule) and issubclass(adjoin.jit.ScriptModule, nn.Module)
    assert adjoin.jit.script(nn.ReLU())(adjoin.ones(1)).item() == 1


def test_an_optimizer_that_skips_init():
    class Plain(adjoin.optim.Optimizer):
        def __init__(self, params):
            self.param_groups, self.state, self.defaults = [{"params": list(params)}], {}, {}

        @adjoin.no_grad()
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.sub_(p.grad)

    p, other = nn.Parameter(adjoin.ones(2)), nn.Parameter(adjoin.ones(2))
    optimizer, second = Plain([p]), Plain([other])
    calls = []
    optimizer.register_step_pre_hook(lambda *args: calls.append(1))
    for each, o in ((p, optimizer), (other, second)):
        each.sum().backward()
        o.step()
        o.zero_grad()
    assert p.tolist() == other.tolist() == [0.0, 0.0] and p.grad is None and calls == [1]


def test_numpy_under_no_grad():
    x = adjoin.ones(2, requires_grad=True)
    with adjoin.no_grad():
        assert x.numpy().tolist() == numpy.asarray(x).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"requires grad; use .detach\(\).numpy\(\)"):
        x.numpy()


@pytest.mark.parametrize("name", ["is_mps", "is_xpu", "is_xla", "is_ipu", "is_mtia", "is_maia", "is_vulkan"])
def test_kinds_of_devices_that_are_not_here(name):
    assert getattr(adjoin.ones(1), name) is False
    assert adjoin.is_autocast_enabled("mps") is False


def test_indices_of_the_host_go_to_the_device():
    x = adjoin.arange(12.0, device="reference").view(3, 4)
    rows, mask, whole = adjoin.tensor([0, 2]), adjoin.tensor([True, False, True]), adjoin.arange(12).view(3, 4) % 2 == 0
    for key in (rows, mask, whole, (rows, rows), (slice(None), rows), (rows, None), [0, 1], (mask, 1)):
        host = x.cpu()
        assert x[key].device == x.device and x[key].tolist() == host[key].tolist()
        for value in (5.0, adjoin.tensor(5.0)):
            written = x.clone()
            written[key] = value
            host = x.cpu()
            host[key] = value
            assert written.tolist() == host.tolist()
    y = x.clone().requires_grad_()
    y[rows].sum().backward()
    assert y.grad.sum(1).tolist() == [4.0, 0.0, 4.0]
    assert x.clone().index_put_((rows,), adjoin.zeros(4, device="reference")).sum().item() == 22.0
    with pytest.raises(adjoin.DeviceMismatchError, match="an index is on another device"):
        adjoin.ones(3)[rows.to("reference")]
    with pytest.raises(adjoin.DeviceMismatchError):
        x[rows] = adjoin.ones(2, 4)

"""tests/python/toplevel/overrides_test.py: modes that see every call, subclasses and strangers that see calls with themselves."""

import inspect
import threading

import adjoin
import pytest
from adjoin import overrides
from adjoin.nn import functional as F
from adjoin.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Log(TorchFunctionMode):
    def __init__(self, mark=""):
        self.mark, self.seen = mark, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(self.mark + func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_everything():
    with Log() as log:
        x = adjoin.ones(3)
        y = x + 1
        y += 2
        z = F.relu(-y)
        z.sum()
        adjoin.stack([x, y], dim=0)
        x[0]
        x[1] = 5
        _ = x < y
        1 - x
        x.to(adjoin.float64)
    assert log.seen == "ones add add_ neg relu sum stack __getitem__ __setitem__ lt __rsub__ to".split()
    before = list(log.seen)
    assert (x + y).shape == (3,) and log.seen == before and x.tolist() == [1, 5, 1]


def test_modes_nest_and_change_results():
    class Negate(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is adjoin.add:
                func = adjoin.sub
            return func(*args, **(kwargs or {}))

    outer, inner = Log("outer "), Log("inner ")
    with outer, Negate(), inner:
        assert adjoin.add(adjoin.tensor(1.0), 3).item() == -2
    assert inner.seen[0] == "inner add" and outer.seen[0] == "outer sub"
    with BaseTorchFunctionMode():
        assert adjoin.add(adjoin.tensor(1.0), 3).item() == 4


def test_a_mode_ends_with_an_exception_and_is_of_its_thread():
    with pytest.raises(ZeroDivisionError), Log():
        adjoin.ones(1)
        raise ZeroDivisionError
    log, other = Log(), []
    with log:
        thread = threading.Thread(target=lambda: other.append(adjoin.ones(2).tolist()))
        thread.start()
        thread.join()
    assert log.seen == [] and other == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match="no TorchFunctionMode was entered"):
        TorchFunctionMode().__exit__()


def test_errors_and_refusals_of_a_mode():
    class Refuse(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    class Fail(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    x = adjoin.ones(2)
    with Refuse(), pytest.raises(TypeError, match="no implementation found"):
        x + 1
    with Fail():
        for call in (lambda: x + 1, lambda: adjoin.exp(x), lambda: x[0], lambda: x.mul_(2), lambda: -x):
            with pytest.raises(KeyError):
                call()
    assert x.tolist() == [1, 1]


def test_training_under_a_mode():
    net = adjoin.nn.Linear(3, 2)
    optimizer = adjoin.optim.SGD(net.parameters(), lr=0.1)
    with Log() as log:
        net(adjoin.ones(4, 3)).sum().backward()
        optimizer.step()
    assert "linear" in log.seen and net.weight.grad is not None


def test_in_place_on_a_subclass():
    class Mine(adjoin.Tensor):
        pass

    x = adjoin.ones(2).as_subclass(Mine)
    y = x
    x += 1
    assert x.tolist() == [2, 2] and type(x) is Mine and y.tolist() == [2, 2]


def test_strangers():
    class Stranger:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), sorted(kwargs or {})

    assert adjoin.add(Stranger(), 1, alpha=2) == ("add", 2, ["alpha"])
    assert adjoin.ones(2) + Stranger() == ("add", 2, [])
    assert F.linear(Stranger(), adjoin.ones(2)) == ("linear", 2, [])

    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def own(a, b=None):
        return "own"

    assert own(adjoin.ones(1)) == "own" and own(adjoin.ones(1), Stranger()) == ("own", 2, [])
    with Log() as log:
        assert own(1) == "own"
    assert log.seen == ["own"]


def test_names():
    assert overrides.resolve_name(adjoin.add) == "adjoin.add"
    assert overrides.resolve_name(F.linear) == "adjoin.nn.functional.linear"
    assert overrides.resolve_name(adjoin.Tensor.add) == "adjoin.Tensor.add"
    assert overrides.resolve_name(print) is None
    found = overrides.get_overridable_functions()
    assert adjoin.add in found[adjoin] and F.linear in found[F]
    assert overrides.is_tensor_method_or_property(adjoin.Tensor.add)
    assert not overrides.is_tensor_method_or_property(F.linear)


def test_functions_to_test_overrides_with():
    dummies = overrides.get_testing_overrides()
    assert dummies.keys() == {f for functions in overrides.get_overridable_functions().values() for f in functions}
    assert dummies[adjoin.add](1, 2) == dummies[adjoin.add](1, other=2, alpha=3) == -1
    assert inspect.signature(dummies[adjoin.add]) == inspect.signature(adjoin.add)
    with pytest.raises(TypeError, match="missing a required argument: 'other'"):
        dummies[adjoin.add](1)
    assert dummies[adjoin.Tensor.unsqueeze_](1, 2) == -1

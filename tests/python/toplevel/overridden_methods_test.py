"""tests/python/toplevel/overridden_methods_test.py: operators, methods and properties of Tensor are seen by ``__torch_function__`` as
the methods of the class, so ``func is Tensor.add`` finds x + y."""

import copy
import operator

import pytest

import adjoin
from adjoin import Tensor
from adjoin.overrides import TorchFunctionMode, get_default_nowrap_functions


class Seen(TorchFunctionMode):
    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args))
        return func(*args, **(kwargs or {}))


class Marked(Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def first_call(act):
    with Seen() as seen:
        result = act()
    func, args = seen.calls[0]
    return func, args, result


OPERATORS = """
add:add,add,add_ sub:sub,__rsub__,sub_ mul:mul,mul,mul_ truediv:div,__rdiv__,div_ floordiv:__floordiv__,__rfloordiv__,floor_divide_
mod:remainder,__rmod__,remainder_ pow:pow,__rpow__,pow_ and_:__and__,bitwise_and,__iand__ or_:__or__,bitwise_or,__ior__
xor:__xor__,bitwise_xor,__ixor__ lshift:__lshift__,__rlshift__,__ilshift__ rshift:__rshift__,__rrshift__,__irshift__
""".split()


@pytest.mark.parametrize("row", OPERATORS)
def test_operators_are_methods(row):
    name, methods = row.split(":")
    forward, reflected, in_place = methods.split(",")
    act, write = getattr(operator, name), getattr(operator, "i" + name.rstrip("_"))
    x = adjoin.tensor([5, 3])
    if name == "truediv":
        x = x.double()
    func, args, result = first_call(lambda: act(x, 2))
    assert func is getattr(Tensor, forward) and args == (x, 2) and result.equal(act(x, 2))
    func, args, result = first_call(lambda: act(2, x))
    assert func is getattr(Tensor, reflected) and args[0] is x and args[1] == 2 and result.equal(act(2, x))
    y = x.clone()
    func, args, result = first_call(lambda: write(y, x))
    assert func is getattr(Tensor, in_place) and args[0] is y and result is y and y.equal(act(x, x))


@pytest.mark.parametrize("row", ["eq:__eq__", "ne:ne", "lt:lt", "le:le", "gt:gt", "ge:ge", "matmul:matmul"])
def test_other_pairs(row):
    name, method = row.split(":")
    x = adjoin.tensor([1.0, 2])
    func, args, result = first_call(lambda: getattr(operator, name)(x, x))
    assert func is getattr(Tensor, method) and args == (x, x) and result.equal(getattr(operator, name)(x, x))


@pytest.mark.parametrize("row", ["neg:neg", "pos:positive", "abs:abs", "invert:__invert__"])
def test_of_one(row):
    name, method = row.split(":")
    x = adjoin.tensor([1, -2])
    func, args, result = first_call(lambda: getattr(operator, name)(x))
    assert func is getattr(Tensor, method) and args == (x,) and result.equal(getattr(operator, name)(x))


@pytest.mark.parametrize("act", [float, int, bool, complex, operator.index, repr], ids=lambda act: act.__name__)
def test_conversions(act):
    x = adjoin.tensor(3)
    func, args, result = first_call(lambda: act(x))
    assert func.__name__ == f"__{act.__name__}__" and args[0] is x and result == act(x)


METHODS = """
size stride dim numel data_ptr is_contiguous storage_offset element_size item tolist detach cpu numpy type requires_grad_
is_floating_point is_complex get_device is_shared untyped_storage
""".split()


@pytest.mark.parametrize("name", METHODS)
def test_methods_without_an_op(name):
    x = adjoin.tensor([3.0])
    func, args, result = first_call(lambda: getattr(x, name)())
    assert func is getattr(Tensor, name) and args == (x,) and type(result) is type(getattr(x, name)())


@pytest.mark.parametrize(
    "name", "shape device layout ndim T grad data requires_grad is_leaf grad_fn is_cpu real _version _base".split()
)
def test_properties(name):
    x = adjoin.ones(2, 3)
    func, args, result = first_call(lambda: getattr(x, name))
    assert func == getattr(Tensor, name).__get__ and args == (x,) and type(result) is type(getattr(x, name))


def test_properties_that_are_set():
    x = adjoin.ones(2)
    for name, value in (("grad", adjoin.zeros(2)), ("requires_grad", True), ("data", adjoin.full((2,), 7.0))):
        func, args, _ = first_call(lambda: setattr(x, name, value))
        assert func == getattr(Tensor, name).__set__ and args[0] is x and args[1] is value
    assert x.requires_grad and x.detach().tolist() == [7, 7] and x.grad.tolist() == [0, 0]


def test_a_subclass_sees_them_and_keeps_its_type():
    x = adjoin.arange(6.0).reshape(2, 3).as_subclass(Marked)
    Marked.seen.clear()
    made = [x + 1, 1 - x, -x, x // 2, x.T, x.data, x.detach(), x.real, copy.deepcopy(x), *x]
    assert {type(t) for t in made} == {Marked}
    assert {Tensor.add, Tensor.__rsub__, Tensor.neg, Tensor.__floordiv__, Tensor.T.__get__, Tensor.detach} <= set(
        Marked.seen
    )
    assert (
        x.shape == adjoin.Size([2, 3])
        and type(x.shape) is adjoin.Size
        and len(x) == 2
        and 5.0 in x
        and repr(x).startswith("Marked")
    )
    y = x.requires_grad_()
    (y * 2).sum().backward()
    assert (
        type(y.grad) is Tensor and type(y[0]._base) is Tensor and Tensor.grad.__get__ in get_default_nowrap_functions()
    )


def test_a_subclass_may_answer():
    class Boxed(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            answers = {
                Tensor.shape.__get__: "a shape",
                Tensor.dim: 42,
                Tensor.__len__: 7,
                Tensor.__bool__: True,
                Tensor.add: "a sum",
            }
            if func in answers:
                return answers[func]
            return super().__torch_function__(func, types, args, kwargs or {})

    x = adjoin.zeros(3).as_subclass(Boxed)
    assert (x.shape, x.dim(), len(x), bool(x), x + 1, 1 + x) == ("a shape", 42, 7, True, "a sum", "a sum")
    with adjoin._C.DisableTorchFunctionSubclass():
        assert x.shape == (3,) and x.dim() == 1 and len(x) == 3 and (x + 1).sum().item() == 3


def test_names_of_what_is_seen():
    assert adjoin.overrides.resolve_name(Tensor.add) == "adjoin.Tensor.add"
    assert adjoin.overrides.resolve_name(adjoin.nn.functional.linear) == "adjoin.nn.functional.linear"
    assert adjoin.overrides.resolve_name(Tensor.shape.__get__) == "adjoin.Tensor.shape.__get__"
    assert adjoin.overrides.resolve_name(len) is None

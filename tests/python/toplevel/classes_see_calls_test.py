"""tests/python/toplevel/classes_see_calls_test.py: __torch_dispatch__ of classes whose tensors have memory, of wrappers in backward, and what a class tells of sizes."""

import copy

import adjoin
import pytest
from adjoin import nn
from adjoin.utils._mode_utils import no_dispatch
from adjoin.utils._python_dispatch import TorchDispatchMode, _make_wrapper_subclass
from adjoin.utils._pytree import tree_map

aten, prim = adjoin.ops.aten, adjoin.ops.prim


class Seen(adjoin.Tensor):
    """A class whose tensors have memory."""

    log = []

    @staticmethod
    def __new__(cls, values):
        return adjoin.Tensor._make_subclass(cls, values, values.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Seen.log.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


@pytest.fixture(autouse=True)
def _no_log():
    Seen.log.clear()


def test_a_class_sees_calls_with_its_tensors_that_have_memory():
    x = Seen(adjoin.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert type(x @ x) is adjoin.Tensor and ((x * 1) @ x + 1).tolist() == [
        [8, 11],
        [16, 23],
    ]  # as PyTorch's super() gives
    assert Seen.log == ["aten.mm.default", "aten.mul.Tensor", "aten.mm.default"]
    assert x.numpy().sum() == 10 and "Seen" in repr(x)
    assert type(adjoin.ones(2).as_subclass(Seen)) is Seen
    Seen.log.clear()
    x.mul_(2)
    assert Seen.log == ["aten.mul_.Tensor"] and x.tolist() == [[2, 4], [6, 8]]


def test_what_such_a_class_answers_counts():
    class Halved(Seen):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with adjoin._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {})) / 2

    class Quartered(Seen):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with no_dispatch():
                return func(*args, **(kwargs or {})) / 4

    assert (Quartered(adjoin.ones(2)) * 4).tolist() == [1, 1]
    assert (Halved(adjoin.ones(2)) * 4).tolist() == [2, 2] and (Seen(adjoin.ones(2)) * 4).tolist() == [4, 4]


def test_such_tensors_are_trained():
    x = Seen(adjoin.arange(3.0).requires_grad_())
    (x * x).sum().backward()
    assert x.grad.tolist() == [0, 2, 4] and Seen.log[0] == "aten.mul.Tensor"
    adjoin.optim.SGD([x], 0.5).step()
    assert x.tolist() == [0, 0, 0]
    p = nn.Parameter(Seen(adjoin.ones(3)))
    assert type(p) is Seen and isinstance(p, nn.Parameter) and p.requires_grad
    twin = copy.deepcopy(Seen(adjoin.ones(3)))
    assert type(twin) is Seen and twin.tolist() == [1, 1, 1]


def test_subclasses_are_asked_before_their_bases_and_modes_before_all():
    class A(Seen):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise KeyError("a")

    class B(A):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise KeyError("b")

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mode")

    a, b = A(adjoin.ones(1)), B(adjoin.ones(1))
    for function, who in ((lambda: a + a, "a"), (lambda: a + b, "b"), (lambda: b + a, "b")):
        with pytest.raises(KeyError, match=who):
            function()
    with Mode(), pytest.raises(KeyError, match="mode"):
        b + b


def test_a_mode_needs_a_plain_method():
    class Wrong(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"), Wrong():
        pass
    assert (adjoin.ones(1) + 1) == 2


class Wrapped(adjoin.Tensor):
    """A class of wrappers."""

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = _make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, requires_grad=requires_grad
        )
        made.elem = elem.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = tree_map(lambda e: e.elem if isinstance(e, cls) else e, (args, kwargs or {}))
        return tree_map(lambda e: cls(e) if isinstance(e, adjoin.Tensor) else e, func(*inner[0], **inner[1]))


@pytest.mark.parametrize(
    "function,kept",
    [
        (lambda x: x.sum(), True),
        (lambda x: x[1:3].sum(), True),
        (lambda x: x[0].sum(), True),
        (lambda x: x.gather(1, adjoin.zeros(4, 2, dtype=adjoin.int64)).sum(), True),
        (lambda x: x.split(2)[1].pow(2).sum(), True),
        (lambda x: x.sort(1).values[:, 0].sum(), False),
        (lambda x: x.topk(2).values.sum(), False),
        (lambda x: x.clone().t_().pow(2)[0].sum(), True),
        (lambda x: x.clone().unsqueeze_(0).transpose_(1, 2).pow(2)[0, 1].sum(), True),
    ],
)
def test_gradients_of_wrappers_are_those_of_what_they_hold(function, kept):
    values = adjoin.arange(24.0).view(4, 6).sin()
    plain, wrapped = values.clone().requires_grad_(), Wrapped(values.clone(), True)
    function(plain).backward()
    function(wrapped).backward()
    got = wrapped.grad
    assert isinstance(got, Wrapped) == kept
    assert adjoin.equal(got.elem if isinstance(got, Wrapped) else got, plain.grad)
    (direct,) = adjoin.autograd.grad(function(wrapped), wrapped)
    assert adjoin.equal(direct.elem if isinstance(direct, Wrapped) else direct, plain.grad)


def test_a_wrapper_changes_its_shape_in_place():
    x = Wrapped(adjoin.arange(6.0).view(2, 3))
    other, keep = x, x.view(6)
    assert x.unsqueeze_(0) is x and other.shape == (1, 2, 3) and x.elem.shape == (1, 2, 3)
    assert x.squeeze_(0).t_() is x and x.shape == (3, 2) and x.elem.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert keep.shape == (6,)
    x.tag = "own"
    assert (x + 1).elem.sum() == 21 and x.tag == "own"
    leaf = Wrapped(adjoin.ones(2, 3), True)
    with pytest.raises(RuntimeError, match="t_: a leaf that requires grad keeps its shape"):
        leaf.t_()


class Told(adjoin.Tensor):
    """A class that tells more than its tensors have."""

    @staticmethod
    def __new__(cls, values, wrapped, **policy):
        if wrapped:
            return _make_wrapper_subclass(cls, values.size(), dtype=values.dtype, **policy)
        return adjoin.Tensor._make_subclass(cls, values, True, **policy)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is aten.is_contiguous.memory_format:
            return args[1] is adjoin.channels_last
        told = {
            aten.dim.default: 2, aten.sym_size.default: (5, 6), aten.sym_stride.default: (6, 1), aten.is_contiguous.default: False,
            prim.device.default: adjoin.device("meta"), prim.layout.default: adjoin.sparse_csr,
        }  # fmt: skip
        return told.get(func, NotImplemented)


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_class_tells_sizes_strides_device_and_layout(wrapped):
    values = adjoin.zeros(3)
    x = Told(values, wrapped, dispatch_sizes_strides_policy="sizes")
    assert (x.dim(), x.ndim, x.shape, x.size(1), x.stride(0)) == (2, 2, (5, 6), 6, 6)
    assert not x.is_contiguous() and x.is_contiguous(memory_format=adjoin.channels_last) and x.device.type == "cpu"
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.ops.aten.sym_numel.default'"):
        x.numel()
    x = Told(values, wrapped, dispatch_sizes_strides_policy="strides")
    assert x.shape == (3,) and x.dim() == 1 and x.stride() == (6, 1) and not x.is_contiguous()
    x = Told(values, wrapped, dispatch_device=True, dispatch_layout=True)
    assert x.device.type == "meta" and x.layout is adjoin.sparse_csr and x.shape == (3,)
    plain = Told(values, wrapped)
    assert plain.shape == (3,) and plain.device.type == "cpu" and plain.is_contiguous()


def test_a_policy_that_nobody_knows_is_refused():
    with pytest.raises(RuntimeError, match="dispatch_sizes_strides_policy is 'shape'; 'strides', 'sizes' and None"):
        Told(adjoin.zeros(3), True, dispatch_sizes_strides_policy="shape")

    class Silent(adjoin.Tensor):
        pass

    with pytest.raises(RuntimeError, match="Silent has no __torch_dispatch__, which would tell sizes"):
        adjoin.Tensor._make_subclass(Silent, adjoin.zeros(3), dispatch_sizes_strides_policy="sizes")
    assert aten.is_non_overlapping_and_dense(adjoin.zeros(2, 3).t()) and not aten.is_non_overlapping_and_dense(
        adjoin.zeros(2, 3)[:, :2]
    )

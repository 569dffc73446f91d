"""tests/python/tensor/numbers_and_indices_test.py: indices of int32, scatter's reduce, vectors as weights, convolutions of integers, numbers
that do not fit, and the kinds of errors."""

import math

import adjoin as aj
import numpy as np
import pytest
from adjoin.nn import functional as F


def numbers(shape, dtype=aj.int64):
    return (aj.arange(math.prod(shape)).reshape(shape) % 7 - 2).to(dtype)


INDEXED = {
    "gather": lambda x, i: x.gather(0, i.reshape(1, 2)),
    "index_select": lambda x, i: x.index_select(0, i),
    "take_along_dim": lambda x, i: aj.take_along_dim(x, i.reshape(1, 2), 0),
    "scatter": lambda x, i: x.scatter(1, i.reshape(2, 1), 5.0),
    "scatter of a tensor": lambda x, i: x.scatter(1, i.reshape(2, 1), aj.ones(2, 1)),
    "scatter_add": lambda x, i: x.scatter_add(1, i.reshape(2, 1), aj.ones(2, 1)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(1, i.reshape(2, 1), aj.ones(2, 1), "amax"),
    "index_add": lambda x, i: x.index_add(0, i, aj.ones(2, 2)),
    "index_copy": lambda x, i: x.index_copy(0, i, aj.ones(2, 2)),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_of_int32_is_one_of_int64(name):
    x, i, f = aj.tensor([[1.0, -2.0], [3.0, 4.0]]), aj.tensor([1, 0]), INDEXED[name]
    assert f(x, i.int()).tolist() == f(x, i).tolist()
    slopes = []
    for index in (i, i.int()):
        y = x.clone().requires_grad_()
        (f(y, index) ** 2).sum().backward()
        slopes.append(y.grad.tolist())
    assert slopes[0] == slopes[1]
    if name != "take_along_dim":
        with pytest.raises(RuntimeError, match="int16; it must be int64"):
            f(x, i.short())


def test_scatter_with_reduce():
    x, i, src = aj.ones(2, 3) * 2, aj.tensor([[0, 0], [2, 1]]), aj.tensor([[3.0, 4.0], [5.0, 6.0]])
    assert x.scatter(1, i, src, reduce="add").tolist() == [[9, 2, 2], [2, 8, 7]]
    assert x.scatter(1, i, src, reduce="multiply").tolist() == [[24, 2, 2], [2, 12, 10]]
    assert aj.scatter(x, 1, i, 3.0, reduce="multiply").tolist() == [[18, 2, 2], [2, 6, 6]]
    y = x.clone()
    assert y.scatter_(1, i, 3, reduce="add") is y and y.tolist() == [[8, 2, 2], [2, 5, 5]]
    with pytest.raises(RuntimeError, match="reduce must be 'add' or 'multiply', it is 'mean'"):
        x.scatter(1, i, src, reduce="mean")


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_by_a_vector(shape, bias):
    x = (numbers(shape) * 0.5).double().requires_grad_()
    w = aj.tensor([1.0, -2.0, 0.5, 3.0], dtype=aj.float64, requires_grad=True)
    b = aj.tensor(0.25, dtype=aj.float64, requires_grad=True) if bias else None
    y = F.linear(x, w, b)
    wanted = (x * w).sum(-1) + (b if bias else 0)
    assert y.shape == shape[:-1] and aj.allclose(y, wanted)
    given = [t for t in (x, w, b) if t is not None]
    for a, e in zip(aj.autograd.grad((y**2).sum(), given), aj.autograd.grad((wanted**2).sum(), given), strict=True):
        assert aj.allclose(a, e)
    if x.numel():
        assert aj.autograd.gradgradcheck(F.linear, tuple(given))
    with pytest.raises(RuntimeError, match="weight must have 1 or 2 dimensions"):
        F.linear(x, aj.ones(1, 1, 4, dtype=aj.float64))


CONVOLUTIONS = [
    (F.conv1d, (2, 4, 9), (6, 2, 3), {"stride": 2, "padding": 1, "groups": 2}),
    (F.conv2d, (2, 4, 7, 6), (6, 2, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    (F.conv2d, (4, 7, 6), (6, 4, 3, 2), {"padding": "same"}),
    (F.conv3d, (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {}),
    (F.conv_transpose1d, (2, 4, 5), (4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    (
        F.conv_transpose2d,
        (2, 4, 4, 5),
        (4, 3, 3, 2),
        {"stride": (2, 3), "padding": (1, 0), "dilation": (2, 1), "groups": 2},
    ),
    (F.conv_transpose2d, (1, 2, 3, 3), (2, 1, 2, 2), {"padding": 2}),
    (F.conv2d, (0, 4, 7, 6), (6, 4, 3, 2), {}),
]


@pytest.mark.parametrize("device", ["cpu", "reference", "emulated"])
def test_logit_with_bounds_that_cross(device):
    x = np.array([0.1, 0.5, 0.65, 0.9])
    p = np.where(x < 0.7, 0.7, np.where(x > 0.3, 0.3, x))
    got = aj.logit(aj.tensor(x, device=device), eps=0.7).cpu().numpy()
    assert got == pytest.approx(np.log(p / (1 - p)))


@pytest.mark.parametrize("device", ["cpu", "reference", "emulated"])
@pytest.mark.parametrize("bias", [(), (1,), (5,), (1, 5), (5, 1), (5, 5), (2, 5, 5), (2, 1, 1), (2, 1, 5)])
def test_linear_with_a_bias_that_broadcasts(bias, device):
    draw = np.random.default_rng(3)
    x, w, b = (draw.standard_normal(s) for s in ((2, 5, 3), (5, 3), bias))
    given = [aj.tensor(v, dtype=aj.float64, device=device, requires_grad=True) for v in (x, w, b)]
    got = aj.nn.functional.linear(*given)
    assert got.detach().cpu().numpy() == pytest.approx(x @ w.T + b)
    got.sum().backward()
    assert given[2].grad.cpu().numpy() == pytest.approx(np.full(bias, 50 / max(1, np.prod(bias))))


@pytest.mark.parametrize("device", ["cpu", "reference", "emulated"])
def test_linear_by_a_vector_with_a_bias_for_each_row(device):
    x, w, b = np.ones((5, 3)), np.arange(3.0), np.arange(5.0)
    got = aj.nn.functional.linear(*(aj.tensor(v, device=device) for v in (x, w, b)))
    assert got.cpu().tolist() == (x @ w + b).tolist()


@pytest.mark.parametrize("dtype", [aj.int64, aj.int32, aj.uint8])
@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolutions_of_integers(case, dtype):
    f, x, w, settings = CONVOLUTIONS[case]
    x, w = numbers(x).abs(), numbers(w).abs()
    channels = (
        w.shape[0]
        if f.__name__.startswith("conv") and "transpose" not in f.__name__
        else w.shape[1] * settings.get("groups", 1)
    )
    b = aj.arange(channels)
    wanted = f(x.double(), w.double(), b.double(), **settings)
    found = f(x.to(dtype), w.to(dtype), b.to(dtype), **settings)
    assert found.dtype == dtype and found.shape == wanted.shape
    assert aj.equal(found.double(), wanted.to(aj.int64).to(dtype).double())
    assert aj.equal(
        f(x.to(dtype), w.to(dtype), **settings).long(), f(x.double(), w.double(), **settings).long().to(dtype).long()
    )


def test_convolutions_of_integers_refuse_what_others_do():
    with pytest.raises(RuntimeError, match="conv2d: input is int64, weight is float32"):
        F.conv2d(numbers((1, 2, 5, 5)), aj.ones(3, 2, 2, 2))
    with pytest.raises(RuntimeError, match="conv2d: the kernel reaches over 9"):
        F.conv2d(numbers((1, 2, 5, 5)), numbers((3, 2, 9, 9)))


def test_the_square_of_a_bool_counts():
    x = aj.tensor([True, False])
    for found in (x.square(), aj.square(x), x**2):
        assert found.dtype == aj.int64 and found.tolist() == [1, 0]


DO_NOT_FIT = {
    "fill_": lambda: aj.zeros(2, dtype=aj.int8).fill_(200),
    "full": lambda: aj.full((2,), 300, dtype=aj.uint8),
    "full of nan": lambda: aj.full((2,), math.nan, dtype=aj.int32),
    "complex": lambda: aj.zeros(2).fill_(1j),
    "new_full": lambda: aj.zeros(2).new_full((2,), 1j),
    "masked_fill": lambda: aj.zeros(2, dtype=aj.uint8).masked_fill(aj.tensor([True, False]), 300),
    "masked_fill by a complex": lambda: aj.zeros(2).masked_fill(aj.tensor([True, False]), 1j),
    "where": lambda: aj.where(aj.tensor([True]), aj.zeros(1, dtype=aj.int8), 200),
    "pad": lambda: F.pad(aj.zeros(2, dtype=aj.uint8), (1, 1), value=300),
    "item": lambda: aj.zeros(2, dtype=aj.uint8).__setitem__(0, 300),
    "item of a mask": lambda: aj.zeros(2, dtype=aj.int64).__setitem__(aj.tensor([True, False]), 1j),
}


@pytest.mark.parametrize("name", DO_NOT_FIT)
def test_numbers_that_do_not_fit_are_refused(name):
    with pytest.raises(RuntimeError, match="does not fit into|cannot be converted to type"):
        DO_NOT_FIT[name]()


def test_numbers_that_fit_are_taken():
    assert aj.zeros(1, dtype=aj.uint8).fill_(-1).item() == 255 and aj.zeros(1, dtype=aj.int8).fill_(-128).item() == -128
    assert aj.zeros(1, dtype=aj.int64).fill_(-(2**63)).item() == -(2**63) and aj.zeros(1).fill_(2 + 0j).item() == 2
    assert aj.zeros(1, dtype=aj.int8).fill_(1.9).item() == 1 and aj.zeros(1, dtype=aj.bool).fill_(5).item() is True
    assert aj.tensor([-3, 5], dtype=aj.int8).clamp(-1000, 200).tolist() == [-3, 5]
    assert aj.tensor([3, 5], dtype=aj.uint8).clamp(min=-1).tolist() == [3, 5]


def test_kinds_of_errors():
    with pytest.raises(IndexError, match="do not broadcast"):
        aj.ones(3, 3)[aj.tensor([0, 1, 1]), aj.tensor([0, 2])]
    with pytest.raises(IndexError, match="index must be a vector"):
        aj.ones(3).index_select(0, aj.tensor([[0]]))
    with pytest.raises(RuntimeError, match="a complex tensor is wanted"):
        aj.imag(aj.ones(3))
    for loss in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match="give both one shape"):
            loss(aj.ones(3), aj.ones(4))


def test_a_wrong_index_in_one_of_many_chunks_is_told():
    """A kernel that throws on a thread of the pool ends with its error."""
    x, where = aj.ones(3, 41000), aj.zeros(3, 41000, dtype=aj.int64)
    where[0, 0] = -1
    for call in (lambda: x.gather(0, where), lambda: x.scatter(0, where, x)):
        with pytest.raises(IndexError):
            call()
    where[0, 0] = 0
    assert aj.equal(x.gather(0, where), x)

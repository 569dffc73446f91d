"""tests/python/tensor/shortcuts_test.py: what is served by a shorter way than the general one gives what that one gives."""

import copy
import math
import pickle

import adjoin
import pytest

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@pytest.mark.parametrize("name", DTYPES)
def test_lists_of_every_dtype(name):
    dtype = getattr(adjoin, name)
    x = adjoin.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    kind = bool if name == "bool" else complex if dtype.is_complex else float if dtype.is_floating_point else int
    for t, expected in (
        (x, [[0, 1, 1], [1, 0, 1]]),
        (x.t(), [[0, 1], [1, 0], [1, 1]]),
        (x[0, 1], 1),
        (x[:0], []),
        (x[:, :0], [[], []]),
    ):
        got = t.tolist()
        assert got == expected
        while isinstance(got, list) and got:
            got = got[0]
        assert isinstance(got, (kind, list))


def test_list_of_floats_keeps_signs_and_odd_values():
    values = [-0.0, 0.0, 256.0, 257.0, -1.0, 0.5, math.inf, -math.inf, 2.0**60]
    for dtype in (adjoin.float32, adjoin.float64):
        got = adjoin.tensor(values, dtype=dtype).tolist()
        assert got == values and [math.copysign(1, x) for x in got] == [math.copysign(1, x) for x in values]
        assert math.isnan(adjoin.tensor([math.nan], dtype=dtype).tolist()[0])


def test_views_in_place():
    x = adjoin.arange(6.0).reshape(1, 2, 3)
    assert x.squeeze_() is x and x.shape == (2, 3)
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3)
    assert x.unsqueeze_(dim=0).shape == (1, 3, 2)
    assert x.transpose_(0, 2).shape == (2, 3, 1) and x.swapaxes_(1, 2).shape == (2, 1, 3)
    assert x.as_strided_((2, 2), (3, 1), 1).tolist() == [[1.0, 2.0], [4.0, 5.0]] and x.storage_offset() == 1
    for wrong in (lambda: x.t_(1), lambda: x.transpose_(0), lambda: x.unsqueeze_(dim=0, other=1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(IndexError):
        x.unsqueeze_(7)
    w = adjoin.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        w.t_()
    base = adjoin.ones(2, 3)
    view = base[0]
    base.mul_(w.sum())
    with pytest.raises(RuntimeError, match="requires grad"):  # it has a history since its base has
        view.unsqueeze_(0)


def test_limits_are_one_object_for_a_dtype():
    assert adjoin.finfo(adjoin.float32) is adjoin.finfo() and adjoin.iinfo(adjoin.int8).max == 127
    for limits in (adjoin.finfo(adjoin.float64), adjoin.iinfo(adjoin.uint8)):
        for copied in (copy.copy(limits), copy.deepcopy(limits), pickle.loads(pickle.dumps(limits))):
            assert copied.max == limits.max and copied.dtype == limits.dtype
    assert adjoin.finfo(adjoin.float32).bits == 32 and adjoin.finfo(adjoin.complex128).bits == 64
    with pytest.raises(TypeError, match="use iinfo"):
        adjoin.finfo(adjoin.int8)
    with pytest.raises(TypeError, match="use finfo"):
        adjoin.iinfo(adjoin.float32)


def test_result_type_of_two_of_a_sort():
    f, i, zero = adjoin.ones(2), adjoin.ones(2, dtype=adjoin.int8), adjoin.tensor(1.0, dtype=adjoin.float64)
    assert adjoin.result_type(f, i) is adjoin.float32 and adjoin.result_type(f, zero) is adjoin.float32
    assert adjoin.result_type(zero, zero) is adjoin.float64 and adjoin.result_type(i, 1.5) is adjoin.float32


def test_empty_by_the_class_has_the_defaults():
    assert adjoin.Tensor(2, 3).shape == (2, 3) and adjoin.Tensor(0).shape == (0,) and adjoin.Tensor().shape == (0,)
    adjoin.set_default_dtype(adjoin.float64)
    try:
        assert adjoin.Tensor(2).dtype is adjoin.float64
    finally:
        adjoin.set_default_dtype(adjoin.float32)
    assert adjoin.ones(2, dtype=adjoin.int16).new(3, 1).dtype is adjoin.int16


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 5000])
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "bfloat16", "complex64"])
def test_products_of_vectors(n, name):
    x = (adjoin.arange(n) % 7 - 3).to(getattr(adjoin, name))
    y = (adjoin.arange(n) % 5 - 2).to(getattr(adjoin, name))
    expected = sum((k % 7 - 3) * (k % 5 - 2) for k in range(n))
    for got in (x.dot(y), x @ y, adjoin.mm(x[None], y[:, None])):
        assert got.item() == pytest.approx(expected, rel=1e-2 if name == "bfloat16" else 0, abs=0)
    twice = adjoin.stack([x, x], 1)[:, 0]
    assert twice.dot(y).item() == pytest.approx(expected, rel=1e-2 if name == "bfloat16" else 0, abs=0)


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_as_operands_keep_the_dtype(name):
    x = adjoin.ones(3, 3).to(getattr(adjoin, name))
    mask = adjoin.tensor([[True, False, False]] * 3)
    for got in (
        x.masked_fill(mask, 0),
        x.masked_fill(mask, adjoin.tensor(0)),
        x.tril(),
        x.triu(1),
        x.tril(10**18),
        x.triu(-(10**18)),
    ):
        assert got.dtype is x.dtype
    assert x.masked_fill(mask, 0).to(adjoin.int64).tolist() == [[0, 1, 1]] * 3
    assert (
        x.tril(10**18).equal(x) and x.tril(-4).to(adjoin.float32).sum() == 0 and x.triu(3).to(adjoin.float32).sum() == 0
    )
    assert x.tril(-1).to(adjoin.float32).sum() == 3 and x.triu(1).to(adjoin.float32).sum() == 3


@pytest.mark.parametrize("shape", [(1,), (15,), (17,), (64,), (1000,), (40, 41), (3, 5, 7)])
@pytest.mark.parametrize("name", DTYPES)
def test_fills_of_every_size(shape, name):
    x = adjoin.zeros(*shape).to(getattr(adjoin, name))
    whole = adjoin.zeros(*shape, 2).to(getattr(adjoin, name))
    assert x.fill_(1).to(adjoin.float32).sum() == x.numel()
    whole[..., 1].fill_(1)
    assert whole.to(adjoin.float32).sum() == x.numel() and whole[..., 0].to(adjoin.float32).sum() == 0


def test_parts_of_modules_walk_as_named():
    class Own(adjoin.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = adjoin.nn.Linear(2, 2)

        def named_modules(self, memo=None, prefix="", remove_duplicate=True):
            yield prefix, self

    shared = adjoin.nn.Linear(2, 2)
    net = adjoin.nn.Sequential(shared, adjoin.nn.ModuleList([shared, adjoin.nn.Linear(2, 1)]), adjoin.nn.ReLU())
    assert [id(p) for p in net.parameters()] == [id(p) for _, p in net.named_parameters()]
    assert len(list(net.parameters())) == 4 and len(list(net.parameters(recurse=False))) == 0
    assert not list(adjoin.nn.Sequential(Own()).parameters())
    trained = []

    class Frozen(adjoin.nn.Linear):
        def train(self, mode=True):
            trained.append(mode)
            return super().train(False)

    frozen = Frozen(1, 1)
    net = adjoin.nn.Sequential(frozen, frozen, shared)
    net.train()
    assert trained == [True] and shared.training and not frozen.training
    assert net[-1] is shared and net[0] is frozen
    with pytest.raises(IndexError):
        net[3]


def test_storages_of_their_own():
    made = adjoin.UntypedStorage([1, 2, 255])
    copy = made.clone().fill_(7)
    assert made.tolist() == [1, 2, 255] and copy.tolist() == [7, 7, 7] and made.element_size() == 1
    assert made.copy_(copy).tolist() == [7, 7, 7] and not made.is_cuda
    assert adjoin.UntypedStorage(4, device="cpu").nbytes() == 4 and adjoin.UntypedStorage().nbytes() == 0
    numbers = adjoin.TypedStorage([1, 2], dtype=adjoin.int64, device="cpu")
    assert numbers.tolist() == [1, 2] and numbers.untyped().nbytes() == 16
    with pytest.raises(TypeError, match="where it is"):
        adjoin.UntypedStorage(adjoin.ones(2), device="meta")

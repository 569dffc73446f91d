"""tests/python/files/pickle_test.py: pickle, copy and deepcopy of tensors, parameters, modules, optimizers and generators."""

import copy
import pickle

import adjoin
import pytest
from adjoin import nn


def through_pickle(x):
    return pickle.loads(pickle.dumps(x))


WAYS = {"pickle": through_pickle, "old pickle": lambda x: pickle.loads(pickle.dumps(x, 2)), "deepcopy": copy.deepcopy}
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout(way, dtype):
    base = adjoin.arange(24).reshape(2, 3, 4).to(getattr(adjoin, dtype))
    for x in (
        base,
        base[0, 0, 0],
        base[:, 1:, ::2],
        base.mT,
        base[1],
        base[:0],
        base.expand(5, 2, 3, 4),
        adjoin.zeros(0, 3),
    ):
        y = WAYS[way](x)
        assert y.dtype == x.dtype and y.shape == x.shape and y.stride() == x.stride()
        assert y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr() or not x.numel()


@pytest.mark.parametrize("way", WAYS)
def test_what_was_shared_stays_shared(way):
    a = adjoin.arange(6.0).reshape(2, 3)
    row, again = a[1], a
    made = WAYS[way]({"a": a, "rows": [row, a.t()], "again": again, "other": a.clone()})
    made["rows"][0][0] = 99
    assert made["a"][1, 0] == 99 and made["rows"][1][0, 1] == 99 and made["again"] is made["a"]
    assert a[1, 0] == 3 and made["other"][1, 0] == 3
    assert made["a"]._base is None  # a tensor by itself, not a view that records would follow


@pytest.mark.parametrize("way", WAYS)
def test_flags_attributes_and_subclasses(way):
    x = adjoin.ones(2, requires_grad=True)
    x.note = [1, 2]
    y = WAYS[way](x)
    assert y.requires_grad and y.is_leaf and y.note == [1, 2] and y.note is not x.note
    z = adjoin.ones(2).as_subclass(Marked)
    z.name = "z"
    assert type(WAYS[way](z)) is Marked and WAYS[way](z).name == "z"
    p = WAYS[way](nn.Parameter(adjoin.ones(2), requires_grad=False))
    assert type(p) is nn.Parameter and not p.requires_grad
    far = adjoin.arange(6.0).reshape(2, 3).to("reference")
    a, b = WAYS[way]((far, far[1]))
    a[1, 0] = 9
    assert a.device == far.device and b.tolist() == [9, 4, 5] and far[1, 0] == 3
    meta = WAYS[way](adjoin.ones(2, 3, device="meta"))
    assert meta.is_meta and meta.shape == (2, 3)


class Marked(adjoin.Tensor):
    pass


def test_shallow_copies_share():
    x = adjoin.ones(2)
    y = copy.copy(x)
    y[0] = 5
    assert x[0] == 5 and y is not x
    x.note = 3
    assert copy.copy(x).note == 3
    p = nn.Parameter(adjoin.ones(2))
    q = copy.copy(p)
    with adjoin.no_grad():
        q[0] = 7
    assert p[0].item() == 7 and type(q) is nn.Parameter


def test_a_tensor_with_history_is_refused():
    with pytest.raises(RuntimeError, match="deepcopy: .*detach"):
        copy.deepcopy(adjoin.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("way", WAYS)
def test_modules_and_optimizers(way):
    layer = nn.Linear(3, 3)
    net = nn.Sequential(layer, nn.BatchNorm1d(3), layer)
    optimizer = adjoin.optim.Adam(net.parameters())
    net(adjoin.randn(4, 3)).sum().backward()
    optimizer.step()
    other, steps = WAYS[way]((net, optimizer))
    assert other[0] is other[2] and str(other) == str(net)
    assert steps.param_groups[0]["params"][0] is other[0].weight
    for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
        assert a.tolist() == b.tolist()
    x = adjoin.randn(4, 3)
    for n, o in ((net, optimizer), (other, steps)):
        o.zero_grad()
        n(x).square().sum().backward()
        o.step()
    assert net[0].weight.tolist() == other[0].weight.tolist()


@pytest.mark.parametrize("way", [*WAYS, "clone_state"])
def test_generators(way):
    g = adjoin.Generator()
    g.manual_seed(3)
    adjoin.rand(5, generator=g)
    h = g.clone_state() if way == "clone_state" else WAYS[way](g)
    assert h.initial_seed() == 3 and h.device == g.device
    assert adjoin.rand(4, generator=g).tolist() == adjoin.rand(4, generator=h).tolist()


def test_fork_rng():
    adjoin.manual_seed(5)
    with adjoin.random.fork_rng():
        adjoin.manual_seed(1)
    assert adjoin.initial_seed() == 5
    with adjoin.random.fork_rng(enabled=False):
        adjoin.manual_seed(1)
    assert adjoin.initial_seed() == 1
    with pytest.raises(ValueError), adjoin.random.fork_rng():
        adjoin.rand(3)
        raise ValueError
    state = adjoin.get_rng_state()
    first = adjoin.rand(3)
    adjoin.set_rng_state(state)
    assert adjoin.rand(3).tolist() == first.tolist()

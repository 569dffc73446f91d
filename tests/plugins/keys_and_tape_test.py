"""tests/plugins/keys_and_tape_test.py: a key whose fallback only passes calls on changes no value, gradient or second gradient."""

import threading

import pytest
from passing import KEYS, calls, load

import adjoin as T
from adjoin import nn

F = nn.functional


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    load(tmp_path_factory.mktemp("passing"))


class Twice(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x, x * x

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * g + 2 * x * h


class Adds(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)

    @staticmethod
    def backward(ctx, g):
        return g, g


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def multiplies_in_place(x, w):
    y = x * 1
    y.mul_(x)
    return y


@program
def keeps_what_it_overwrites(x, w):
    y = x * 1
    y.mul_(w)
    return y.sin_()


@program
def writes_through_a_view(x, w):
    y = x * 1
    y[1:].mul_(w[1:])
    return y * y


@program
def views_follow_their_base(x, w):
    y = x * 2
    v = y[0]
    y.mul_(w)
    return v * v


@program
def fills_a_part_of_a_constant(x, w):
    y = T.zeros_like(x)
    y[0] = x[1] * w[1]
    y[1, :2] = w[0, :2]
    return y * y


@program
def a_view_of_a_constant_then_written(x, w):
    y = T.zeros_like(x)
    v = y.view(-1)
    v.add_(x.reshape(-1))
    v[2:4].mul_(w.reshape(-1)[2:4])
    return y


@program
def reshapes_with_a_copy(x, w):
    return x.t().reshape(-1) * w.reshape(-1)


@program
def views_in_a_row(x, w):
    return x.transpose(0, 1)[1:].unsqueeze(0).expand(2, -1, -1) * w.permute(1, 0)[1:]


@program
def splits(x, w):
    a, b = x.split([1, 2], 1)
    return a * b + w.unbind(0)[1].sum()


@program
def normalises(x, w):
    return F.layer_norm(x, (3,), w[0], w[1])


@program
def composites(x, w):
    return F.cross_entropy(x, T.tensor([0, 2])) + F.smooth_l1_loss(x, w) + F.gelu(x, approximate="tanh").sum()


@program
def batch_norm_with_its_statistics(x, w):
    mean, var = T.zeros(3, dtype=x.dtype), T.ones(3, dtype=x.dtype)
    y = F.batch_norm(x, mean, var, w[0], w[1], training=True)
    return y * y * x + mean + var


@program
def a_composite_in_place(x, w):
    y = x * w
    F.relu(y, inplace=True)
    z = F.hardtanh_(y * w, -0.2, 0.3)
    F.silu(z, inplace=True)
    return z * w


@program
def lists(x, w):
    return T.cat([x, w * x, T.stack([x[0], w[1]])]) * 2


@program
def several_results(x, w):
    values, places = x.topk(2, dim=1)
    low, _ = w.min(dim=0)
    return values.sum() * low + x.sort(dim=1)[0].prod() + T.aminmax(x)[0]


@program
def matrices(x, w):
    z = x @ w.t()
    z.addmm_(x, w.t()).diagonal().mul_(w[0, :2])
    return z + T.einsum("ij,kj->ik", x, w) + T.linalg.norm(x)


@program
def convolutions(x, w):
    y = F.conv2d(x.reshape(1, 1, 2, 3), w[:, :2].reshape(1, 1, 2, 2), padding=1)
    return F.max_pool2d(y, 2, 1) + F.avg_pool2d(y, 2, 1)


@program
def a_custom_function(x, w):
    a, b = Twice.apply(x * w)
    return a * b


@program
def a_custom_function_in_place(x, w):
    y = x * 1
    Adds.apply(y, w * w)
    return y * x


@program
def random_numbers(x, w):
    T.manual_seed(1)
    y = x * 1
    T.nn.init.normal_(T.empty(2))
    F.dropout(y, 0.5, True, inplace=True)
    y[0].bernoulli_(0.5)
    return y * w + T.rand(2, 3, dtype=x.dtype)


@program
def indices(x, w):
    y = x.clone()
    y[T.tensor([0, 1]), T.tensor([2, 0])] = w[0, :2]
    y.index_add_(0, T.tensor([1]), w[:1])
    y.masked_fill_(T.tensor([True, False, False]), 0.5)
    return y.gather(1, T.tensor([[0, 1], [2, 2]])) * x[x > -9].sum()


@program
def out_without_recording(x, w):
    made = T.empty(2, 3, dtype=x.dtype)
    with T.no_grad():
        T.mul(x, w, out=made)
        T.add(made, 1, out=made)
    return made * x


@program
def a_recurrent_layer(x, w):
    T.manual_seed(0)
    layer = nn.LSTM(3, 2, dtype=x.dtype)
    return layer(x * w)[0]


@program
def attends(x, w):
    return F.scaled_dot_product_attention(x[None], w[None], (x * w)[None])


@program
def complex_numbers(x, w):
    z = T.complex(x, w)
    z.real.mul_(w)
    return T.view_as_real(z * z.conj() + z).sum(-1) + z.abs()


def results(f):
    T.manual_seed(0)
    x = T.tensor([[0.3, -0.7, 1.2], [0.9, 0.4, -1.1]], dtype=T.float64, requires_grad=True)
    w = T.tensor([[0.5, 1.3, -0.2], [0.8, -0.6, 0.7]], dtype=T.float64, requires_grad=True)
    y = f(x, w)
    first = T.autograd.grad((y * y).sum(), (x, w), create_graph=True, materialize_grads=True)
    ends = [g for g in first if g.requires_grad]
    second = T.autograd.grad(sum((g * g).sum() for g in ends), (x, w), materialize_grads=True) if ends else ()
    return [y.detach(), *(g.detach() for g in first), *second]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_passing_on_changes_nothing(name, key):
    plain = results(PROGRAMS[name])
    with T.plugin.key(key):
        under = results(PROGRAMS[name])
    assert len(plain) == len(under)
    for a, b in zip(plain, under, strict=True):
        assert T.equal(a, b), (name, key, a, b)


@pytest.mark.parametrize("key", KEYS)
def test_both_keys_at_once_and_layers(key):
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.GroupNorm(2, 4), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(36, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 5),
    )  # fmt: skip
    images, classes = T.randn(4, 3, 6, 6), T.tensor([0, 1, 2, 3])

    def grads():
        model.zero_grad()
        F.cross_entropy(model(images), classes).backward()
        return [p.grad.clone() for p in model.parameters()]

    plain = grads()
    with T.plugin.key("below"), T.plugin.key(key):
        under = grads()
    assert all(T.equal(a, b) for a, b in zip(plain, under, strict=True))


@pytest.mark.parametrize("key", KEYS)
def test_refusals_stay(key):
    leaf = T.ones(3, requires_grad=True)
    with T.plugin.key(key):
        with pytest.raises(RuntimeError, match="leaf that requires grad"):
            leaf.mul_(2)
        with pytest.raises(RuntimeError, match="view of a leaf"):
            leaf[0].mul_(2)
        with pytest.raises(RuntimeError, match="out= cannot be differentiated"):
            T.mul(leaf, 2, out=T.empty(3))
        y = leaf * 1
        z = y * y
        before = y._version
        y.mul_(2)
        assert y._version == before + 1
        with pytest.raises(RuntimeError, match=r"changed in place.*by mul_ at .*keys_and_tape_test.py:\d+"):
            z.sum().backward()


def test_a_key_below_sees_the_kernels_not_the_composites():
    x = T.randn(2, 3, requires_grad=True)
    with T.plugin.key("below"):
        calls("layer_norm")
        F.layer_norm(x, (3,)).sum().backward()
        assert calls("layer_norm") == 0 and calls("sum") >= 1
        F.layer_norm(x.detach(), (3,))
        assert calls("layer_norm") == 1
    with T.plugin.key("above"):
        F.layer_norm(x, (3,)).sum().backward()
        assert calls("layer_norm") == 1


@pytest.mark.parametrize("key", KEYS)
def test_indexing_asks_the_keys_of_the_thread(key):
    x = T.arange(6.0).reshape(2, 3)
    with T.plugin.key(key):
        for op in ("as_strided", "slice", "select", "unsqueeze"):
            calls(op)
        y = x[1:, None, 0]
        assert y.tolist() == [[3.0]]
        assert [calls(op) for op in ("as_strided", "slice", "select", "unsqueeze")] == [0, 1, 1, 1]
        calls("fill_"), calls("copy_")
        x[0, 1:] = 7
        assert calls("as_strided") == 0 and calls("fill_") + calls("copy_") == 1
    assert x.tolist() == [[0, 7, 7], [3, 4, 5]]
    x[1:]
    assert calls("slice") == 1 and calls("slice") == 0


@pytest.mark.parametrize("key", KEYS)
def test_a_backward_runs_under_the_keys_of_its_caller(key):
    x = T.randn(3, 3, requires_grad=True)
    seen = []

    def train():
        with T.plugin.key(key):
            y = (x @ x).sigmoid().sum()
            calls("mm")
            y.backward()
            seen.append(calls("mm"))

    train()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen[0] == seen[1] >= 1
    (x @ x).sum().backward()
    assert calls("mm") == 0

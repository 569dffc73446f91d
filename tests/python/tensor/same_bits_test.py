"""tests/python/tensor/same_bits_test.py: results have the same bits on one, two and three threads, in the deterministic mode."""

import pytest

import adjoin


@pytest.fixture(autouse=True)
def deterministic():
    before = adjoin.get_num_threads()
    adjoin.use_deterministic_algorithms(True)
    yield
    adjoin.use_deterministic_algorithms(False)
    adjoin.set_num_threads(before)


def on_threads(f):
    found = []
    for n in (1, 2, 3):
        adjoin.set_num_threads(n)
        found.append([t.detach().numpy().tobytes() for t in f()])
    return found


def data(*shape):
    adjoin.manual_seed(5)
    return adjoin.randn(*shape)


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "mean of columns": lambda x: x.mean(1),
    "var": lambda x: x.var(),
    "norm": lambda x: x.norm(),
    "softmax": lambda x: adjoin.softmax(x, 1),
    "softmax, outer": lambda x: adjoin.softmax(x, 0),
    "layer_norm": lambda x: adjoin.nn.functional.layer_norm(x, x.shape[1:]),
    "cumsum": lambda x: x.cumsum(0),
    "half": lambda x: x.to(adjoin.bfloat16).sum().float(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(1500, 701), (3, 400_001), (300_001, 3)])
def test_reductions(name, shape):
    x = data(*shape)
    one, two, three = on_threads(lambda: [REDUCTIONS[name](x)])
    assert one == two == three


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("m, n, k", [(33, 77, 1000), (1, 900, 700), (700, 1, 900), (513, 640, 300), (64, 2000, 17)])
def test_products(dtype, m, n, k):
    a, b = data(m, k).to(getattr(adjoin, dtype)), data(k, n).to(getattr(adjoin, dtype))
    one, two, three = on_threads(lambda: [(a @ b).double(), (b.t().contiguous() @ a.t()).double()])
    assert one == two == three


def test_batched_products():
    a, b = data(7, 60, 50), data(7, 50, 90)
    one, two, three = on_threads(lambda: [a @ b])
    assert one == two == three


def network():
    nn = adjoin.nn
    adjoin.manual_seed(0)
    return nn.Sequential(
        *[nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GELU(), nn.Flatten(), nn.LayerNorm(512)],
        *[nn.Linear(512, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 10)],
    )


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_training(kind):
    def train():
        model = network()
        optimizer = getattr(adjoin.optim, kind)(model.parameters(), lr=0.01)
        x, y = data(40, 3, 16, 16), adjoin.arange(40) % 10
        for _ in range(5):
            optimizer.zero_grad()
            loss = adjoin.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return [loss, *model.parameters()]

    one, two, three = on_threads(train)
    assert one == two == three

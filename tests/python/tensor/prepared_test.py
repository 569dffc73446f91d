"""tests/python/tensor/prepared_test.py: packed weights are kept between calls, and never outlive what they were packed from."""

import gc
import copy
import ctypes
import os
import threading

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.nn import functional as F

LINEAR = lambda x, w: F.linear(x, w)  # noqa: E731
CONVOLVE = lambda x, w: F.conv2d(x, w, padding=1)  # noqa: E731
CASES = {
    "linear": (LINEAR, (40, 256), (192, 256), adjoin.float32),
    "mm": (lambda x, w: x @ w, (128, 256), (256, 192), adjoin.float32),
    "linear of halves": (LINEAR, (40, 256), (192, 256), adjoin.bfloat16),
    "convolution": (CONVOLVE, (2, 32, 9, 9), (64, 32, 3, 3), adjoin.float32),
    "convolution of halves": (CONVOLVE, (2, 32, 9, 9), (64, 32, 3, 3), adjoin.bfloat16),
}


@pytest.fixture(params=CASES, ids=lambda name: name.replace(" ", "-"))
def case(request):
    f, xs, ws, dtype = CASES[request.param]
    x, w = adjoin.randn(*xs).to(dtype), adjoin.randn(*ws).to(dtype)

    def run(weight=None):
        with adjoin.no_grad():
            return f(x, w if weight is None else weight)

    return run, w


def settle(run):
    """Calls until whatever is kept has been kept."""
    return [run() for _ in range(4)][-1]


def check(run, w):
    """What the weight gives now is what an untouched copy of it gives, however often it is asked for."""
    for _ in range(3):
        assert adjoin.equal(run(), run(w.clone()))


def integers(w):  # NumPy has no bfloat16
    return w.view(adjoin.int16) if w.dtype == adjoin.bfloat16 else w


def through_numpy(w):
    return integers(w).detach().numpy()


def through_address(w):
    ctypes.memset(w.data_ptr(), 0, w.numel() * w.element_size() // 2)


def through_storage(w):
    ctypes.memset(w.untyped_storage().data_ptr(), 0, w.numel() * w.element_size() // 2)


def by_thread(w):
    t = threading.Thread(target=lambda: w.mul_(3))
    t.start()
    t.join()


def by_failure(w):
    with pytest.raises(Exception):  # noqa: B017
        w.copy_(adjoin.zeros(3, 1, 7))
    w.sub_(1)


WRITES = {
    "mul_": lambda w: w.mul_(2),
    "setitem": lambda w: w.__setitem__(0, 3),
    "view": lambda w: w.view(-1)[5:77].zero_(),
    "transposed view": lambda w: w.transpose(0, 1)[1:2].fill_(2),
    "data": lambda w: w.data.mul_(2),
    "part of data": lambda w: w.data[1:3].add_(1),
    "set data": lambda w: setattr(w, "data", w * 2),
    "detach": lambda w: w.detach().mul_(2),
    "copy_": lambda w: w.copy_(adjoin.ones_like(w)),
    "out": lambda w: adjoin.mul(w, 2, out=w),
    "numpy": lambda w: through_numpy(w).fill(1),
    "dlpack": lambda w: np.from_dlpack(integers(w)).fill(1),
    "from dlpack": lambda w: adjoin.from_dlpack(w).mul_(2),
    "data_ptr": through_address,
    "storage": through_storage,
    "init": lambda w: adjoin.nn.init.normal_(w),
    "thread": by_thread,
    "failed copy": by_failure,
    "uniform_": lambda w: w.uniform_(),
    "masked": lambda w: w.masked_fill_(w > 0, 1),
    "index_put": lambda w: w.index_put_((adjoin.tensor([0, 1]),), adjoin.zeros((), dtype=w.dtype)),
}


@pytest.mark.parametrize("write", WRITES, ids=lambda name: name.replace(" ", "-"))
def test_every_write_is_seen(case, write):
    run, w = case
    before = settle(run)
    with adjoin.no_grad():
        WRITES[write](w)
    check(run, w)
    assert not adjoin.equal(run(), before)


def test_memory_that_was_lent_before_is_never_trusted(case):
    run, w = case
    lent, alias = through_numpy(w), w.data
    for k in range(4):
        settle(run)
        lent.fill(k)
        check(run, w)
        alias.add_(1)
        check(run, w)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("how", [{}, {"fused": True}, {"foreach": False}], ids=["default", "fused", "loop"])
def test_steps_of_optimizers_are_seen(optimizer, how):
    model = adjoin.nn.Sequential(
        adjoin.nn.Conv2d(16, 32, 3), adjoin.nn.ReLU(), adjoin.nn.Flatten(), adjoin.nn.Linear(32 * 36, 64)
    )
    other, x = copy.deepcopy(model), adjoin.randn(20, 16, 8, 8)
    step = getattr(adjoin.optim, optimizer)(model.parameters(), lr=0.1, **how)
    for _ in range(3):
        with adjoin.no_grad():
            for _ in range(3):
                model(x)
        step.zero_grad()
        model(x).square().mean().backward()
        step.step()
        other.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
        with adjoin.no_grad():
            for _ in range(3):
                assert adjoin.equal(model(x), copy.deepcopy(other)(x))


def test_loading_a_state_is_seen():
    model, x = adjoin.nn.Linear(256, 192), adjoin.randn(40, 256)
    with adjoin.no_grad():
        for _ in range(4):
            model(x)
        model.load_state_dict(adjoin.nn.Linear(256, 192).state_dict())
        for _ in range(3):
            assert adjoin.equal(model(x), F.linear(x, model.weight.clone(), model.bias))


def test_a_gradient_that_grows_is_seen():
    p, x = adjoin.nn.Parameter(adjoin.randn(192, 256)), adjoin.randn(40, 256)
    for _ in range(3):
        (p * p).sum().backward()
        with adjoin.no_grad():
            for _ in range(3):
                assert adjoin.equal(F.linear(x, p.grad), F.linear(x, p.grad.clone()))


def test_a_child_has_its_own_weights(case):
    run, w = case
    before = settle(run)
    child = os.fork()
    if child == 0:
        w.mul_(2)
        ok = adjoin.equal(run(), run(w.clone())) and not adjoin.equal(run(), before)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert adjoin.equal(run(), before)
    check(run, w)


def test_threads_may_use_one_weight(case):
    run, w = case
    wanted, wrong = run(w.clone()), []

    def use():
        for _ in range(20):
            if not adjoin.equal(run(), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64, adjoin.bfloat16, adjoin.float16], ids=str)
def test_packed_products_have_the_bits_of_others(dtype, threads):
    before = adjoin.get_num_threads()
    adjoin.set_num_threads(threads)
    try:
        for m, n, k in [
            (17, 64, 300),
            (40, 130, 784),
            (70, 1000, 257),
            (300, 200, 1030),
            (64, 513, 515),
            (600, 700, 64),
        ]:
            x, w, b = (adjoin.randn(*s).to(dtype) for s in ((m, k), (n, k), (n,)))
            turned = w.t().contiguous()
            for _ in range(4):
                assert adjoin.equal(F.linear(x, w, b), F.linear(x, w.clone(), b))
                assert adjoin.equal(F.linear(x, w), F.linear(x, w.clone()))
                assert adjoin.equal(x @ turned, x @ turned.clone())
                assert adjoin.equal(x @ w[: n // 2].t(), x @ w[: n // 2].clone().t())
    finally:
        adjoin.set_num_threads(before)


in_use = adjoin.memory.memory_allocated


def test_forms_go_with_their_tensor_and_on_request():
    gc.collect()  # what other tests left would go in between
    adjoin.memory.empty_cache()
    x, held = adjoin.randn(40, 1024), [adjoin.randn(1024, 1024)]
    run = lambda: F.linear(x, held[0])  # noqa: E731
    with adjoin.no_grad():
        run()
        before = in_use()
        settle(run)
        assert in_use() >= before + 4 * 1024 * 1024
        adjoin.memory.empty_cache()
        assert in_use() < before + 1024 * 1024
        settle(run)
        assert in_use() >= before + 4 * 1024 * 1024
        held[0].mul_(2)
        assert in_use() < before + 1024 * 1024
        settle(run)
    held.clear()
    assert in_use() < before


def test_training_keeps_no_forms():
    model, x = adjoin.nn.Linear(1024, 1024), adjoin.randn(40, 1024)
    step = adjoin.optim.SGD(model.parameters(), lr=0.1)
    used = []
    for _ in range(4):
        step.zero_grad()
        model(x).sum().backward()
        used.append(in_use())
        step.step()
    assert max(used) < used[0] + 2 * 1024 * 1024


def test_the_peak_of_each_step():
    model, x = adjoin.nn.Linear(64, 64), adjoin.randn(8, 64)
    peaks = []
    for size in (10, 40, 20):
        before = in_use()
        adjoin.memory.reset_peak_memory_stats()
        model(x).sum().backward()
        extra = adjoin.ones(size, 1 << 20)
        del extra
        peaks.append(adjoin.memory.max_memory_allocated() - before)
        assert adjoin.memory.memory_reserved() >= in_use()
    for size, peak in zip((10, 40, 20), peaks):
        assert size * 4 << 20 <= peak <= (size * 4 + 5) << 20


@pytest.mark.parametrize("n", [128, 200])
@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64, adjoin.bfloat16])
def test_a_square_weight_is_kept_both_ways(dtype, n):
    """linear takes it transposed, the product in linear's derivative as it is: what is packed for one serves the other wrongly."""
    w, x = adjoin.randn(n, n).to(dtype), adjoin.randn(150, n).to(dtype)
    ways = F.linear, adjoin.matmul
    wanted = [f(x, w.clone()) for f in ways]
    for k in (0, 0, 0, 1, 1, 1, 0, 1, 0, 1):
        assert ways[k](x, w).equal(wanted[k])


def test_gradients_of_a_square_layer_that_has_run_before():
    layer = nn.Linear(160, 160)
    first = nn.Linear(160, 160)
    x = adjoin.randn(100, 160)

    def grads():
        first.zero_grad()
        layer(first(x)).square().sum().backward()
        return [p.grad.clone() for p in first.parameters()]

    once = grads()
    for _ in range(4):
        layer(first(x))
        assert all(a.equal(b) for a, b in zip(once, grads(), strict=True))

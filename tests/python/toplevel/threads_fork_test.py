"""tests/python/toplevel/threads_fork_test.py: threads that train at once, forks after use, memory that stays, Ctrl-C."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import adjoin
import pytest
from adjoin import nn


def network(seed):
    adjoin.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def batch(seed):
    adjoin.manual_seed(1000 + seed)
    return adjoin.randn(64, 32), adjoin.randint(0, 10, (64,))


def train(net, x, y, steps=50):
    optimizer = adjoin.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def in_threads(functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(f) for f in functions]]


def script(code, timeout=300, **kwargs):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout, **kwargs)


def in_use():
    return adjoin._C.memory_stats("cpu")["in_use"]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_two_threads_train_as_if_alone():
    alone = [train(network(i), *batch(i)) for i in range(2)]
    jobs = [(network(i), *batch(i)) for i in range(2)]
    together = in_threads([lambda job=job: train(*job) for job in jobs])
    assert together == alone
    assert alone[0][-1] < alone[0][0]


def test_many_threads_over_large_tensors():
    def work(k):
        x = adjoin.full((300_000,), float(k))
        total = 0.0
        for _ in range(20):
            total = (x * 2 + 1).sum().item()
        return total

    assert in_threads([lambda k=k: work(k) for k in range(6)]) == [300_000 * (2 * k + 1.0) for k in range(6)]


def test_backward_into_shared_parameters():
    weight = adjoin.ones(1000, requires_grad=True)

    def work():
        for _ in range(200):
            (weight * 2).sum().backward()

    in_threads([work] * 4)
    assert (weight.grad == 1600).all().item()


def test_grad_mode_belongs_to_the_thread():
    inside, after = threading.Event(), threading.Event()

    def off():
        with adjoin.no_grad():
            inside.set()
            after.wait(10)
            return adjoin.is_grad_enabled()

    def on():
        inside.wait(10)
        enabled = adjoin.is_grad_enabled()
        after.set()
        return enabled

    assert in_threads([off, on]) == [False, True]


def child_trains(connection, seed):
    with connection:
        connection.send(train(network(seed), *batch(seed)))


def from_child(seed):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=child_trains, args=(there, seed))
    process.start()
    there.close()
    try:
        assert here.poll(60), "the child hangs"
        return here.recv()
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()


def test_fork_after_use():
    expected = train(network(3), *batch(3))
    big = adjoin.ones(1_000_000)
    assert (big + big).sum().item() == 2_000_000  # the pool's workers exist now
    assert from_child(3) == expected
    assert train(network(3), *batch(3)) == expected
    assert big.sum().item() == 1_000_000


def test_fork_while_another_thread_trains():
    expected = train(network(4), *batch(4))
    stop = threading.Event()

    def busy():
        net, (x, y) = network(5), batch(5)
        while not stop.is_set():
            train(net, x, y, steps=1)

    net, data = network(4), batch(4)  # before the other thread draws from the same generator
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            here, there = context.Pipe()
            process = context.Process(target=lambda out=there: out.send(train(net, *data)))
            process.start()
            assert here.poll(60), "the child hangs"
            assert here.recv() == expected
            process.join(10)
            assert process.exitcode == 0
    finally:
        stop.set()
        thread.join()


def test_a_child_of_a_child():
    code = """
        import os, adjoin
        x = adjoin.ones(500_000)
        total = (x * 2).sum().item()
        for depth in range(3):
            pid = os.fork()
            if pid:
                _, status = os.waitpid(pid, 0)
                os._exit(os.waitstatus_to_exitcode(status))
            assert (x * 2).sum().item() == total
            y = adjoin.randn(1000, requires_grad=True)
            (y * y).sum().backward()
        os._exit(7)
    """
    result = script(code)
    assert result.returncode == 7, result.stderr


def test_memory_is_constant_over_a_thousand_steps():
    net, (x, y) = network(0), batch(0)
    train(net, x, y, steps=100)
    gc.collect()
    used, held = in_use(), resident()
    train(net, x, y, steps=1000)
    gc.collect()
    assert in_use() == used
    assert resident() - held < 4 << 20


def test_memory_is_constant_when_threads_come_and_go():
    def once():
        in_threads([lambda: train(network(1), *batch(1), steps=3)] * 2)

    for _ in range(10):
        once()
    gc.collect()
    used, held = in_use(), resident()
    for _ in range(50):
        once()
    gc.collect()
    assert in_use() - used < 64 << 10
    assert resident() - held < 8 << 20


def test_errors_leak_nothing():
    a, b = adjoin.ones(3, 500, requires_grad=True), adjoin.ones(4, 500)

    def wrong():
        for _ in range(200):
            with pytest.raises(RuntimeError):
                adjoin.matmul(a * 2, b)
            with pytest.raises(RuntimeError):
                (a * 2).backward()

    wrong()
    gc.collect()
    used = in_use()
    wrong()
    gc.collect()
    assert in_use() == used


def test_large_memory_comes_back_warm():
    import resource

    x = adjoin.ones(10_000_000)
    for _ in range(3):
        y = x + 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        y = x + 1  # noqa: F841
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 500


def test_out_of_memory_is_an_exception_that_names_owners():
    kept = [adjoin.zeros(2_000_000) for _ in range(3)]
    with pytest.raises(adjoin.OutOfMemoryError, match=r"out of memory: asked for .*in use .*limit "):
        adjoin.empty(1 << 46)
    assert kept[0].sum().item() == 0


INTERRUPT = """
    import os, signal, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
    import adjoin
    {prepare}
    def op():
        {op}
    op()
    start = time.perf_counter(); op(); whole = time.perf_counter() - start
    threading.Timer(whole / 5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    try:
        op()
    except KeyboardInterrupt:
        print("interrupted", (time.perf_counter() - start) / whole, whole)
    else:
        print("finished")
    assert (adjoin.ones(200_000) * 2).sum().item() == 400_000
    y = adjoin.ones(100, requires_grad=True)
    (y * y).sum().backward()
    assert (y.grad == 2).all().item()
    print("usable")
"""


@pytest.mark.parametrize(
    "prepare, op",
    [
        ("x = adjoin.rand(40_000_000)", "adjoin.tan(adjoin.exp(x))"),
        (
            "x = adjoin.randn(32, 64, 112, 112); w = adjoin.randn(64, 64, 3, 3)",
            "adjoin.nn.functional.conv2d(x, w, padding=1)",
        ),
    ],
    ids=["pointwise", "conv2d"],
)
def test_ctrl_c_in_a_long_op(prepare, op):
    result = script(INTERRUPT.format(prepare=prepare, op=op))
    assert result.returncode == 0, result.stderr
    words = result.stdout.split()
    assert words[0] == "interrupted" and words[-1] == "usable", result.stdout
    fraction, whole = float(words[1]), float(words[2])
    if whole > 0.5:
        assert fraction < 0.9, "the op ran to its end before the interrupt was seen"


def test_ctrl_c_before_the_first_question_is_not_lost():
    code = """
        import ctypes, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import adjoin
        interrupt = ctypes.PyDLL(None).PyErr_SetInterrupt  # no Python code runs until the core asks
        interrupt.argtypes, interrupt.restype = [ctypes.py_object], None
        x = adjoin.ones(3, requires_grad=True)
        y = x
        for _ in range(400):
            y = y * 1.0
        y.register_hook(interrupt)
        try:
            y.sum().backward()
            print("lost")
        except KeyboardInterrupt:
            print("interrupted")
        print(x.grad is None)
    """
    result = script(code)
    assert result.stdout.split() == ["interrupted", "True"], result.stdout + result.stderr


def test_ctrl_c_in_backward():
    code = """
        import os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import adjoin
        x = adjoin.randn(256, 256, requires_grad=True)
        y = x
        for _ in range(500):
            y = adjoin.tanh(y @ x * 0.05)
        loss = y.sum()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                loss.backward(retain_graph=True)
        except KeyboardInterrupt:
            print("interrupted")
        x.grad = None
        (x * 2).sum().backward()
        assert (x.grad == 2).all().item()
        print("usable")
    """
    result = script(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["interrupted", "usable"]


CHAIN = """
    import threading
    import adjoin
    x = adjoin.ones(1, requires_grad=True)
    y = x
    for i in range(1_000_000):
        y = {step}
    {backward}
    chain = [y]
    del y
    threading.stack_size(65536)
    thread = threading.Thread(target=chain.clear)
    thread.start()
    thread.join()
    print(adjoin._C.memory_stats("cpu")["in_use"])
"""


@pytest.mark.parametrize("step", ["y + 1", "y * x", "y.view(1) * 1.0"])
@pytest.mark.parametrize(
    "backward",
    ["", "y.sum().backward()", "y.sum().backward(retain_graph=True)"],
    ids=["unused", "backward", "retained"],
)
def test_a_chain_of_a_million_ops_is_freed_in_a_small_stack(step, backward):
    result = script(CHAIN.format(step=step, backward=backward))
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    assert int(result.stdout) < 4 << 20, "the chain was not freed"

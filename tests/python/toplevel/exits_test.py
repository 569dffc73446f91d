"""tests/python/toplevel/exits_test.py: a program ends clean whatever its threads are doing.

ADJOIN_EXITS=50 runs every way so often; a chance in ten does not show in the few of an ordinary run.
"""

import os
import subprocess
import sys
import textwrap

import pytest

TIMES = int(os.environ.get("ADJOIN_EXITS", "2"))

BEGIN = """
import sys, threading, time
import adjoin as T
from adjoin import nn
F = nn.functional
when = float(sys.argv[1])

def forever(f, threads=3):
    def run():
        while True:
            f()
    for _ in range(threads):
        threading.Thread(target=run, daemon=True).start()
    time.sleep(when)
"""

WAYS = {
    "forward": """
        x = T.randn(200, 200)
        forever(lambda: (x @ x).sum().item())
    """,
    "large ops": """
        x = T.randn(1500, 1500)
        forever(lambda: F.softmax(x @ x, 1).sort(1))
    """,
    "small ops": """
        x = T.randn(8)
        forever(lambda: (x + 1) * x)
    """,
    "backward": """
        net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        x = T.randn(32, 64)
        forever(lambda: net(x).sum().backward())
    """,
    "backward with hooks": """
        net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        x = T.randn(32, 64)
        def step():
            y = net(x)
            y.register_hook(lambda g: g * 1)
            handles = [p.register_hook(lambda g: g + 0) for p in net.parameters()]
            y.sum().backward()
            for h in handles:
                h.remove()
        forever(step)
    """,
    "a python backward that never ends": """
        class Slow(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, g):
                while True:
                    [i for i in range(1000)]
        forever(lambda: Slow.apply(T.ones(3, requires_grad=True)).sum().backward())
    """,
    "hooks on saved tensors": """
        from adjoin.utils.checkpoint import checkpoint
        layer, x = nn.Linear(16, 16), T.randn(4, 16, requires_grad=True)
        forever(lambda: checkpoint(layer, x, use_reentrant=False).sum().backward())
    """,
    "ends of objects": """
        class Ends:
            def __del__(self):
                for i in range(100):
                    T.ones(2) + i
        def step():
            x = T.ones(3, requires_grad=True)
            ends = Ends()
            y = x * 2
            y.register_hook(lambda g, ends=ends: None)
            y.note = ends
            del ends
            y.sum().backward()
        forever(step)
    """,
    "errors": """
        def step():
            try:
                y = T.ones(2, requires_grad=True) * 1
                y.register_hook(lambda g: 1 / 0)
                y.sum().backward()
            except ZeroDivisionError:
                pass
            try:
                T.ones(2) + T.ones(3)
            except RuntimeError:
                pass
        forever(step)
    """,
    "overrides": """
        class Mine(T.Tensor):
            @classmethod
            def __torch_function__(cls, f, types, args=(), kwargs=None):
                return super().__torch_function__(f, types, args, kwargs or {})
        x = T.ones(4).as_subclass(Mine)
        forever(lambda: (x + 1).sum())
    """,
    "files": """
        import io
        x = {str(i): T.randn(100) for i in range(50)}
        def step():
            b = io.BytesIO()
            T.save(x, b)
            b.seek(0)
            T.load(b)
        forever(step)
    """,
    "a loader with workers": """
        data = T.utils.data.TensorDataset(T.arange(4000).float())
        loader = T.utils.data.DataLoader(data, batch_size=2, num_workers=2)
        batches = iter(loader)
        next(batches)
        def step():
            for _ in loader:
                pass
        if when > 0.1:
            forever(step, 1)
    """,
    "a loader left in the middle": """
        data = T.utils.data.TensorDataset(T.arange(400).float())
        loader = T.utils.data.DataLoader(data, batch_size=2, num_workers=2, persistent_workers=True, pin_memory=False)
        batches = iter(loader)
        next(batches)
        time.sleep(when)
    """,
    "pools": """
        from concurrent.futures import ThreadPoolExecutor
        from multiprocessing.pool import ThreadPool
        x = T.randn(100, 100, requires_grad=True)
        work = lambda i: (x @ x).sum().backward()
        pool = ThreadPool(2)
        result = pool.map_async(work, range(100000))
        executor = ThreadPoolExecutor(2)
        jobs = [executor.submit(work, i) for i in range(30)]
        time.sleep(when)
    """,
    "training": """
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
        step_of = T.optim.Adam(net.parameters())
        x, t = T.randn(8, 1, 8, 8), T.randint(0, 3, (8,))
        def step():
            step_of.zero_grad()
            F.cross_entropy(net(x), t).backward()
            step_of.step()
        forever(step, 1)
    """,
    "ops of users": """
        from adjoin.library import custom_op
        @custom_op("exits::op", mutates_args=())
        def op(x: T.Tensor) -> T.Tensor:
            return x * sum(range(100))
        forever(lambda: op(T.ones(3)))
    """,
}

TELL = {"a loader with workers"}  # multiprocessing ends the workers of a thread that goes on, and both say so
ENDS = ["", "sys.exit(0)", "raise SystemExit", "import atexit; atexit.register(lambda: (T.ones(3) * 2).sum().item())"]


@pytest.mark.parametrize("way", WAYS)
def test_ends_clean(way, tmp_path):
    script = tmp_path / "ends.py"
    for i in range(TIMES):
        script.write_text(BEGIN + textwrap.dedent(WAYS[way]) + "\n" + ENDS[i % len(ENDS)] + "\n")
        when = 0.02 + 0.031 * (i % 7)
        done = subprocess.run([sys.executable, str(script), str(when)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "Fatal" not in done.stderr, (i, done.returncode, done.stderr)
        if way not in TELL:
            assert "Traceback" not in done.stderr, done.stderr

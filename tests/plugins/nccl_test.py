"""tests/plugins/nccl_test.py: collectives of tensors on GPUs by the plugins nccl and rccl, over a library and a card of paper
(paper_card/nccl.cpp): each kind, works at once, faults, libraries that are older or missing."""

import shutil
import subprocess
import time

import pytest
from paper import PLUGINDIR, either, surroundings

from abi_tools import clean_environment

needs_engine = pytest.mark.skipif(
    not (PLUGINDIR / "libaj_nccl.so").exists(), reason="NOT TESTED: the plugin nccl is not built"
)
pytestmark = needs_engine

BEGINNING = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("cpu:shm,{name}:{engine}" if {named} else None)
rank, n = dist.get_rank(), dist.get_world_size()
at = torch.device("{name}", 0)
def told(f):
    try:
        f()
    except Exception as e:
        return f"{{type(e).__name__}}: {{e}}"
"""


@pytest.fixture
def launch(card, tmp_path):
    def run(name, n, program, faults="", named=True, library=True, timeout=90, **extra):
        file = tmp_path / "program.py"
        file.write_text(BEGINNING.format(name=name, engine="nccl" if name == "cuda" else "rccl", named=named) + program)
        places = (
            {"ADJOIN_NCCL": card, "ADJOIN_RCCL": card} if library else {"ADJOIN_NCCL": "/none", "ADJOIN_RCCL": "/none"}
        )
        env = clean_environment(
            **surroundings(name, card), **places, ADJOIN_PAPER_NCCL=faults, TMPDIR=str(tmp_path), **extra
        )
        first = time.monotonic()
        got = subprocess.run(
            [shutil.which("adjoin"), "launch", "--nproc-per-node", str(n), file],
            env=env, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        got.seconds = time.monotonic() - first
        return got

    return run


@either
@pytest.mark.parametrize("n", [1, 3])
def test_every_kind(launch, name, n, tmp_path):
    program = """
def on(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype).to(at)
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
    x = on([rank + 1, 2, 3], dtype)
    dist.all_reduce(x)
    assert x.tolist() == [sum(range(1, n + 1)), 2 * n, 3 * n] and x.device == at, (dtype, x)
for op, want in ((dist.ReduceOp.MAX, n), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, [1, 1, 2, 6][n]), (dist.ReduceOp.AVG, (n + 1) / 2)):
    x = on([rank + 1.0])
    dist.all_reduce(x, op)
    assert x.item() == want, (op, x)
x = on([rank + 1.0], torch.bfloat16)
dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
assert x.item() == sum(range(1, n + 1)) / 2
x = on([[rank, 1], [2, 3]]).t()  # strided
dist.all_reduce(x)
assert x.tolist() == [[sum(range(n)), 2 * n], [n, 3 * n]]
x = on([rank] * 3, torch.bool)
dist.broadcast(x, n - 1)
assert x.tolist() == [n > 1] * 3
x = on([rank + 1])
dist.reduce(x, 0)
assert rank or x.item() == sum(range(1, n + 1))
parts = [on([0, 0]) for _ in range(n)]
dist.all_gather(parts, on([rank, 7]))
assert [p.tolist() for p in parts] == [[r, 7] for r in range(n)]
parts = [on([0.0] * (r + 1)) for r in range(n)]
dist.all_gather(parts, on([float(rank)] * (rank + 1)))
assert [p.tolist() for p in parts] == [[r] * (r + 1) for r in range(n)]
one = on([0.0, 0.0])
dist.reduce_scatter_tensor(one, on([float(i) for i in range(2 * n)]))
assert one.tolist() == [2.0 * rank * n, (2.0 * rank + 1) * n]
parts = [on([0]) for _ in range(n)] if rank == 0 else None
dist.gather(on([rank]), parts)
assert rank or [p.item() for p in parts] == list(range(n))
one = on([0])
dist.scatter(one, [on([r * r]) for r in range(n)] if rank == 0 else None)
assert one.item() == rank * rank
out = on([0] * n)
dist.all_to_all_single(out, on([10 * rank + r for r in range(n)]))
assert out.tolist() == [10 * r + rank for r in range(n)]
outs = [on([0] * (rank + 1)) for _ in range(n)]
dist.all_to_all(outs, [on([rank] * (r + 1)) for r in range(n)])
assert [o.tolist() for o in outs] == [[r] * (rank + 1) for r in range(n)]
if n > 1:
    x = on([float(rank)])
    dist.send(x, (rank + 1) % n) if rank == 0 else dist.recv(x, rank - 1)
    assert x.item() == 0 if rank == 1 else True
    if rank == 1 and n > 2: dist.send(x, 2)
# works at once, in two groups, beside one of the processor; what is queued later sees the result
other = dist.new_group(list(range(n)))
x, y, z = on([1.0] * 5), on([2.0] * 5), torch.ones(2)
works = [dist.all_reduce(x, async_op=True), dist.all_reduce(y, group=other, async_op=True), dist.all_reduce(z, async_op=True)]
for w in works: w.wait()
assert (x + y).tolist() == [3.0 * n] * 5 and z.tolist() == [n, n]
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).to(at))
net(on([[rank + 1.0, 1.0]])).sum().backward()
assert net.module.weight.grad.tolist() == [[(n + 1) / 2, 1.0]]
dist.barrier()
dist.destroy_process_group()
print("ok", rank)
"""
    got = launch(name, n, program)
    assert got.returncode == 0, got.stderr
    assert sorted(got.stdout.splitlines()) == [f"ok {r}" for r in range(n)]
    assert not list(tmp_path.glob("paper-nccl-*"))


@either
def test_faults(launch, name):
    """An error that comes late, and a collective that does not end: every process hears of it, with the line."""
    program = """
def train():
    for i in range(4):
        x = torch.ones(3).to(at)
        dist.all_reduce(x)
said = told(train)
assert said.startswith("DistBackendError: "), said
print(rank, "remote process exited" in said, "all_reduce #3" in said, "program.py" in said)
os._exit(0)
"""
    got = launch(name, 2, program, faults="0:error=3")
    assert "0 True True True" in got.stdout, got.stdout + got.stderr
    assert "1 " in got.stdout, got.stdout + got.stderr
    program = """
import datetime
def train():
    for i in range(4):
        work = dist.all_reduce(torch.ones(3).to(at), async_op=True)
        work.wait(datetime.timedelta(seconds=2))
said = told(train)
first = time.monotonic()
print(rank, "#2" in said, "rank 0" in said and "rank 1" in said, "program.py" in said)
os._exit(0)
"""
    got = launch(name, 2, program, faults="1:hang=2")
    assert sorted(got.stdout.splitlines()) == ["0 True True True", "1 True True True"], got.stdout + got.stderr
    assert got.seconds < 30


@either
def test_a_process_that_is_killed(launch, name):
    program = """
import signal
dist.all_reduce(torch.ones(3).to(at))
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
first = time.monotonic()
said = told(lambda: dist.all_reduce(torch.ones(3).to(at)))
print("rank 1" in said and "signal 9" in said, time.monotonic() - first < 20, flush=True)
os._exit(0)
"""
    got = launch(name, 2, program)
    assert "True True" in got.stdout, got.stdout + got.stderr


@either
def test_older_libraries_and_none(launch, name):
    program = """
def on(values): return torch.tensor(values).to(at)
x = on([1.0])
dist.all_reduce(x)
assert x.item() == n
print(rank, told(lambda: dist.all_reduce(on([1.0]), dist.ReduceOp.AVG)))
"""
    got = launch(name, 2, program, faults="version=2804")
    assert "does not compute it in float32" in got.stdout, got.stdout + got.stderr
    # nobody has asked for the library: tensors go through the processor's memory
    program = "x = torch.ones(3).to(at)\ndist.all_reduce(x)\nprint(x.tolist(), dist.is_nccl_available())\n"
    got = launch(name, 2, program, named=False, library=False)
    assert got.stdout.splitlines() == ["[2.0, 2.0, 2.0] False"] * 2, got.stdout + got.stderr
    program = "print(told(lambda: dist.all_reduce(torch.ones(3).to(at))))\n"
    got = launch(name, 2, program, library=False)
    assert got.stdout.count("the library is not found") == 2 and "or name an engine for the cpu" in got.stdout, (
        got.stdout + got.stderr
    )

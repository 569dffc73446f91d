"""tests/python/distributed/lost_test.py: a rank that is killed, frozen, raises or does something else: the others say so, in time."""

import re
import subprocess
import sys
import textwrap

import pytest

from slowness import FULL, patience

PROLOGUE = """
import os, signal, sys, time
import torch, torch.distributed as dist
dist.init_process_group()
rank, n = dist.get_rank(), dist.get_world_size()
x = torch.ones(4)

def all_here(place):  # nobody is in a collective any more: who is slow would hear of what comes next in that
    open(f"{__file__}.{place}.{rank}", "w").close()
    while not all(os.path.exists(f"{__file__}.{place}.{r}") for r in range(n)):
        time.sleep(0.005)

for step in range(3):
    dist.all_reduce(x)
all_here("begin")

def survive(f):
    began = time.monotonic()
    try:
        f()
    except dist.DistBackendError as error:
        print(f"{rank} {time.monotonic() - began:.2f} {error}", flush=True)
        # Whoever wants to go on cannot: each later collective says the same at once.
        began = time.monotonic()
        try:
            dist.barrier()
        except dist.DistBackendError:
            assert time.monotonic() - began < 0.5
            os._exit(7)
    os._exit(3)
"""


def survivors(launch, n, body, most, **more):
    got = launch(n, PROLOGUE + textwrap.dedent(body), **more)
    told = dict(re.match(r"(\d+) (.*)", line).groups() for line in got.lines())
    for said in told.values():
        assert float(said.split()[0]) < most * patience(), said
    return got, told


def test_a_killed_rank(launch):
    body = """
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    survive(lambda: dist.all_reduce(x))
    """
    got, told = survivors(launch, 3, body, 1)
    assert sorted(told) == ["0", "2"]
    for rank, said in told.items():
        assert re.search(r"rank 1 \(host .*, pid \d+\) was killed by signal 9 \(SIGKILL\)", said), said
        # Who comes late finds the other gone before it starts.
        assert re.search(
            rf"rank {rank} was (in all_reduce #4 sum float32\[4\]|about to start all_reduce) at .*program.py:", said
        ), said
    assert got.code == 128 + 9 and re.search(r"first cause: rank 1 \(pid \d+\) was killed by signal 9", got.err)
    assert "rank 0" in got.err and "exit code 7" in got.err


def test_who_is_slow_to_speak_is_not_ended_before(launch):
    """The launcher waits for those that are left as long as the server does for one that is silent, and no longer than they need."""
    body = """
    if rank == 1:
        os._exit(9)
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:
        time.sleep(3)
        print("after a while:", error, flush=True)
    os._exit(7)
    """
    got = launch(2, PROLOGUE + textwrap.dedent(body), ADJOIN_SILENCE_SECONDS="100")
    heard = r"after a while: rank 1 \(host .*\) (ended with exit code 9|has ended without a word)"
    assert re.search(heard, got.out), got.out + got.err
    assert re.search(r"rank 0 \(pid \d+\) ended with exit code 7 after", got.err) and got.seconds < 60, got.err


def test_a_killed_rank_without_a_launcher_is_named_too(launch):
    body = """
    dist.destroy_process_group()
    control = os.environ.pop("ADJOIN_CONTROL")
    port = int(control.split(":")[1]) + 1 + rank * 0
    dist.init_process_group(init_method="file://" + sys.argv[1], rank=rank, world_size=n)
    dist.barrier()
    all_here("again")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    survive(lambda: dist.all_reduce(x))
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        _, told = survivors(launch, 2, body, 1.5, arguments=[folder + "/meet"])
    assert re.search(r"rank 1 .* has ended without a word", told["0"])


def test_an_exception(launch):
    body = """
    if rank == 0:
        time.sleep(0.2)
        raise ValueError("no such batch")
    survive(lambda: dist.broadcast(x, 0))
    """
    got, told = survivors(launch, 2, body, 0.8)
    assert "raised ValueError: no such batch at " in told["1"] and re.search(r"program.py:\d+", told["1"])
    assert "rank 0 (host" in told["1"] and "broadcast #4 float32[4] root 0 at " in told["1"]
    assert got.code == 1 and re.search(
        "first cause: rank 0 .*exit code 1\n    its last line: ValueError: no such batch", got.err
    )


@pytest.mark.skipif(not FULL, reason="no_hang_test.py has one that is frozen in a step: with --full")
def test_a_frozen_rank(launch):
    body = """
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    survive(lambda: dist.all_reduce(x))
    """
    _, told = survivors(launch, 2, body, 4, ADJOIN_SILENCE_SECONDS="2")
    assert re.search(r"rank 1 .* has not answered for [2-9] s", told["0"])


def test_what_both_survive(launch, tmp_path):
    """Different collectives, one that does not come, an interrupt: each in a world of its own."""
    body = """
    wrongs = {
        "size": lambda: dist.all_reduce(torch.ones(4 + rank)),
        "dtype": lambda: dist.all_reduce(torch.ones(4, dtype=torch.float32 if rank else torch.int32)),
        "op": lambda: dist.all_reduce(x, [dist.ReduceOp.SUM, dist.ReduceOp.MAX][rank]),
        "kind": lambda: dist.all_reduce(x) if rank else dist.broadcast(x, 0),
        "root": lambda: dist.broadcast(x, rank),
        "nothing": lambda: dist.all_reduce(torch.ones(4 * rank)),
        "pair": lambda: dist.send(x, 1) if rank == 0 else dist.recv(torch.empty(5), 0),
        # the root of a small broadcast has gone on when the others find out
        "before": lambda: (dist.broadcast(x, 0) if rank == 0 else dist.all_reduce(x), dist.barrier()),
    }
    def alone(name, call):  # of rank 0; the other one does nothing until then
        if rank == 0:
            try:
                call()
            finally:
                open(sys.argv[1] + name, "w").close()
        while not os.path.exists(sys.argv[1] + name):
            time.sleep(0.01)
    def mine(*_):
        raise TimeoutError("mine")
    def interrupted():
        signal.signal(signal.SIGALRM, mine)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        dist.all_reduce(x)
    wrongs["never"] = lambda: alone("never", lambda: dist.monitored_barrier(timeout=0.5))
    wrongs["interrupt"] = lambda: alone("interrupt", interrupted)
    for name, wrong in wrongs.items():
        began = time.monotonic()
        try:
            wrong()
        except (dist.DistBackendError, TimeoutError) as error:
            print(name, rank, time.monotonic() - began, " ".join(str(error).split()), flush=True)
        dist.destroy_process_group()
        dist.init_process_group()
        for step in range(3):
            dist.all_reduce(x)
    """
    got = launch(2, PROLOGUE + textwrap.dedent(body), arguments=[str(tmp_path / "done-")])
    assert got.code == 0, got.err
    for kind, words in {
        "size": "all_reduce #4 sum float32[4] at .* meets all_reduce #4 sum float32[5] at|"
        "all_reduce #4 sum float32[5] at .* meets all_reduce #4 sum float32[4] at",
        "op": "all_reduce #4 (sum|max) float32[4] at .* meets all_reduce #4 (sum|max) float32[4] at",
        "kind": "broadcast #4 float32[4] root 0 at .* meets all_reduce #4|all_reduce #4 .* meets broadcast #4 float32[4] root 0",
        "dtype": "int32",
        "root": "broadcast #4 float32[4] root [01] at .* meets broadcast #4 float32[4] root [01] at",
        "nothing": "float32[0] at .* meets .*float32[4] at|float32[4] at .* meets .*float32[0] at",
        "before": "broadcast #4 float32[4] root 0 at .* meets all_reduce #4|all_reduce #4 .* meets broadcast #4 float32[4] root 0",
        "pair": "to rank 1 at .* meets .*from rank 0|from rank 0 at .* meets .*to rank 1",
    }.items():
        told = {line.split()[1]: line.split(None, 3)[2:] for line in got.lines() if line.startswith(kind + " ")}
        assert sorted(told) == ["0", "1"], (kind, got.out)
        for took, said in told.values():
            assert float(took) < 1.2 * patience(), (kind, took)
            assert re.search(re.sub(r"\[(\d)\]", r"\[\1\]", words), said) and "program.py:" in said, (kind, said)
            assert "(rank 0)" in said or "rank 0 (host" in said
    never, interrupt = ([li.split(None, 3) for li in got.lines() if li.startswith(k)] for k in ("never", "interrupt"))
    assert [li[1] for li in never] == ["0"] and float(never[0][2]) < 1 * patience(), got.out
    assert "nothing came within 0.5 s; the others: rank 1" in never[0][3] and "all_reduce #3" in never[0][3]
    assert [li[1] for li in interrupt] == ["0"] and float(interrupt[0][2]) < 1 * patience(), got.out
    assert interrupt[0][3] == "mine"


def test_a_rank_that_ends_early(launch):
    body = """
    if rank == 1:
        dist.all_reduce(x)  # three batches and one
        all_here("fourth")
        sys.exit(0)
    dist.all_reduce(x)
    all_here("fourth")
    survive(lambda: dist.all_reduce(x))
    """
    _, told = survivors(launch, 2, body, 1.5)
    assert "rank 1 has ended its part" in told["0"] and "all_reduce #5" in told["0"]


CHILDREN = """
import multiprocessing, sys, time
import adjoin, adjoin.distributed as dist

def work(rank, path, said):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    if rank == 1:
        raise ValueError("mine alone")
    try:
        dist.all_reduce(adjoin.ones(1))
    except dist.DistBackendError as error:
        said.put(str(error))

def ends_first(rank, path, said):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    if rank == 1:  # the store is rank 0's, whose part is done
        time.sleep(0.3)
        said.put(str(dist._get_default_store().add("x", 1)))

if __name__ == "__main__":
    start = multiprocessing.get_context("fork")
    for f in (work, ends_first):
        said = start.Queue()
        both = [start.Process(target=f, args=(rank, sys.argv[1] + f.__name__, said)) for rank in range(2)]
        for p in both:
            p.start()
        print(said.get(timeout=60), flush=True)
        for p in both:
            p.join()
"""


def test_processes_of_multiprocessing_end_as_others_do(tmp_path):
    (tmp_path / "program.py").write_text(CHILDREN)
    got = subprocess.run([sys.executable, tmp_path / "program.py", f"{tmp_path}/"], capture_output=True, text=True, timeout=120)  # fmt: skip
    first, second = got.stdout.splitlines()
    assert "rank 1 (host" in first and "raised ValueError: mine alone at" in first and second == "1", got.stderr
    assert "atexit" not in got.stderr

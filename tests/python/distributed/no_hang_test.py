"""tests/python/distributed/no_hang_test.py: faults at each collective of a training step, by the engine `faulty`: every survivor says
so in time, with rank, host, cause and line, and nothing is left behind."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import adjoin

from slowness import FULL, patience, slower

LAST = 6  # collectives of the program below, from the first step on

if "faulty" not in adjoin.plugin.available():
    pytest.skip("NOT TESTED: the plugin faulty was not built", allow_module_level=True)

# Three steps of a module with a buffer, two buckets and a part that only rank 0 uses.
PROGRAM = """
import datetime, os, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last, self.some = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1), nn.Linear(8, 1)
    def forward(self, x, rank):
        x = self.norm(self.first(x))
        return self.last(x) + (self.some(x) if rank == 0 else 0)

def train(steps=3):
    net = DDP(Net(), bucket_cap_mb=1e-4, find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(4, 8) * torch.arange(4.0)[:, None], dist.get_rank()).sum().backward()
        optimizer.step()

def tried(faults, timeout, steps=3):
    os.environ["ADJOIN_FAULTY"] = faults
    dist.init_process_group("faulty", timeout=datetime.timedelta(seconds=timeout))
    began = time.time()
    try:
        train(steps)
        said = "nothing"
    except dist.DistBackendError as error:
        said = " ".join(str(error).split())
    return dist.get_rank(), time.time() - began, said
"""


ENGINES = ("gloo", "shm", "mpi")
if not FULL:  # one of them, by the seed
    ENGINES = random.Random(os.environ.get("ADJOIN_TEST_SEED", "0")).sample(ENGINES, 1)


def engine(of):
    return of if of in adjoin.plugin.available() else "shm"


def skip_without(of):
    if of == "mpi" and (of not in adjoin.plugin.available() or not shutil.which("mpirun")):
        pytest.skip("NOT TESTED: the plugin mpi was not built, or there is no mpirun (openmpi-bin)")


@pytest.mark.parametrize("of", ENGINES)
def test_faults_that_a_process_survives(launch, of):
    """One launch: each fault in a world of its own; --full: at every collective of the first step."""
    skip_without(of)
    numbers = random.Random(os.environ.get("ADJOIN_TEST_SEED", "0"))
    lost = min(6, max(2, round(patience() / 2)))  # seconds: the deadline of a world, and of its beginning
    cases = [
        (f"{engine(of)},1:{number}:{fault}", timeout)
        for fault, timeout in (("error", 60), ("throw", 60), ("mismatch", lost), ("drop", lost), ("delay=300", 60))
        for number in (range(3, 3 + LAST) if FULL else [numbers.randint(3, 3 + LAST)])
    ]
    body = (
        PROGRAM
        + f"""
for faults, timeout in {cases!r}:
    print(faults, "|", *tried(faults, timeout), flush=True)
    dist.destroy_process_group()
"""
    )
    got = launch(3, body, timeout=600 if FULL else 120, engine=of)
    # mpirun takes a process whose communicator was broken off for a lost one.
    assert got.code == 0 or of == "mpi", got.err
    for faults, timeout in cases:
        lines = [
            re.match(r"(\d) ([\d.]+) (.*)", line.split("| ")[1]).groups()
            for line in got.lines()
            if line.startswith(faults + " ")
        ]
        assert sorted(r for r, _, _ in lines) == ["0", "1", "2"], (faults, got.out)
        number = faults.split(":")[1]
        for rank, took, said in lines:
            kind = faults.split(":")[2].split("=")[0]
            if kind == "delay":
                assert said == "nothing", (faults, said)
                continue
            # A world whose collective failed says so at once; one in which a message is lost at its deadline.
            limit = 2.5 if kind in ("error", "throw") else timeout + 1.5
            assert float(took) < limit * patience(), (faults, took)
            assert "program.py:" in said and f"rank {rank} was in" in said or kind == "throw", (faults, said)
            if kind == "error":
                assert "the connection broke, as it was ordered" in said, (faults, said)
                assert rank == "1" or (
                    re.search(r"rank 1 \(host \S+, pid \d+\) has an engine that failed", said) and f"#{number}" in said
                )
            elif kind == "throw":
                assert ("refused" in said) if rank == "1" else ("rank 1 has ended its part" in said), (faults, said)
            else:
                assert f"nothing came within {timeout} s" in said or "has ended its part" in said, (faults, said)


# What a survivor says, and within how many seconds; None: a link that is cut may be noticed later by who sends nothing.
NOBODY_TELLS = r"rank {rank} \(host \S+, pid \d+\) has ended without a word|the control server at \S+ has ended"
LOST = {
    "kill=2": (r"rank 1 \(host \S+, pid \d+\) (was killed by signal 9 \(SIGKILL\)|has ended without a word)", 1),
    "stop=2": (r"rank 1 \(host \S+, pid \d+\) has not answered for \d s", 4),
    "usr1=2": (r"rank 1 \(host \S+, pid \d+\) raised ValueError: mine at \S+program\.py:\d+", 0.5),
    "cut_link": (NOBODY_TELLS.format(rank=1) + r"|rank 1 \(host \S+, pid \d+\) ended with exit code 5", None),
    "server": (NOBODY_TELLS.format(rank=0), 1),  # rank 0 is killed, and has the control server
}
DEADLY = [(of, fault, number) for of in ENGINES for fault in LOST for number in range(3, 3 + LAST)]


def chosen():
    if FULL:
        return DEADLY
    numbers = random.Random(os.environ.get("ADJOIN_TEST_SEED", "0"))
    of = numbers.sample(["gloo", "shm", "mpi"], 3)
    return [(of[i % 3], fault, numbers.randint(3, 2 + LAST)) for i, fault in enumerate(LOST)]


def pytest_generate_tests(metafunc):
    if "deadly" in metafunc.fixturenames:
        cases = chosen()
        metafunc.parametrize("deadly", cases, ids=["-".join(map(str, c)) for c in cases])


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_process_that_is_lost(launch, deadly, tmp_path):
    of, fault, number = deadly
    skip_without(of)
    body = (
        PROGRAM
        + """
import signal, threading
mine = os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
first = time.time()
def watch():  # the last moment at which the one that is lost was there
    while True:
        os.utime(sys.argv[1])
        time.sleep(0.005)
def raises(*_):
    os.utime(sys.argv[1])
    raise ValueError("mine")
signal.signal(signal.SIGUSR1, raises)
if mine == sys.argv[2]:
    threading.Thread(target=watch, daemon=True).start()
if len(sys.argv) > 3:  # rank 0 has the control server
    os.environ.pop("ADJOIN_CONTROL", None)
    init = dist.init_process_group
    dist.init_process_group = lambda *args, **more: init(*args, **more, rank=int(mine), world_size=3, init_method="file://" + sys.argv[3])
print(os.getpid(), "is", mine, flush=True)
rank, took, said = tried(os.environ["ADJOIN_FAULTY"], 60, 10**6)  # until somebody ends it
print(rank, time.time() - os.stat(sys.argv[1]).st_mtime, said, flush=True)
if "OMPI_COMM_WORLD_RANK" in os.environ:  # mpirun kills the others a second after a death, and at the first end behind it
    time.sleep(0.8)
os._exit(5)
"""
    )
    (tmp_path / "alive").touch()
    lost, order = ("0", "kill=2") if fault == "server" else ("1", fault)
    # Else somebody who gets no processor for so long would be taken for one that is frozen.
    silence = {"ADJOIN_SILENCE_SECONDS": str(round(min(6, 2 * slower())))} if fault.startswith("stop") else {}
    arguments = [str(tmp_path / "alive"), lost] + ([str(tmp_path / "meet")] if fault == "server" else [])
    got = launch(3, body, arguments=arguments, timeout=90, engine="mpi" if of == "mpi" else None, **silence,
                 ADJOIN_FAULTY=f"{engine(of)},{lost}:{number}:{order}")  # fmt: skip
    said = [re.match(r"(\d) (\S+) (.*)", line).groups() for line in got.lines() if " is " not in line[:12]]
    cause, limit = LOST[fault]
    survivors = [s for s in said if fault == "cut_link" or s[0] != lost]
    assert {s[0] for s in survivors} >= {"0", "1", "2"} - {lost}, got.out + got.err
    for rank, took, text in survivors:
        assert re.search(cause, text), text
        assert limit is None or float(took) < limit * patience(), (took, text)
        assert re.search(rf"\[rank {rank} was (in|about to start) .*program\.py:\d+", text), text
    print("the slowest survivor took", max(float(s[1]) for s in survivors), "s")
    pids = re.findall(r"^(\d+) is \d", got.out, re.M)
    until = time.monotonic() + 5
    while not all(map(gone, pids)):  # who was frozen is killed, and the kernel needs a moment
        assert len(pids) == 3 and time.monotonic() < until, (pids, got.out)
        time.sleep(0.05)


ORDERS = """
import datetime, os, sys, torch, torch.distributed as dist
def calls(rank):
    x, parts = torch.ones(4), [torch.empty(4) for _ in range(3)]
    return [lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0), lambda: dist.all_gather(parts, x), lambda: dist.reduce(x, 1),
            lambda: dist.barrier(), lambda: dist.all_reduce(x, dist.ReduceOp.MAX)]
for at in map(int, sys.argv[1:]):
    dist.init_process_group(os.environ.get("TEST_ENGINE"), timeout=datetime.timedelta(seconds=30))
    rank = dist.get_rank()
    some = calls(rank)
    if rank == 1:
        some[at], some[at + 1] = some[at + 1], some[at]
    try:
        for call in some:
            call()
        said = "nothing"
    except dist.DistBackendError as error:
        said = " ".join(str(error).split())
    print("order", at, rank, said, flush=True)
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("of", ENGINES)
def test_a_wrong_order(launch, of):
    """Two calls of rank 1 have changed places, --full: at each place; all name both calls, their ranks and lines."""
    skip_without(of)
    places = range(5) if FULL else [random.Random(os.environ.get("ADJOIN_TEST_SEED", "0")).randrange(5)]
    got = launch(3, ORDERS, arguments=[str(at) for at in places], engine=engine(of), timeout=300)
    names = ["all_reduce #1", "broadcast #2", "all_gather #3", "reduce #4", "barrier #5", "all_reduce #6"]
    kinds = [name.split()[0] for name in names]
    for at in places:
        lines = [line for line in got.lines() if line.startswith(f"order {at} ")]
        assert [line.split()[2] for line in lines] == ["0", "1", "2"], got.out + got.err
        for line in lines:
            assert re.search(r"the processes disagree: .*program\.py:\d+.* meets .*program\.py:\d+", line), line
            assert "rank 1 (host" in line or "(rank 1)" in line, line
            assert f"{kinds[at]} #{at + 1} " in line and f"{kinds[at + 1]} #{at + 1} " in line, line


@pytest.mark.skipif(not FULL, reason="one of the lost processes above has the server: with --full")
def test_a_server_that_is_lost(launch, tmp_path):
    """Without a launcher the server is in the process of rank 0; with it everybody hears of its end."""
    body = """
    import os, signal, sys, time, torch, torch.distributed as dist
    rank = int(os.environ["RANK"])
    del os.environ["ADJOIN_CONTROL"]
    dist.init_process_group(init_method="file://" + sys.argv[1], rank=rank, world_size=3)
    dist.barrier()
    open(f"{__file__}.{rank}", "w").close()
    while not all(os.path.exists(f"{__file__}.{r}") for r in range(3)):  # who is slow would hear of the end in the barrier
        time.sleep(0.005)
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.time()
    try:
        dist.all_reduce(torch.ones(4))
    except dist.DistBackendError as error:
        print(rank, time.time() - began, str(error).replace("\\n", " "), flush=True)
    os._exit(5)
    """
    got = launch(3, body, arguments=[str(tmp_path / "meet")])
    assert [line[0] for line in got.lines()] == ["1", "2"], got.out + got.err
    for line in got.lines():
        assert float(line.split()[1]) < 2 * patience() and "the control server at" in line and "program.py:" in line, (
            line
        )


def test_ctrl_c_ends_a_wait(launch):
    """Where the engine's own thread waits for a process that does not come."""
    body = """
    import os, signal, sys, time, torch, torch.distributed as dist
    rank, signal_it = int(os.environ["RANK"]), signal.SIGINT
    for engine in sys.argv[1:]:
        dist.init_process_group(engine)
        pids = [None] * 3
        dist.all_gather_object(pids, os.getpid())
        try:
            if rank == 0:
                time.sleep(0.7)
                print(engine, "sent", time.time(), flush=True)
                os.kill(pids[1], signal_it)
            else:
                dist.all_reduce(torch.ones(4))
        except KeyboardInterrupt:
            print(engine, rank, time.time(), "interrupted", flush=True)
        except dist.DistBackendError as error:
            print(engine, rank, time.time(), " ".join(str(error).split()), flush=True)
        dist.destroy_process_group()
    """
    got = launch(3, body, arguments=[engine("gloo"), "shm"])
    assert got.code == 0, got.err
    for of in (engine("gloo"), "shm"):
        lines = {line.split()[1]: line.split(None, 3)[2:] for line in got.lines() if line.startswith(of + " ")}
        assert lines["1"][1] == "interrupted", got.out
        assert float(lines["1"][0]) - float(lines["sent"][0]) < 0.5 * patience(), got.out
        assert re.search(
            r"rank [01] has ended its part .*\[rank 2 was in all_reduce .*program.py:\d+", lines["2"][1]
        ), got.out
        assert float(lines["2"][0]) - float(lines["1"][0]) < 2 * patience(), got.out


EXPLAINED = """
import os, time, torch, torch.distributed as dist
dist.init_process_group()
x = torch.ones(4)
dist.all_reduce(x)
print(os.getpid(), flush=True)
if dist.get_rank() == 1:
    time.sleep(60)  # it does not come
dist.all_reduce(x)
"""


def test_explain_hang(tmp_path):
    adjoin_command = shutil.which("adjoin")
    (tmp_path / "program.py").write_text(EXPLAINED)
    job = subprocess.Popen([adjoin_command, "launch", "--nproc-per-node", "3", str(tmp_path / "program.py")],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    try:
        pids = [job.stdout.readline().strip() for _ in range(3)]
        until = time.monotonic() + 20
        while True:
            got = subprocess.run([adjoin_command, "explain-hang", pids[0]], capture_output=True, text=True, timeout=20)
            if got.stdout.count(" waits in ") == 2 or time.monotonic() > until:
                break
            time.sleep(0.05)
        again = subprocess.run([adjoin_command, "explain-hang"], capture_output=True, text=True, timeout=20)
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(20)
    assert got.returncode == 0 and again.returncode == 0, got.stderr
    for rank in (0, 2):
        assert re.search(
            rf"rank {rank} \(host \S+, pid \d+\) waits in all_reduce #2 sum float32\[4\] at .*program.py:9", got.stdout
        ), got.stdout
    assert re.search(
        r"rank 1 \(host .*\) is outside of collectives, after all_reduce #1 sum float32\[4\] at .*program.py:5",
        got.stdout,
    ), got.stdout
    assert "group default: ranks 0, 2 at collective #2; rank 1 is behind, at #1" in got.stdout
    assert got.stdout.split("\n", 1)[1] in again.stdout or "waits in all_reduce #2" in again.stdout
    wrong = subprocess.run([adjoin_command, "explain-hang", "nowhere"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "neither HOST:PORT nor the number of a process" in wrong.stderr


def test_orders_that_are_wrong_are_told(launch):
    body = """
    import os, torch.distributed as dist
    for order in ("gloo,1:2", "gloo,1:2:burn", "gloo,one:2:kill", "none,1:2:kill"):
        os.environ["ADJOIN_FAULTY"] = order
        try:
            dist.init_process_group("faulty")
        except RuntimeError as error:
            print(order, "|", error)
    """
    said = dict(line.split(" | ") for line in launch(2, body).lines())
    assert (
        "wanted is RANK:NUMBER:FAULT" in said["gloo,1:2"]
        and "no fault 'burn'; there are: delay" in said["gloo,1:2:burn"]
    )
    assert (
        "'one' is no number" in said["gloo,one:2:kill"]
        and "no plugin offers the engine 'none'" in said["none,1:2:kill"]
    )

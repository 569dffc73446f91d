"""tests/python/data/workers_test.py: DataLoader with worker processes: order, seeds, failures, and that nothing is left behind."""

import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import adjoin
import numpy as np
import pytest
from adjoin import _shared
from adjoin.utils import data

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"


class Squares(data.Dataset):
    def __init__(self, count=20):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return adjoin.full((3,), float(i)), i * i


class Stream(data.IterableDataset):
    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        step, first = (info.num_workers, info.id) if info else (1, 0)
        return iter(range(first, self.count, step))


class Function(data.Dataset):
    def __init__(self, function, count=4):
        self.function, self.count = function, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.function(i)


def lists(loader):
    return [batch.tolist() for batch in loader]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def children():
    gc.collect()  # loaders that an exception's frames held
    return [p for p in adjoin.multiprocessing.active_children() if p.name.startswith("adjoin loader")]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_batches_are_those_of_the_calling_process(workers, persistent):
    kwargs = {"num_workers": workers, "persistent_workers": persistent}
    for settings in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None},
                     {"batch_sampler": [[3, 1], [2], [5, 6, 7]]}):  # fmt: skip
        alone = [(x.tolist(), adjoin.as_tensor(y).tolist()) for x, y in data.DataLoader(Squares(), **settings)]
        loader = data.DataLoader(Squares(), **settings, **kwargs)
        for _ in range(2):
            assert [(x.tolist(), adjoin.as_tensor(y).tolist()) for x, y in loader] == alone
            assert len(loader) == len(alone)
        del loader
    gc.collect()
    assert not children()


def test_shuffling_draws_the_same_order():
    def order(workers):
        generator = adjoin.Generator().manual_seed(5)
        loader = data.DataLoader(Squares(), 4, shuffle=True, num_workers=workers, generator=generator)
        return [y.tolist() for _ in range(2) for _, y in loader]

    assert sorted(sum(order(2)[:5], [])) == [i * i for i in range(20)]
    assert order(2) == order(2) == order(3) == order(0)


def test_streams_are_shared_out():
    loader = data.DataLoader(Stream(), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert lists(loader) == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert lists(data.DataLoader(Stream(), batch_size=2, num_workers=2, drop_last=True)) == [
        [0, 2],
        [1, 3],
        [4, 6],
        [5, 7],
    ]
    assert sorted(data.DataLoader(Stream(5), batch_size=None, num_workers=2)) == [0, 1, 2, 3, 4]


def test_batches_lie_in_shared_memory_and_live_on():
    loader = data.DataLoader(Squares(100), batch_size=10, num_workers=2)
    kept = list(loader)
    gc.collect()
    assert all(x.is_shared() for x, _ in kept)
    assert [x[0, 0].item() for x, _ in kept] == [10.0 * i for i in range(10)], "after their workers ended"


def test_own_collation_and_lambdas_under_fork():
    loader = data.DataLoader(
        Function(lambda i: i + 1), 2, num_workers=2, collate_fn=lambda x: {"all": x, "sum": adjoin.tensor(sum(x))}
    )
    assert [(b["all"], b["sum"].item()) for b in loader] == [([1, 2], 3), ([3, 4], 7)]
    parts = [x for b in data.DataLoader(Function(lambda i: "abc"[i % 3]), 2, num_workers=1) for x in b]
    assert parts == ["a", "b", "c", "a"]


def test_order_may_be_given_up():
    def slow(i):
        time.sleep(0.5 if i == 0 else 0)
        return i

    seen = lists(data.DataLoader(Function(slow, 6), 1, num_workers=2, in_order=False))
    assert sorted(seen) == [[i] for i in range(6)] and seen[0] != [0]


def numbers(_):
    info = data.get_worker_info()
    return adjoin.tensor([info.id, info.seed % 2**31, adjoin.randint(2**31, ()).item(), random.randrange(2**31)])


def test_seeds():
    def draw(seed):
        generator = adjoin.Generator().manual_seed(seed)
        return lists(data.DataLoader(Function(numbers), 1, num_workers=2, generator=generator))

    first = draw(1)
    assert first == draw(1) != draw(2)
    (a,), (b,), (c,), _ = first
    assert (a[0], b[0], c[0]) == (0, 1, 0) and b[1] == (a[1] + 1) % 2**31
    assert len({a[2], b[2], c[2]}) == 3 and len({a[3], b[3]}) == 2
    assert data.get_worker_info() is None


def init(number):
    os.environ["WORKER"] = str(number)


def named(_):
    return int(os.environ["WORKER"])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(method):
    loader = data.DataLoader(Function(named), 1, num_workers=2, worker_init_fn=init, multiprocessing_context=method)
    assert lists(loader) == [[0], [1], [0], [1]]


def test_leaving_a_pass_early():
    loader = data.DataLoader(Squares(1000), 10, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for count, (x, _) in enumerate(loader):
            assert x[0, 0].item() == 10 * count
            if count == 3:
                break
    pids = {p.pid for p in children()}
    assert len(pids) == 2
    assert len(list(loader)) == 100 and {p.pid for p in children()} == pids
    del loader
    gc.collect()
    assert not children()
    next(iter(data.DataLoader(Squares(1000), 10, num_workers=2)))
    gc.collect()
    assert not children()


class OwnError(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raising(error):
    def function(i):
        if i == 2:
            raise error
        return i

    return function


@pytest.mark.parametrize("error, kind", [
    (ValueError("number two is bad"), ValueError), (KeyError("number two is bad"), KeyError),
    (OwnError("number two is bad", 1), RuntimeError), (StopIteration("number two is bad"), RuntimeError),
])  # fmt: skip
def test_a_raising_data_set(error, kind):
    loader = data.DataLoader(Function(raising(error)), 1, num_workers=2)
    batches = iter(loader)
    assert [next(batches).tolist(), next(batches).tolist()] == [[0], [1]]
    with pytest.raises(
        kind, match=r"(?s)Caught .* in DataLoader worker process 0.*Original Traceback.*workers_test.*number two is bad"
    ) as caught:
        next(batches)
    assert type(caught.value) is kind
    assert next(batches).tolist() == [3]
    assert list(batches) == []


def test_a_raising_start():
    def bad(_):
        raise ValueError("no start")

    with pytest.raises(ValueError, match="(?s)worker process 0.*no start"):
        list(data.DataLoader(Squares(), num_workers=1, worker_init_fn=bad))
    with pytest.raises(Exception, match="(?s)worker process 0.*ickle"):
        list(data.DataLoader(Function(lambda i: lambda: i), batch_size=None, num_workers=1))


def killing(number, how):
    def function(i):
        if i == number:
            how()
            time.sleep(60)
        return i

    return function


@pytest.mark.parametrize("how, said", [
    (lambda: os.kill(os.getpid(), signal.SIGKILL), r"was killed by signal 9 \(SIGKILL\): .*memory"),
    (lambda: (signal.signal(signal.SIGSEGV, signal.SIG_DFL), os.kill(os.getpid(), signal.SIGSEGV)), r"was killed by signal 11 \(SIGSEGV\): .*crashed"),
    (lambda: os._exit(3), "exited unexpectedly with code 3: .*called exit"),
    (lambda: sys.exit(4), "exited unexpectedly with code 4: .*called exit"),
])  # fmt: skip
def test_a_worker_that_dies_is_named_at_once(how, said):
    gc.collect()
    before = descriptors()
    batches = iter(data.DataLoader(Function(killing(2, how), 8), 1, num_workers=2))
    pids = [worker.pid for worker in batches.workers]
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"DataLoader worker 0 \(pid {pids[0]}\) {said}"):
        list(batches)
    assert time.monotonic() - start < 60  # not only when somebody loses patience
    with pytest.raises(RuntimeError, match="start a new pass"):
        next(batches)
    assert not children() and descriptors() == before


def test_a_worker_killed_between_batches_is_noticed():
    batches = iter(data.DataLoader(Squares(1000), 1, num_workers=2))
    next(batches)
    os.kill(batches.workers[1].pid, signal.SIGKILL)
    batches.workers[1].process.join(30)
    with pytest.raises(RuntimeError, match="DataLoader worker 1 .*SIGKILL"):
        next(batches)
    assert not children()


def test_timeout():
    loader = data.DataLoader(Function(lambda i: time.sleep(30)), num_workers=1, timeout=0.3)
    with pytest.raises(RuntimeError, match="timed out after 0.3 seconds"):
        next(iter(loader))
    assert not children()


def test_fork_after_threads_were_used():
    adjoin.set_num_threads(2)
    try:
        big = adjoin.ones(600, 600)
        expected = (big @ big).sum().item()
        loader = data.DataLoader(Function(lambda i: (big @ big).sum()), 2, num_workers=2, timeout=30)
        assert [x for batch in loader for x in batch.tolist()] == [expected] * 4
    finally:
        adjoin.set_num_threads(1)


def script(code, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **kwargs,
    )  # fmt: skip


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_dead(pids, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(map(alive, pids)):
        time.sleep(0.02)
    return not any(map(alive, pids))


PROGRAM = """
    import signal, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import adjoin
    from adjoin.utils import data
    class Slow(data.Dataset):
        def __len__(self): return 100000
        def __getitem__(self, i):
            time.sleep(0.01)
            return adjoin.ones(1000)
    if __name__ == "__main__":
        batches = iter(data.DataLoader(Slow(), 4, num_workers=2, persistent_workers={persistent}))
        next(batches)
        print(*(worker.pid for worker in batches.workers), flush=True)
        for _ in batches: pass
"""


@pytest.mark.parametrize("persistent", [False, True])
def test_ctrl_c_ends_all_without_noise(persistent):
    program = script(PROGRAM.format(persistent=persistent))
    pids = [int(pid) for pid in program.stdout.readline().split()]
    time.sleep(0.2)
    files = set(os.listdir("/dev/shm"))
    os.killpg(program.pid, signal.SIGINT)
    _, errors = program.communicate(timeout=20)
    assert program.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert len(pids) == 2 and wait_dead(pids)
    assert set(os.listdir("/dev/shm")) <= files


def test_workers_end_with_their_parent():
    program = script(PROGRAM.format(persistent=False))
    pids = [int(pid) for pid in program.stdout.readline().split()]
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=20)
    assert len(pids) == 2 and wait_dead(pids)


FULL_SHM = """
    import os, shutil, subprocess, adjoin
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/dev/shm"], check=True)
    try:
        with open("/dev/shm/full", "wb", buffering=0) as file:
            while file.write(bytes(4096)): pass
    except OSError:
        print("full")
    from adjoin.utils import data
    rows = data.TensorDataset(adjoin.arange(4_000_000.0).view(40, 100_000))
    total = sum(x.sum().item() for x, in data.DataLoader(rows, 4, num_workers=2))
    print(abs(total / (4e6 * (4e6 - 1) / 2) - 1) < 1e-5)
"""


def test_a_full_dev_shm_does_not_matter():
    command = ["unshare", "-m", sys.executable, "-c", textwrap.dedent(FULL_SHM)]
    try:
        result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    except OSError:
        pytest.skip("unshare is not here")
    if "unshare failed" in result.stderr or "mount" in result.stderr:
        pytest.skip("not allowed to mount")
    assert result.stdout.split() == ["full", "True"], result.stderr


def test_want_of_memory_is_an_error_in_words():
    with pytest.raises(adjoin.OutOfMemoryError, match="shared memory: the system has no"):
        _shared.new_block(1 << 60)


def resident():
    with open("/proc/self/status") as file:
        text = dict(line.split(":", 1) for line in file)
    return int(text["RssAnon"].split()[0]) >> 10


def test_nothing_grows_over_many_batches():
    """10,000 batches through two workers, 50 passes: descriptors, shared memory and resident size stay."""
    passes, count = (50, 200) if FULL else (6, 50)
    rows = data.TensorDataset(adjoin.rand(count * 4, 3000))
    seen = []
    for _ in range(passes):
        for (x,) in data.DataLoader(rows, 4, shuffle=True, num_workers=2):
            assert x.shape == (4, 3000)
        gc.collect()
        seen.append((descriptors(), resident(), len(_shared._segments)))
    print(f"descriptors, resident MB, segments: first {seen[1]}, last {seen[-1]}")
    assert seen[-1][0] == seen[1][0] and seen[-1][2] <= seen[1][2]
    assert seen[-1][1] - seen[1][1] <= 4


def test_shared_memory_stays_over_many_batches():
    passes, count = (50, 200) if FULL else (6, 50)
    rows = data.TensorDataset(adjoin.rand(count * 4, 3000))
    loader = data.DataLoader(rows, 4, shuffle=True, num_workers=2, persistent_workers=True)
    seen = []
    for _ in range(passes):
        for (x,) in loader:
            assert x.shape == (4, 3000)
        seen.append((descriptors(), sum(segment.resident for segment in _shared._segments.values())))
    print(f"descriptors, bytes shared: first {seen[1]}, last {seen[-1]}")
    assert seen[-1] == seen[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_chains_of_streams_that_know_no_length(workers):
    chain = data.ChainDataset([Stream(3), Stream(2)])
    found = [n for batch in data.DataLoader(chain, num_workers=workers) for n in batch.tolist()]
    assert sorted(found) == [0, 0, 1, 1, 2]


def two_draws(i):
    return random.random(), np.random.random()


def test_generators_of_a_worker_draw_different_numbers():
    for first, second in data.DataLoader(Function(two_draws), num_workers=2):
        assert first.item() != second.item()


def broken(i):
    raise ValueError(f"no sample {i}")


def test_workers_end_with_the_last_reference():
    """At once, not when the collector of cycles comes by."""
    gc.collect()
    gc.disable()
    try:
        before = descriptors()
        for _ in range(3):
            loader = data.DataLoader(Squares(), num_workers=1, persistent_workers=True)
            assert len(list(loader)) == len(list(loader)) == 20
            del loader
            with pytest.raises(ValueError, match="no sample 0"):
                list(data.DataLoader(Function(broken), num_workers=1))
        assert descriptors() == before
    finally:
        gc.enable()

"""tests/python/data/lent_memory_test.py: a device's tensors in messages between processes: both see one memory, and it goes in time."""

import gc
import os
import signal

import adjoin
import adjoin.multiprocessing as mp
import pytest
from adjoin import _lent, nn

there = adjoin._C.find_op("emulated::configure") is not None
pytestmark = pytest.mark.skipif(not there, reason="NOT TESTED: the plugin emulated is not built")
DEVICE = "emulated"


def changes(receive, send):
    """Writes into what it gets, until None comes."""
    for x in iter(receive.get, None):
        if adjoin.is_tensor(x):
            with adjoin.no_grad():
                x += 1
        send.put((x, os.getpid()))
        del x
        gc.collect()


def passes_on(receive, send):
    for x in iter(receive.get, None):
        send.put(x)
        del x


def reads_later(receive, send):
    for x in iter(receive.get, None):
        send.put("it is here")
        receive.get()
        send.put(x.tolist())
        del x


@pytest.fixture
def pipe():
    """start(function): queues to and from a process of its own."""
    context, started = mp.get_context("spawn"), []

    def start(function):
        there, back = context.Queue(), context.Queue()
        process = context.Process(target=function, args=(there, back), daemon=True)
        process.start()
        started.append((process, there))
        return process, there, back

    yield start
    for process, there in started:
        if process.is_alive():
            there.put(None)
        process.join(60)
        assert process.exitcode in (0, -signal.SIGKILL)
    gc.collect()
    _lent.collect(dead=True)
    assert not _lent._lent


def sent(process, there, back, x):
    there.put(x)
    y, pid = back.get(timeout=60)
    assert pid == process.pid
    return y


def test_both_see_one_memory(pipe):
    ends = pipe(changes)
    x = adjoin.arange(6.0, device=DEVICE).reshape(2, 3)
    y = sent(*ends, x)
    assert y.data_ptr() == x.data_ptr() and x.tolist() == [[1, 2, 3], [4, 5, 6]]
    part = sent(*ends, x.t()[1:])
    assert part.stride() == (1, 3) and part.data_ptr() == x.data_ptr() + 4 and x.tolist() == [[1, 3, 4], [4, 6, 7]]
    whole = sent(*ends, x.view(adjoin.int32).flatten()[:2])
    assert whole.dtype == adjoin.int32 and whole.data_ptr() == x.data_ptr()
    assert sent(*ends, adjoin.empty(0, 3, device=DEVICE)).shape == (0, 3)


def test_what_was_queued_before_is_seen(pipe):
    _, there, back = pipe(reads_later)
    x = adjoin.zeros(5, device=DEVICE)
    there.put(x)
    assert back.get(timeout=60) == "it is here"
    adjoin.ops.emulated.configure("delay_us=400000")
    try:
        x += 5
        there.put(x)
        assert back.get(timeout=60) == [5.0] * 5
    finally:
        adjoin.ops.emulated.configure("delay_us=0")


def test_the_lender_keeps_the_memory_as_long_as_it_is_used(pipe):
    _, there, back = pipe(reads_later)
    x = adjoin.full((5,), 3.0, device=DEVICE)
    there.put(x)
    assert back.get(timeout=60) == "it is here"
    address = x.data_ptr()
    del x
    gc.collect()
    _lent.collect()
    others = [adjoin.full((5,), 4.0, device=DEVICE) for _ in range(3)]
    assert address not in [other.data_ptr() for other in others]
    there.put("read")
    assert back.get(timeout=60) == [3.0] * 5


def test_borrowed_memory_is_passed_on(pipe):
    _, to_first, from_first = pipe(passes_on)
    second = pipe(changes)
    x = adjoin.ones(3, device=DEVICE)
    to_first.put(x)
    y = sent(*second, from_first.get(timeout=60))
    assert x.tolist() == [2, 2, 2] and y.data_ptr() == x.data_ptr()


def test_a_receiver_that_is_killed_holds_nothing(pipe):
    process, there, back = pipe(passes_on)
    there.put(adjoin.ones(3, device=DEVICE))
    back.get(timeout=60)
    there.put([adjoin.ones(3, device=DEVICE), "held"])
    assert back.get(timeout=60)[1] == "held"
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)  # the fixture sees that nothing is lent


def test_parameters_storages_and_modules(pipe):
    ends = pipe(changes)
    p = nn.Parameter(adjoin.ones(3, device=DEVICE))
    q = sent(*ends, p)
    assert isinstance(q, nn.Parameter) and q.requires_grad and q.is_leaf and p.tolist() == [2, 2, 2]
    _, there, back = pipe(passes_on)
    there.put(p.untyped_storage())
    assert back.get(timeout=60).data_ptr() == p.data_ptr()
    model = nn.Linear(3, 2).to(DEVICE)
    there.put(model)
    got = back.get(timeout=60)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(model.parameters(), got.parameters(), strict=True))
    with pytest.raises(RuntimeError, match="history stays here"):
        mp.reductions.reduce_tensor(p * 2)


def test_bad_handles_are_refused():
    with pytest.raises(ValueError, match="128 bytes"):
        adjoin._C.ipc_open(DEVICE, b"short", 4, None)
    with pytest.raises(RuntimeError, match="no handle of an emulated device"):
        adjoin._C.ipc_open(DEVICE, bytes(128), 4, None)
    with pytest.raises(TypeError, match="wanted a tensor"):
        adjoin._C.ipc_export(3)
    assert adjoin._C.ipc_export(adjoin.ones(3)) is None

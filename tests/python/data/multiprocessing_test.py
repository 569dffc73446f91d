"""tests/python/data/multiprocessing_test.py: tensors in shared memory, in messages, and what becomes of them."""

import gc
import importlib
import os
import random
import signal
import time
import warnings

import adjoin
import adjoin.multiprocessing as mp
import pytest
from adjoin import _shared, nn
from adjoin._arena import Arena
from adjoin.utils.data import DataLoader, TensorDataset

METHODS = ["fork", "spawn"]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def run(function, *args, method="fork"):
    process = mp.get_context(method).Process(target=function, args=args, daemon=True)
    process.start()
    return process


def ended(process):
    process.join(30)
    assert process.exitcode == 0
    return True


def test_share_memory_keeps_values_shape_and_views():
    x = adjoin.arange(12.0).view(3, 4).t()
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared()
    assert x.stride() == (1, 4) and x.tolist() == [[i, 4 + i, 8 + i] for i in range(4)]
    row = x[1]
    row.fill_(7)
    assert row.is_shared() and x[1].tolist() == [7, 7, 7]
    assert adjoin.empty(0).share_memory_().is_shared()
    assert adjoin.tensor(3).share_memory_().item() == 3
    p = nn.Parameter(adjoin.ones(3)).share_memory_()
    assert isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf and p.is_shared()
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2, 2]
    storage = adjoin.ones(4).untyped_storage()
    assert storage.share_memory_().is_shared()


def test_a_model_in_training_is_shared_without_a_word(recwarn):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = adjoin.optim.Adam(model.parameters())
    model(adjoin.randn(5, 4)).sum().backward()
    optimizer.step()
    loss = model(adjoin.randn(5, 4)).pow(2).sum()  # whose graph refers to the parameters
    model.share_memory()
    optimizer.share_memory()
    assert all(t.is_shared() for t in [*model.parameters(), *model.buffers()])
    assert all(v.is_shared() for state in optimizer.state.values() for v in state.values())
    loss.backward()
    assert not recwarn.list
    begun = adjoin.optim.Adagrad(model.parameters())
    begun.share_memory()  # its state is there from the start
    assert all(v.is_shared() for state in begun.state.values() for v in state.values())
    with pytest.raises(RuntimeError, match="makes its state in its first step"):
        adjoin.optim.Optimizer(model.parameters(), {}).share_memory()


def total(x):
    return x.sum(), x


def test_a_pool_of_processes():
    with mp.Pool(2) as pool:
        results = pool.map(total, [adjoin.full((1000,), float(i)) for i in range(10)])
    assert [s.item() for s, _ in results] == [1000.0 * i for i in range(10)]
    assert [x[0].item() for _, x in results] == list(range(10))


def test_views_that_stay_behind_are_announced():
    x = adjoin.zeros(4)
    view = x[1:]
    with pytest.warns(RuntimeWarning, match="other tensors look at this memory"):
        x.share_memory_()
    del view


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64", "float64"])
def test_all_dtypes(dtype):
    x = adjoin.ones(5, dtype=getattr(adjoin, dtype))
    queue = mp.Queue()
    queue.put(x)
    y = queue.get()
    assert y.dtype is x.dtype and y.data_ptr() == x.data_ptr() and adjoin.equal(x, y)


def echo(inbox, outbox):
    kept = []
    while (message := inbox.get()) is not None:
        if message == "fill":
            kept[0].fill_(5)
            message = "done"
        kept = [message]
        outbox.put(message)


@pytest.mark.parametrize("method", METHODS)
def test_messages_arrive_in_place(method):
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    process = run(echo, inbox, outbox, method=method)
    x = adjoin.zeros(1000)
    inbox.put(x)
    back = outbox.get(timeout=60)
    assert back.data_ptr() == x.data_ptr() and back.untyped_storage() == x.untyped_storage()
    inbox.put("fill")
    assert outbox.get(timeout=60) == "done"
    assert (x == 5).all().item()
    parameter = nn.Parameter(adjoin.ones(2, 3), requires_grad=False)
    inbox.put([parameter, {"a": adjoin.ones(2, requires_grad=True)}])
    other, rest = outbox.get(timeout=60)
    assert isinstance(other, nn.Parameter) and not other.requires_grad and rest["a"].requires_grad
    inbox.put(None)
    assert ended(process)


def test_views_of_one_message_stay_views():
    x = adjoin.arange(10.0)
    queue = mp.Queue()
    queue.put((x, x[2:5]))
    a, b = queue.get()
    a[3] = 77
    assert b.tolist() == [2, 77, 4] and a.untyped_storage() == b.untyped_storage()
    assert x[3].item() == 3, "what has views here travels as a copy"
    big = adjoin.zeros(1000, 1000)
    queue.put(big[3, 4:6])
    small = queue.get()
    assert small.tolist() == [0, 0] and small.untyped_storage().nbytes() < 100


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_sparse_tensors_in_messages(layout):
    blocks = (2, 2) if layout in ("sparse_bsr", "sparse_bsc") else None
    dense = adjoin.tensor([[0.0, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 5, 0]], dtype=adjoin.float64)
    x = dense.to_sparse(layout=getattr(adjoin, layout), blocksize=blocks).requires_grad_()
    queue = mp.Queue()
    queue.put(x)
    y = queue.get(timeout=60)
    assert y.layout is x.layout and y.dtype is x.dtype and y.shape == x.shape and y.requires_grad and y.is_leaf
    assert y.to_dense().tolist() == dense.tolist()
    assert y.detach().values().data_ptr() == x.detach().values().data_ptr() or not x.detach().values().is_shared()


def test_a_sparse_tensor_that_is_not_coalesced_stays_so():
    x = adjoin.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (4,))
    queue = mp.Queue()
    for sent in (x, x.coalesce(), adjoin.sparse_coo_tensor((2, 0))):
        queue.put(sent)
        got = queue.get(timeout=60)
        assert got.is_coalesced() is sent.is_coalesced() and got._nnz() == sent._nnz() and got.shape == sent.shape
        assert got.to_dense().tolist() == sent.to_dense().tolist()


class _SparseRows(adjoin.utils.data.Dataset):
    def __getitem__(self, i):
        return adjoin.eye(3)[i].to_sparse()

    def __len__(self):
        return 3


def test_workers_give_sparse_tensors():
    loader = DataLoader(_SparseRows(), batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert [x.to_dense().tolist() for x in loader] == adjoin.eye(3).tolist()


def test_what_cannot_be_sent():
    x = adjoin.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="send tensor.detach"):
        mp.reductions.reduce_tensor(x)
    data = mp.reductions.reduction.ForkingPickler.dumps(adjoin.ones(3))
    first = mp.reductions.reduction.ForkingPickler.loads(data)
    assert first.sum().item() == 3
    del first
    with pytest.raises(RuntimeError, match="received before"):
        mp.reductions.reduction.ForkingPickler.loads(data)


def send_and_die(connection):
    _shared.leave_at_once()
    connection.send(adjoin.ones(10))
    os._exit(0)


def test_a_sender_that_died_is_named():
    here, there = mp.Pipe()
    process = run(send_and_die, there)
    process.join(30)
    with pytest.raises(RuntimeError, match=rf"pid {process.pid}.*ended before the tensor was received"):
        here.recv()


def send_and_end(queue):
    queue.put(adjoin.ones(10))


def test_a_sender_that_ends_waits_for_its_message():
    queue = mp.Queue()
    process = run(send_and_end, queue)
    time.sleep(0.3)
    assert queue.get(timeout=30).sum().item() == 10
    assert ended(process)


def test_nothing_grows():
    inbox, outbox = mp.Queue(), mp.Queue()
    process = run(echo, inbox, outbox)
    seen = []
    for _ in range(200):
        inbox.put(adjoin.ones(100_000))
        outbox.get(timeout=60)
        seen.append((descriptors(), sum(segment.resident for segment in _shared._segments.values())))
    assert len(set(seen[20:])) == 1, seen
    inbox.put(None)
    ended(process)
    gc.collect()
    _shared.trim()
    left = sum(segment.resident for segment in _shared._arena.segments)
    assert left < 4 << 20, left


def hold(queue, ready):
    kept = queue.get()
    ready.put(kept[0].item())
    time.sleep(60)


def test_what_a_killed_process_held_comes_back():
    queue, ready = mp.Queue(), mp.Queue()
    process = run(hold, queue, ready)
    x = adjoin.ones(3_000_000)
    queue.put(x)
    assert ready.get(timeout=30) == 1
    segment, offset = _shared.block_of(x).segment, _shared.block_of(x).offset
    del x
    assert not segment.is_free(offset)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    segment.reap()
    assert segment.is_free(offset)


def test_what_a_dead_process_held_is_found_behind_a_trimmed_block():
    """The first block's header began a page, and went with its bytes: nobody found the blocks behind it."""
    arena = Arena({})
    first, second = arena.block(100_000), arena.block(10)
    segment, offset = second.segment, second.offset
    assert first.offset % 4096 == 0
    del first
    arena.trim()
    slot = segment.before_fork([second])
    child = os.fork()
    if not child:
        segment.after_fork(slot)
        os._exit(0)
    os.waitpid(child, 0)
    del second
    assert not segment.is_free(offset)
    assert segment.reap() == 1 and segment.is_free(offset)


def answers(connection, seed):
    """Writes v + 1 over what comes as v, sends it back or something new, and keeps some of it."""
    chance, kept = random.Random(seed), []
    while True:
        tensor, value = connection.recv()
        assert (tensor == value).all().item()
        tensor.fill_(value + 1)
        kept = [*kept, (tensor, value + 1)][-5:]
        assert all((t == v).all().item() for t, v in kept)
        fresh = adjoin.full((chance.randrange(1, 5000),), value + 1)
        connection.send((chance.choice((tensor, fresh)), value + 1))


def test_no_bytes_are_mixed_up_when_processes_die():
    chance, kept, value, kills = random.Random(3), [], 0.0, 0
    context = mp.get_context("fork")

    def start():
        here, there = context.Pipe()
        process = run(answers, there, chance.random())
        there.close()
        return process, here

    others = [start() for _ in range(3)]
    end = time.monotonic() + (20 if os.environ.get("ADJOIN_TEST_FULL") == "1" else 1.5)
    while time.monotonic() < end:
        i, value = chance.randrange(3), value + 2
        process, connection = others[i]
        sent = adjoin.full((int(10 ** chance.uniform(0, 5)),), value)
        try:
            connection.send((sent, value))
            if chance.random() < 0.03:
                process.kill()
                kills += 1
            kept = [*kept, connection.recv()][-8:]
            assert (sent == value + 1).all().item()
        except (EOFError, OSError, _shared.SenderEndedError):
            process.join()
            others[i] = start()
        assert all((t == v).all().item() for t, v in kept)
    assert kills > 0
    for process, connection in others:
        process.kill()
        process.join()
        connection.close()
    _shared.trim()
    assert len(_shared._arena.used) < 2 * kills + 50  # a message that nobody took stays, what the dead held does not


def look(x, queue):
    queue.put((x.is_shared(), x.sum().item()))
    x.add_(1)


def test_a_fork_holds_what_its_parent_shares():
    x = adjoin.ones(1000).share_memory_()
    queue = mp.Queue()
    process = run(look, x, queue)
    assert queue.get(timeout=30) == (True, 1000)
    assert ended(process) and x.sum().item() == 2000


def fails(index):
    if index == 1:
        raise ValueError("the second one")
    time.sleep(30)


def dies(index):
    os.kill(os.getpid(), signal.SIGKILL) if index == 0 else time.sleep(30)


def adds(index, x):
    x[index] += index + 1


def test_spawn():
    x = adjoin.zeros(3)
    mp.spawn(adds, (x,), nprocs=3)
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(mp.ProcessRaisedException, match=r"(?s)Process 1 terminated.*fails.*ValueError: the second one"):
        mp.start_processes(fails, nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGKILL") as caught:
        mp.start_processes(dies, nprocs=2, start_method="fork")
    assert caught.value.exit_code == -9 and caught.value.signal_name == "SIGKILL"


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="none of"):
        mp.set_sharing_strategy("pigeons")


def network():
    adjoin.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def data():
    adjoin.manual_seed(1)
    x = adjoin.randn(256, 8)
    return TensorDataset(x, (x[:, :1] - x[:, 1:2]).sin())


def loss_of(model):
    with adjoin.no_grad():
        x, y = data().tensors
        return nn.functional.mse_loss(model(x), y).item()


def hogwild(model, optimizer, seed):
    adjoin.manual_seed(seed)
    adjoin.set_num_threads(1)
    for _ in range(10):
        for x, y in DataLoader(data(), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_hogwild(kind, method):
    model = network()
    model.share_memory()
    if kind == "SGD":
        optimizer = adjoin.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    else:
        optimizer = adjoin.optim.Adam(model.parameters(), lr=0.01)
    optimizer.share_memory()
    before = loss_of(model)
    processes = [run(hogwild, model, optimizer, seed, method=method) for seed in (1, 2)]
    assert all(ended(process) for process in processes)
    assert loss_of(model) < before / 3
    if kind == "Adam":
        steps = {state["step"].item() for state in optimizer.state.values()}
        assert min(steps) > 160, "one process alone takes 160 steps"


def _slowly(i):
    time.sleep(0.01)


def test_a_server_of_forks_is_asked_for_all_at_once(monkeypatch):
    import threading

    spawn = importlib.import_module("adjoin.multiprocessing.spawn")  # the package has a function of that name
    monkeypatch.setenv(spawn.ENV_VAR_PARALLEL_START, "1")
    names = set()

    class Started:
        def __init__(self, target, args, daemon):
            self.sentinel, self.exitcode, self.pid = object(), 0, args[1]

        def start(self):
            names.add(threading.current_thread().name)
            barrier.wait(20)  # all must be in here together

    barrier = threading.Barrier(3)
    monkeypatch.setattr(spawn.multiprocessing, "get_context", lambda method: type("Context", (), {"Process": Started}))
    together = spawn.start_processes(_slowly, nprocs=3, join=False, start_method="forkserver")
    assert len(names) == 3 and together.pids() == [0, 1, 2]


def test_threads_have_names_and_hooks_that_stay_are_told():
    adjoin.multiprocessing._set_thread_name("my thread")
    assert adjoin.multiprocessing._get_thread_name() == "my thread"
    from adjoin.utils.hooks import unserializable_hook, warn_if_has_hooks

    x = adjoin.zeros(2, requires_grad=True)
    x.register_hook(unserializable_hook(lambda g: g))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_has_hooks(x)

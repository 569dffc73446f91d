"""tests/plugins/paper_card_test.py: the plugin files cuda and hip as they ship, on a GPU's runtime without a GPU: rows, streams,
events, graphs, two cards, and every fault that can be ordered (paper_card/ is the runtime)."""

import os
import random
import shutil
import signal
import subprocess
import sys

import pytest
from paper import PLUGINDIR, VENDORS, either, run, start, surroundings

from abi_tools import adjoin, clean_environment

FULL = os.environ.get("ADJOIN_TEST_FULL") == "1"
SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))


@either
def test_the_cards_are_found(name, card):
    lines = adjoin("plugins", "why", name, **surroundings(name, card)).stdout.splitlines()
    lines = [line.strip() for line in lines]
    assert f"device {name}: 2 devices" in lines
    arch = {"cuda": "sm_90", "hip": ""}[name]
    assert f"device {name}:1: card of paper, {arch}, 1024 MiB" in lines
    library = {"cuda": "CUDA driver 13.0", "hip": "HIP"}[name]
    assert f"library {library}: {card}" in lines


@either
def test_no_card_is_told(name, card):
    why = adjoin("plugins", "why", name, **surroundings(name, card, "devices=0")).stdout
    maker = {"cuda": "CUDA says CUDA_ERROR_NO_DEVICE", "hip": "HIP says hipError_NO_DEVICE"}[name]
    assert f"device {name}: no device, because {maker} (100): no card of paper is here" in why


@either
def test_what_a_runtime_lacks_is_told(name, tmp_path):
    source, library = tmp_path / "few.c", tmp_path / "libfew.so"
    source.write_text("int cuInit(unsigned f) { return 0; }\nint hipGetDeviceCount(int* n) { *n = 1; return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    why = adjoin("plugins", "why", name, **surroundings(name, library)).stdout
    prefix = {"cuda": "cu", "hip": "hip"}[name]
    assert f"{library}: it has no {prefix}" in why
    assert f"device {name}: no device, because " in why


def test_rows_conform(card):
    """Values and gradients beside the reference: a tenth of the rows, chosen by the seed, each vendor its own; all with --full."""
    if not VENDORS:
        pytest.skip("NOT TESTED: neither plugin is built")
    names = run("print(*sorted(adjoin._C.op_names()))", VENDORS[0], card).split()
    jobs = {}
    for vendor in VENDORS:
        some = random.Random(f"{SEED} {vendor}").sample(names, len(names) // 10)
        ops = [] if FULL else [word for op in some for word in ("--op", op)]
        env = clean_environment(**surroundings(vendor, card))
        command = [shutil.which("adjoin"), "conform", PLUGINDIR / f"libaj_{vendor}.so", "--mode", "all", *ops]
        jobs[vendor] = subprocess.Popen(
            [*command, "--seed", str(SEED), "--largest", "5000"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
        )  # fmt: skip
    for vendor, job in jobs.items():
        out = job.communicate(timeout=7200 if FULL else 900)[0]
        assert job.returncode == 0, f"{vendor}, seed {SEED}:\n{out[-4000:]}"
        verdict = out.splitlines()[-1]
        assert "no fault found in what was checked" in verdict or (FULL and "conforms" in verdict), verdict


@either
def test_streams_and_events(name, card):
    program = """
import time
x = adjoin.ones(100, device=gpu)
gpus.synchronize()
order("hang=1")
side, begin, end = gpus.Stream(), gpus.Event(enable_timing=True), gpus.Event(enable_timing=True)
with gpus.stream(side):
    begin.record()
    y = x + 1
    end.record()
z = x * 2  # the other stream does not wait
print(end.query(), side.query())
gpus.current_stream().wait_event(end)
w = y + z
while not begin.query():
    time.sleep(0.001)
time.sleep(0.02)
order("hang=0")
end.synchronize()
print(end.query(), begin.elapsed_time(end) >= 20)
print(w.sum().item(), side.query())
"""
    assert run(program, name, card) == "False False\nTrue True\n400.0 True\n"


@either
def test_graphs(name, card):
    program = """
x = adjoin.ones(4, 4, device=gpu)
graph, side = Graph(), gpus.Stream()
graph.capture_begin()
y = x @ x + 1
went = gpus.Event()
went.record()
with gpus.stream(side):
    side.wait_event(went)
    z = y * 2
    back = gpus.Event()
    back.record()
gpus.current_stream().wait_event(back)
w = (z + y).sum()
graph.capture_end()
for value in (1, 2, 3):
    x.fill_(value)
    graph.replay()
    print(w.item())
"""
    assert run(program, name, card) == "".join(f"{16 * 3 * (4 * v * v + 1):.1f}\n" for v in (1, 2, 3))


@either
def test_a_wait_breaks_a_capture(name, card):
    program = """
x = adjoin.ones(4, device=gpu)
graph = Graph()
graph.capture_begin()
print(told((x + 1).sum().item))
print(told(graph.capture_end))
print((x + 1).sum().item())
"""
    lines = run(program, name, card).splitlines()
    assert lines[0].startswith("RuntimeError: ") and "(900)" in lines[0], lines
    assert "(901)" in lines[1] and lines[2] == "8.0", lines


@either
def test_a_number_waits_for_its_own_stream(name, card):
    """item() and host copies waited for the whole card."""
    program = """
import threading
x = adjoin.ones(4, device=gpu)
x.sum().item()
order("hang=1")
with gpus.stream(gpus.Stream()):
    y = x + 1
gave_up = []
rescue = threading.Timer(60, lambda: (gave_up.append(1), order("hang=0")))
rescue.start()
print((x * 2).sum().item(), (x * 3).cpu().tolist(), adjoin.zeros(4).to(gpu).device.type == gpu, len(gave_up))
rescue.cancel()
threading.Timer(0.1, lambda: order("hang=0")).start()  # who waits for all lets other threads go on
gpus.synchronize()
print(y.sum().item())
"""
    assert run(program, name, card) == "8.0 [3.0, 3.0, 3.0, 3.0] True 0\n8.0\n"


@either
def test_two_cards(name, card):
    program = """
x = adjoin.arange(6, dtype=adjoin.float32).reshape(2, 3).to(f"{gpu}:1")
pinned = adjoin.ones(4).pin_memory(gpu)
print(count("contexts"), x.device, pinned.is_pinned())
y = x.t().to(f"{gpu}:0")
print(y.device, y.tolist(), (y + 1).to(f"{gpu}:1").sum().item(), x.sum().item())
"""
    contexts = {"cuda": 1, "hip": 0}[name]  # HIP's are its own affair
    assert run(program, name, card) == (
        f"{contexts} {name}:1 True\n{name}:0 [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 21.0 15.0\n"
    )


@either
def test_memory_is_lent_to_another_process(name, card):
    program = """
import gc
import adjoin.multiprocessing as mp
from adjoin import _lent
def child(receive, send):
    x, y = receive.get(timeout=60), receive.get(timeout=60)
    x.mul_(2)
    y.add_(100)
    gpus.synchronize()
    send.put(x)
    receive.get(timeout=60)
    send.put((x + y).tolist())
if __name__ == "__main__":
    mp.set_start_method("spawn")
    send, receive = mp.Queue(), mp.Queue()
    process = mp.Process(target=child, args=(send, receive))
    process.start()
    x, y = adjoin.arange(4.0, device=gpu), adjoin.ones(5, device=gpu)[1:]  # pieces of one allocation
    send.put(x), send.put(y)
    back = receive.get(timeout=60)
    print(back.data_ptr() == x.data_ptr(), x.tolist(), y.tolist())
    address = x.data_ptr()
    del x, back
    gc.collect(), _lent.collect()
    print(address in [adjoin.zeros(4, device=gpu).data_ptr() for _ in range(4)])
    send.put("go on")
    print(receive.get(timeout=60))
    process.join()
    gpus.ipc_collect()
    print(process.exitcode, len(_lent._lent))
"""
    assert run(program, name, card) == (
        "True [0.0, 2.0, 4.0, 6.0] [101.0, 101.0, 101.0, 101.0]\nFalse\n[101.0, 103.0, 105.0, 107.0]\n0 0\n"
    )


@either
def test_refused_memory_is_asked_for_again(name, card):
    program = """
x = adjoin.ones(1 << 20, device=gpu)
del x
order("fail_alloc=1")
y = adjoin.ones(1 << 21, device=gpu)  # what is cached goes back first
print(y[:4].sum().item(), count("refused"))
order("full=1")
print(told(lambda: adjoin.ones(1 << 22, device=gpu)))
order("full=0")
print(adjoin.ones(1 << 22, device=gpu)[:4].sum().item())
"""
    lines = run(program, name, card).splitlines()
    assert lines[0] == "4.0 1" and lines[2] == "4.0"
    assert lines[1].startswith(f"OutOfMemoryError: ones: {name}:0: out of memory: asked for 16.8 MB"), lines[1]


LOST = """
def plus_one(x):
    return x + 1
x = adjoin.ones(4, device=gpu)
plus_one(x).sum().item()
"""


@either
def test_a_device_that_is_lost_at_once(name, card):
    lines = run(LOST + 'order("lost=700")\nprint(told(plus_one, x))\nprint(told(plus_one, x))', name, card).splitlines()
    for line in lines:
        assert "ILLEGAL_ADDRESS (700)" in line and "the device is lost to this process" in line


@either
def test_an_answer_to_a_call_is_no_lost_device(name, card):
    """It was said of 708 and 711 to 713."""
    program = (
        LOST
        + 'for code in (701, 703, 708, 711, 712, 713, 702, 710):\n order(f"wrong={code}")\n print(told(plus_one, x))\nprint(plus_one(x).sum().item())'
    )
    lines = run(program, name, card).splitlines()
    assert ["the device is lost" in line for line in lines] == [False] * 6 + [True] * 2 + [False], lines
    assert all("says" in line for line in lines[:8]) and lines[8] == "8.0"


@either
def test_a_kernel_that_fails_late_is_told_with_op_and_line(name, card):
    lines = run(
        LOST + 'order("fail_kernel=1")\ny = plus_one(x)\nprint(told(gpus.synchronize))', name, card
    ).splitlines()
    assert "LAUNCH_FAILED (719)" in lines[0]
    assert "the ops queued last are add by " in lines[0] and "in plus_one" in lines[0]


@either
def test_a_bad_index_is_told_with_op_and_line(name, card):
    program = """
def pick(x, i):
    return x.index_select(0, i)
x = adjoin.ones(4, device=gpu)
pick(x, adjoin.tensor([9], device=gpu))
print(told(gpus.synchronize))
print(told(gpus.synchronize), x.sum().item())
"""
    lines = run(program, name, card).splitlines()
    assert lines[0].startswith(
        "OutOfRangeError: index_select: index 9 is out of range for dimension 0 with size 4; queued by"
    )
    assert lines[0].endswith("in pick") and lines[1] == "None 4.0"


@either
def test_kernels_without_machine_code_are_told(name, card):
    program = "print(told(lambda: adjoin.ones(4, device=gpu) + 1))"
    line = run(program, name, card, "no_image=1 version=12040")
    assert "NO_BINARY_FOR_GPU (209)" in line and "the plugin's kernels were compiled for " in line
    if name == "cuda":
        assert "; the driver serves up to 12.4: install a newer driver)" in line


@either
def test_a_stream_that_hangs_is_told_and_can_be_left(name, card):
    program = """
x = adjoin.ones(4, device=gpu)
print(x.sum().item())
order("hang=1")
y = x + 1
print("waits", flush=True)
try:
    gpus.synchronize()
except KeyboardInterrupt:
    print("left")
order("hang=0")
print(y.sum().item())
"""
    job = start(program, name, card, ADJOIN_WATCHDOG=1)
    assert [job.stdout.readline() for _ in range(2)] == ["4.0\n", "waits\n"]
    told = job.stderr.readline()
    assert f"adjoin: {name}:0: plugin '{name}': what is queued there has been waited for for 1 s" in told
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    assert out == "left\n8.0\n"


@either
def test_launches_are_counted(name, card):
    program = """
x, y = adjoin.ones(64, 64, device=gpu), adjoin.ones(64, 64, device=gpu)
def launches(f):
    f()
    before = count("launches") + count("products")
    f()
    return count("launches") + count("products") - before
print(launches(lambda: x + y), launches(lambda: x @ y), launches(lambda: x.softmax(1)), launches(x.t))
"""
    assert run(program, name, card, "idle=1") == "1 1 1 0\n"


# Kernels of ours in a step, besides the library's products: the most there may be, and the goal. What the goal does not reach may
# only become less.
STEPS = """
from adjoin import nn
from adjoin.nn import functional as F
def both_ways(net, x, loss):
    def step():
        net.zero_grad()
        x.grad = None
        loss(net(x)).backward()
    return step
def mlp():
    net, x = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(gpu), adjoin.ones(8, 64, device=gpu)
    optimizer, classes = adjoin.optim.SGD(net.parameters(), lr=0.1), adjoin.zeros(8, dtype=adjoin.int64, device=gpu)
    way = both_ways(net, x, lambda y: F.cross_entropy(y, classes))
    return lambda: (way(), optimizer.step())
def encoder():
    net = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).to(gpu)
    return both_ways(net, adjoin.ones(2, 8, 32, device=gpu, requires_grad=True), lambda y: y.sum())
def recurrent(net):
    return both_ways(net.to(gpu), adjoin.ones(50, 2, 16, device=gpu, requires_grad=True), lambda y: y[0].sum())
def lstm(): return recurrent(nn.LSTM(16, 16))
def gru(): return recurrent(nn.GRU(16, 16))
def rnn(): return recurrent(nn.RNN(16, 16))
def weights():
    many = [adjoin.ones(5, device=gpu, requires_grad=True) for _ in range(150)]
    for w in many:
        w.grad = adjoin.ones(5, device=gpu)
    return many
def adam(): return adjoin.optim.Adam(weights()).step
def capturable(): return adjoin.optim.AdamW(weights(), amsgrad=True, capturable=True).step
def sgd(): return adjoin.optim.SGD(weights()).step
def momentum(): return adjoin.optim.SGD(weights(), lr=0.1, momentum=0.9).step
def clip():
    many = weights()
    return lambda: nn.utils.clip_grad_norm_(many, 1.0)
def foreach():
    many, others, factor = [w.detach() for w in weights()], [w.grad for w in weights()], adjoin.ones((), device=gpu)
    return lambda: (adjoin._foreach_add_(many, others, alpha=2), adjoin._foreach_mul_(many, factor))
words = adjoin.ones(50_257, device=gpu)
def topk(): return lambda: words.topk(50)
def sort(): return lambda: words.sort()
def long_sort():
    line = adjoin.ones(10**6, dtype=adjoin.int64, device=gpu)
    return lambda: line.sort()
def cumsum(): return lambda: adjoin.ones(10**6, device=gpu).cumsum(0)
def scatter(): return lambda: words.scatter_add(0, adjoin.zeros(50_257, dtype=adjoin.int64, device=gpu), words)
def batch_norm():
    net, x = nn.BatchNorm2d(8).to(gpu), adjoin.ones(8, 8, 64, 64, device=gpu, requires_grad=True)
    return both_ways(net, x, lambda y: y.sum())
def shared_heads():
    q, k = adjoin.ones(2, 8, 16, 32, device=gpu), adjoin.ones(2, 2, 16, 32, device=gpu)
    return lambda: F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
for make in (mlp, encoder, lstm, gru, rnn, adam, capturable, sgd, momentum, clip, foreach, topk, sort, long_sort, cumsum, scatter, batch_norm,
             shared_heads):
    step = make()
    step(), step()  # states are made in the first
    before = count("launches"), count("products")
    step()
    print(make.__name__, count("launches") - before[0], count("products") - before[1])
"""
LAUNCHES = {  # the most, the goal
    "mlp": (13, 16),
    "encoder": (31, 35),
    "lstm": (13, 20),  # of 50 steps
    "gru": (11, 20),
    "rnn": (11, 20),
    "adam": (2, 3),  # of 150 tensors, as the next ones
    "capturable": (3, 3),  # its steps are counted on the card
    "sgd": (2, 3),
    "momentum": (2, 3),
    "clip": (6, 6),
    "foreach": (3, 3),
    "topk": (4, 4),  # 50 of 50,257
    "sort": (7, 7),  # of 50,257: a pass a byte, and what they begin and end with
    "long_sort": (11, 11),  # of 10^6 of 8 bytes
    "cumsum": (4, 4),  # of 10^6, and making them
    "scatter": (12, 12),  # 50,257 elements to one place
    "batch_norm": (11, 11),
    "shared_heads": (1, 1),
}
PRODUCTS = {"mlp": 5, "encoder": 12, "lstm": 4, "gru": 4, "rnn": 4}


@either
def test_a_step_takes_no_more_launches_than_before(name, card):
    lines = run(STEPS, name, card, "idle=1").splitlines()
    assert [line.split()[0] for line in lines] == list(LAUNCHES)
    for line in lines:
        step, launches, products = line.split()
        most, goal = LAUNCHES[step]
        assert 0 < int(launches) <= most, f"{line}: at most {most} before; the goal is {goal}"
        assert int(products) <= PRODUCTS.get(step, 0), f"{line}: at most {PRODUCTS.get(step, 0)} products before"


def test_the_card_refuses_what_a_card_refuses(card):
    program = """
import ctypes, sys
cu = ctypes.CDLL(sys.argv[1])
p, q, context = (ctypes.c_void_p() for _ in range(3))
at = ctypes.byref
assert cu.cuMemAlloc_v2(at(p), ctypes.c_size_t(8)) == 201  # no context
assert cu.cuCtxGetCurrent(at(context)) == 3  # not started
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(at(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
assert cu.cuMemAlloc_v2(at(p), ctypes.c_size_t(1000)) == 0 and p.value % 256 == 0
assert cu.cuMemAlloc_v2(at(q), ctypes.c_size_t(1 << 40)) == 2
assert cu.cuMemsetD8Async(p, 0, ctypes.c_size_t(1000), None) == 0
assert cu.cuMemsetD8Async(p, 0, ctypes.c_size_t(1001), None) == 1  # over the end
assert cu.cuMemFree_v2(p) == 0 and cu.cuMemFree_v2(p) == 1
assert cu.cuMemsetD8Async(p, 0, ctypes.c_size_t(1000), None) == 1  # given back
"""
    subprocess.run([sys.executable, "-c", program, card], check=True, env=clean_environment())


@either
def test_what_a_graph_finds_is_told_with_its_own_line(name, card):
    """However many calls that could have found something came between."""
    program = """
def captured(x, i):
    return x.index_select(0, i)
def later(x, i):
    return x.index_select(0, i)
x, i = adjoin.ones(4, device=gpu), adjoin.tensor([1], device=gpu)
graph = Graph()
graph.capture_begin()
captured(x, i)
graph.capture_end()
for _ in range(600):
    later(x, i)
gpus.synchronize()
for _ in range(2):
    i.fill_(9)
    graph.replay()
    print(told(gpus.synchronize))
    i.fill_(2)
    graph.replay()
    print(told(gpus.synchronize))
"""
    lines = run(program, name, card).splitlines()
    assert [line.startswith("OutOfRangeError: index_select: index 9") for line in lines] == [True, False] * 2, lines
    assert lines[0].endswith("in captured") and lines[2].endswith("in captured") and lines[1] == lines[3] == "None"


@either
def test_memory_of_a_graph_stays_when_the_card_is_full(name, card):
    program = """
x = adjoin.ones(1 << 14, device=gpu)
graph = Graph()
graph.capture_begin()
z = ((x + 1) * (x + 2)).sum()
graph.capture_end()
kept = []
full = lambda: kept.append(adjoin.empty(1 << 20, device=gpu))
while not (why := told(full)):
    pass
print("out of memory" in why, len(kept) > 4)
graph.replay()
print(z.item())
"""
    assert run(program, name, card, f"memory={64 << 20}") == f"True True\n{6 << 14:.1f}\n"


@either
def test_who_waits_lets_other_threads_go_on(name, card):
    program = """
import threading, time
x = adjoin.ones(4, device=gpu)
print(x.sum().item())
def help():
    time.sleep(0.1)
    order("hang=0")
for wait in (lambda y: y.sum().item(), lambda y: y.cpu()[0].item(), lambda y: gpus.synchronize()):
    order("hang=1")
    helper = threading.Thread(target=help)
    helper.start()
    print(wait(x + 1))
    helper.join()
"""
    assert run(program, name, card) == "4.0\n8.0\n2.0\nNone\n"


DRAWS = """
def numbers(x, own):
    kept = adjoin.nn.functional.dropout(x, 0.4)
    halves, head = x.to(adjoin.float16), x.unsqueeze(0)
    attend = adjoin.nn.functional.scaled_dot_product_attention
    return [
        kept, attend(head, head, head, dropout_p=0.4), adjoin.rand(7, device=gpu), adjoin.randn(5, 3, device=gpu, dtype=adjoin.float64), x.clone().bernoulli_(0.3),
        adjoin.randint(0, 1 << 40, (9,), device=gpu), halves.normal_(), adjoin.rand(3, device=gpu, generator=own),
    ]
x, own = adjoin.ones(6, 5, device=gpu), adjoin.Generator(gpu)
lists = lambda tensors: [t.tolist() for t in tensors]
"""


@either
def test_each_replay_draws_what_eager_calls_would(name, card):
    program = (
        DRAWS
        + """
gpus.manual_seed(5), own.manual_seed(6)
eager = [lists(numbers(x, own)) for _ in range(3)]
after = gpus.get_rng_state().tolist(), own.get_state().tolist()
print(all(eager[0][i] != eager[1][i] != eager[2][i] for i in range(8)))
graph = Graph()
gpus.manual_seed(5), own.manual_seed(6)
graph.capture_begin()
drawn = numbers(x, own)
graph.capture_end()
for round in range(2):
    replayed = []
    for _ in range(3):
        graph.replay()
        replayed.append(lists(drawn))
    print(replayed == eager, after == (gpus.get_rng_state().tolist(), own.get_state().tolist()))
    gpus.manual_seed(5), own.manual_seed(6)
"""
    )
    assert run(program, name, card) == "True\nTrue True\nTrue True\n"


@either
def test_graphs_and_eager_calls_share_a_generator(name, card):
    program = (
        DRAWS
        + """
def captured(f):
    graph, side = Graph(), gpus.Stream()
    graph.capture_begin()
    out = [f()]
    went = gpus.Event()
    went.record()
    with gpus.stream(side):  # part of the capture
        side.wait_event(went)
        out.append(f())
        back = gpus.Event()
        back.record()
    gpus.current_stream().wait_event(back)
    graph.capture_end()
    return graph, out
few, many = lambda: adjoin.rand(3, device=gpu), lambda: adjoin.randn(50, device=gpu)
(one, a), (two, b) = captured(few), captured(many)
gpus.manual_seed(1)
got = []
for graph, out in ((one, a), (two, b), (None, None), (one, a)):
    graph.replay() if graph else None
    got.append(lists(out or [many()]))
gpus.manual_seed(1)
print(got == [lists([few(), few()]), lists([many(), many()]), lists([many()]), lists([few(), few()])])
with gpus.stream(gpus.Stream()):  # in the backward pass the mask is that of the forward pass
    x.requires_grad_()
    graph = Graph()
    graph.capture_begin()
    y = adjoin.nn.functional.dropout(x, 0.5)
    (slope,) = adjoin.autograd.grad(y.sum(), x, retain_graph=True)
    graph.capture_end()
for _ in range(2):
    graph.replay()
    print(slope.tolist() == y.tolist() == adjoin.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist())
del graph
adjoin.autograd.grad(y.sum(), x)
gpus.synchronize()
"""
    )
    assert run(program, name, card) == "True\nTrue\nTrue\n"


TRAINING = """
def begin(make, **settings):
    weights = [(adjoin.arange(6.0) / 7 - 0.4).reshape(2, 3).to(gpu).requires_grad_(), adjoin.ones(4, device=gpu, requires_grad=True)]
    return weights, make(weights, **settings)
def go(weights, optimizer):
    optimizer.zero_grad()
    sum((w * w).sum() + w.sin().sum() for w in weights).backward()
    optimizer.step()
"""


@either
def test_replayed_steps_count(name, card):
    """Step counts of the optimizers that are capturable: four replays are four eager steps."""
    program = (
        TRAINING
        + """
o = adjoin.optim
ways = [
    (o.Adam, {}), (o.Adam, {"amsgrad": True, "weight_decay": 0.1}), (o.AdamW, {}), (o.Adamax, {}), (o.NAdam, {}), (o.RAdam, {}),
    (o.RAdam, {"betas": (0.9, 0.7)}), (o.ASGD, {"t0": 2, "lambd": 0.1}), (o.Rprop, {}), (o.RMSprop, {"centered": True, "momentum": 0.5}),
    (o.Adadelta, {"lr": 2.0}), (o.SGD, {"lr": 0.1, "momentum": 0.9}),
]
for make, settings in ways:
    wanted, eager = begin(make, **settings)
    for _ in range(6):
        go(wanted, eager)
    capturable = {} if make is o.SGD else {"capturable": True}
    weights, optimizer = begin(make, **settings, **capturable)
    for _ in range(2):
        go(weights, optimizer)
    graph = Graph()
    graph.capture_begin()
    go(weights, optimizer)
    graph.capture_end()
    for _ in range(4):
        graph.replay()
    for a, b in zip(weights, wanted):
        adjoin.testing.assert_close(a, b, rtol=2e-6, atol=1e-7)
    steps = [s["step"].item() for s in optimizer.state.values() if "step" in s]
    print(make.__name__, steps)
"""
    )
    names = "Adam Adam AdamW Adamax NAdam RAdam RAdam ASGD Rprop RMSprop Adadelta".split()
    assert run(program, name, card) == "".join(f"{each} [6.0, 6.0]\n" for each in names) + "SGD []\n"


@either
def test_a_step_that_would_not_count_is_told(name, card):
    program = (
        TRAINING
        + """
def captured(weights, optimizer):
    graph = Graph()
    graph.capture_begin()
    why = told(go, weights, optimizer)
    graph.capture_end()
    return graph, why
for make in (adjoin.optim.AdamW, adjoin.optim.RMSprop):
    weights, optimizer = begin(make)
    go(weights, optimizer)
    print(captured(weights, optimizer)[1])
weights, optimizer = begin(adjoin.optim.Adam, capturable=True)
print(captured(weights, optimizer)[1], len(optimizer.state))
go(weights, optimizer)
state = optimizer.state_dict()
print({s["step"].device.type for s in state["state"].values()} == {gpu})
other = adjoin.optim.Adam(weights)
go(weights, other)
optimizer.load_state_dict({**other.state_dict(), "param_groups": state["param_groups"]})
print(all(s["step"].device.type == gpu for s in optimizer.state.values()))
rate = adjoin.tensor(0.1, device=gpu)  # a graph reads it at each replay
weights, optimizer = begin(adjoin.optim.Adam, capturable=True, lr=rate)
go(weights, optimizer)
graph, why = captured(weights, optimizer)
before = weights[0].tolist()
rate.fill_(0)
graph.replay()
print(why, weights[0].tolist() == before)
lists = [[weights[1].detach()], [weights[1].grad], [weights[1] * 0], [weights[1] * 0], [], [adjoin.zeros(())]]
lists[2:4] = [[adjoin.zeros(4, device=gpu)] for _ in range(2)]
numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "eps": 1e-8, "weight_decay": 0.0, "decoupled": False, "maximize": False}
graph = Graph()
graph.capture_begin()
with adjoin.no_grad():
    print(told(lambda: adjoin._C.find_op("fused_adam_")(*lists, **numbers)))
"""
    )
    lines = run(program, name, card).splitlines()
    for line, kind in zip(lines, ("AdamW", "RMSprop"), strict=False):
        assert line == (
            f"RuntimeError: {kind}.step: a graph is captured on {name}:0, and its replays would not count their steps; "
            "make the optimizer with capturable=True"
        )
    assert lines[2] == (
        "RuntimeError: Adam.step: its state was begun within a capture, and each replay would begin it again; "
        "take a step before the capture 0"
    )
    assert lines[3:6] == ["True", "True", "None True"]
    assert "the steps are counted on the host" in lines[6]


@either
def test_ops_of_known_shapes_are_captured(name, card):
    program = """
one_hot = lambda i: adjoin.nn.functional.one_hot(i, 5)
i, w = adjoin.tensor([1, 3], device=gpu), adjoin.tensor([[0.0, 1, 0, 0], [0, 0, 0, 2]], device=gpu)
adjoin.multinomial(w, 1), one_hot(i)
graph = Graph()
graph.capture_begin()
hot, few, many = one_hot(i), adjoin.multinomial(w, 1), adjoin.multinomial(w, 3, replacement=True)
drawn = adjoin.bernoulli(w.clamp(max=1))
graph.capture_end()
i.copy_(adjoin.tensor([4, 0]))
w.copy_(w.flip(0))
graph.replay()
print(hot.argmax(1).tolist(), few.tolist(), many.tolist(), adjoin.equal(drawn, w.clamp(max=1)))
for mode in ("bilinear", "nearest", "bicubic"):
    x = adjoin.arange(24.0).reshape(1, 1, 4, 6).to(gpu)
    resized = lambda: adjoin.nn.functional.interpolate(x, size=(7, 9), mode=mode)
    graph = Graph()
    graph.capture_begin()
    y = resized()
    z = resized() + adjoin.nn.functional.adaptive_avg_pool2d(x, (3, 4)).sum()
    graph.capture_end()
    x += 3
    graph.replay()
    assert adjoin.equal(y, resized()), mode
waits = count("waits")
one_hot(i)
print(count("waits") - waits, told(lambda: one_hot(i + 1).tolist()))
"""
    lines = run(program, name, card).splitlines()
    assert lines[0] == "[4, 0] [[3], [1]] [[3, 3, 3], [1, 1, 1]] True"
    assert lines[1].startswith("0 OutOfRangeError: scatter: index 5 is out of range for dimension 1 with size 5")


@either
def test_what_is_in_the_values_is_found_at_each_replay(name, card):
    """Elements are others when a graph is launched: ends, places and counts are those of then."""
    program = """
x, mask = adjoin.tensor([[4.0, 1, 3, 0], [2, 2, 5, 1]]), adjoin.tensor([[True, False, True, False], [False, False, False, True]])
source, target = adjoin.arange(8.0), adjoin.tensor([[1, -1, 0, 0], [2, 3, -1, 1]])
calls = {
    "quantile": lambda x, *_: x.quantile(parts[x.device.type], 1),
    "nanquantile": lambda x, *_: x.nanquantile(0.4),
    "nanmedian": lambda x, *_: x.nanmedian(),
    "histc": lambda x, *_: x.histc(5),
    "histogram": lambda x, *_: adjoin.cat(list(adjoin.histogram(x, 3))),
    "nonzero_static": lambda x, *_: adjoin.nonzero_static(x, size=7, fill_value=-2),
    "masked_scatter": lambda x, mask, source, _: x.masked_scatter(mask, source),
    "margins": lambda x, mask, source, target: adjoin.nn.functional.multilabel_margin_loss(x, target),
    "pdist": lambda x, *_: adjoin.pdist(x),
    "pdist of seven": lambda x, *_: adjoin.pdist(x.reshape(8, 1)[1:], 1.0),
}
parts = {device: adjoin.tensor([0.3, 1.0], device=device) for device in ("cpu", gpu)}
there = [t.to(gpu) for t in (x, mask, source, target)]
graphs = {}
for what, f in calls.items():
    f(*there)
    graph = Graph()
    graph.capture_begin()
    graphs[what] = graph, f(*there)
    graph.capture_end()
others = [x * -3 + 1, ~mask, source - 9, adjoin.tensor([[3, 2, 1, -1], [-1, 3, 0, 1]])]
others[0][1, 2] = float("nan")
for round, given in enumerate(([x, mask, source, target], others)):
    for to, t in zip(there, given):
        to.copy_(t)
    for what, (graph, got) in graphs.items():
        if round and what == "histc":  # ends are finite from here on
            there[0].copy_(given[0].nan_to_num(-8.0))
            given = [given[0].nan_to_num(-8.0), *given[1:]]
        graph.replay()
        adjoin.testing.assert_close(got.cpu(), calls[what](*given), equal_nan=True, msg=lambda m: f"{what}: {m}")
        if round == 0:
            adjoin.testing.assert_close(calls[what](*there).cpu(), got.cpu(), msg=lambda m: f"{what}: {m}")
print(len(graphs), told(lambda: there[0].quantile(parts[gpu] + 1)))
"""
    assert run(program, name, card) == "10 RuntimeError: quantile: q must be from 0 to 1\n"

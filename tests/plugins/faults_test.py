"""tests/plugins/faults_test.py: what fails on a device whose work is queued is told with the op and the user's line, leaves
tensors as they were, loses no memory, and training goes on."""

import gc
import os
import subprocess
import sys

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin import nn, optim

configure = adjoin.ops.emulated.configure if adjoin._C.find_op("emulated::configure") else None
pytestmark = pytest.mark.skipif(configure is None, reason="the plugin emulated is not built: no Boost.Context")
NOTHING = "fail_alloc=0 fail_allocs=1 fail_kernel=0 fail_copy=0 hang=0 delay_us=0 deadline_ms=0 blocking=0"


@pytest.fixture(autouse=True)
def no_orders():
    yield
    configure(NOTHING)


def line_of(function, after=1):
    return f"queued by .*faults_test.py:{function.__code__.co_firstlineno + after} in {function.__name__}$"


def wait():
    adjoin.get_device_module("emulated").synchronize()


def plus_one(x):
    return x + 1


def plus_one_unrecorded(x):
    with adjoin.no_grad():
        return x + 1


def make():
    return adjoin.rand(7, device="emulated")


def write(x):
    x[1:] = 3


def pick(x):
    return x.index_select(0, adjoin.tensor([9], device="emulated"))


LAYER = nn.Linear(4, 4).to("emulated") if configure else None


def through_a_module(x):
    return LAYER(x)


def step(opt):
    opt.step()


def test_a_late_failure_names_the_op_and_the_line():
    x = adjoin.ones(4, device="emulated")
    wait()
    for function, args, op, line in (
        (plus_one, (x,), "add", 1),
        (plus_one_unrecorded, (x,), "add", 2),
        (make, (), "uniform_philox_", 1),
        (write, (x,), "(fill_|copy_)", 1),
        (through_a_module, (x,), "(addmm|linear|mm)", 1),
    ):
        configure("fail_kernel=1")
        function(*args)
        with pytest.raises(
            RuntimeError, match=f"^{op}: its kernel on emulated:0 has failed.*" + line_of(function, line)
        ):
            wait()
        wait()  # it is told once


def test_what_a_kernel_finds_wrong_names_the_line():
    bad = pick(adjoin.ones(4, device="emulated"))
    with pytest.raises(IndexError, match="^index_select: index 9 is out of range.*" + line_of(pick)):
        bad.tolist()


def test_a_backward_kernel_names_the_line_of_its_forward_one():
    x = adjoin.ones(4, device="emulated", requires_grad=True)
    y = through_a_module(x).sum()
    wait()
    configure("fail_kernel=3")
    y.backward()
    with pytest.raises(RuntimeError, match="has failed, as ordered; " + line_of(through_a_module)):
        wait()


def test_an_optimizer_kernel_names_the_line_of_the_step():
    p = nn.Parameter(adjoin.ones(4, device="emulated"))
    p.grad = adjoin.ones(4, device="emulated")
    opt = optim.SGD([p], lr=0.1)
    wait()
    configure("fail_kernel=1")
    step(opt)
    with pytest.raises(RuntimeError, match="has failed, as ordered; " + line_of(step)):
        wait()
    assert p.tolist() == [1.0] * 4


def test_an_event_tells_of_what_went_before_it_and_the_stream_too():
    module = adjoin.get_device_module("emulated")
    x = adjoin.ones(4, device="emulated")
    wait()
    before, after = module.Event(), module.Event()
    before.record()
    configure("fail_kernel=1")
    plus_one(x)
    after.record()
    before.synchronize()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^add: .*" + line_of(plus_one)):
            after.synchronize()
    with pytest.raises(RuntimeError, match="^add: "):
        wait()


def test_a_queued_copy_that_fails_is_told_late():
    x = adjoin.ones(3).pin_memory("emulated")
    y = adjoin.zeros(3, device="emulated")
    wait()
    configure("fail_copy=1")
    y.copy_(x, non_blocking=True)
    with pytest.raises(RuntimeError, match="a copy of 12 bytes has failed, as ordered; queued by .*faults_test.py"):
        wait()
    assert y.tolist() == [0, 0, 0]


def test_a_stream_that_hangs_says_whose_work_hangs():
    x = adjoin.ones(3, device="emulated")
    wait()
    configure("deadline_ms=100 hang=1")
    y = plus_one(x)
    with pytest.raises(RuntimeError, match="within 100 ms.*the first is add, queued by .*in plus_one"):
        wait()
    configure("hang=0 deadline_ms=0")
    assert y.tolist() == [2, 2, 2]


# A step of training; everything that it needs is allocated anew, and each allocation reaches the device.
TRAINING = '''
import adjoin, copy, gc, os
import adjoin.nn.functional as F
from adjoin import nn, optim

def make(device):
    adjoin.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3)).to(device)
    return model, optim.AdamW(model.parameters(), lr=1e-2)

def step(model, opt, i, device):
    adjoin.manual_seed(i)
    y = adjoin.randint(0, 3, (4,)).to(device)  # those of a kernel that has failed would be any bytes, and refused in other words
    adjoin.manual_seed(i)
    x = adjoin.randn(4, 1, 6, 6, device=device)
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    value = loss.item()
    wait = adjoin.get_device_module(device).synchronize
    wait()  # what has failed late is told before anything is written
    global writes
    writes = True
    opt.step()
    wait()
    writes = False
    return value

def values(model):
    return [p.detach().cpu().tolist() for p in model.parameters()]

model, opt = make("cpu")
curve = [step(model, opt, i, "cpu") for i in range(3)]
configure = adjoin.ops.emulated.configure
module = adjoin.get_device_module("emulated")
model, opt = make("emulated")
told, failures, writes = set(), 0, False

def attempt(i, order):
    """True: the step has passed; else it has failed as ordered, and nothing has changed. Where the optimizer was
    writing, each tensor is its old or its new self; training goes on from what was kept."""
    global failures, writes
    before, kept = values(model), copy.deepcopy((model.state_dict(), opt.state_dict()))
    configure(order)
    try:
        loss = step(model, opt, i, "emulated")
    except RuntimeError as error:
        configure("fail_alloc=0 fail_kernel=0")
        failures += 1
        told.add((type(error).__name__, WORDS in str(error)))
        assert writes or values(model) == before, (i, order)
        if writes:
            model.load_state_dict(kept[0]), opt.load_state_dict(kept[1])
            writes = False
        return False
    configure("fail_alloc=0 fail_kernel=0")
    assert abs(loss - curve[i]) < 2e-4 * abs(curve[i]), (i, order, loss, curve[i])
    return True
'''

MEMORY = """
WORDS = "out of memory: asked for"
held = []
for i in range(3):
    n = 1
    while not attempt(i, f"fail_alloc={n} fail_allocs=3"):  # the core tries three times
        n += 1
        opt.zero_grad()
        gc.collect()
        held.append((i, module.memory_allocated()))
    assert n > 20, n
    opt.zero_grad()
    gc.collect()
    held.append((i, module.memory_allocated()))
assert max(b for i, b in held if i) == min(b for i, b in held if i), held  # the first step makes the optimizer's state
assert told == {("OutOfMemoryError", True)}, told
print("failures", failures)
"""


def run(text, **env):
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_out_of_memory_at_each_allocation_of_a_step_in_turn():
    out = run(TRAINING + MEMORY, ADJOIN_MEMORY_CACHE="off")
    assert int(out.split()[1]) > 60


KERNELS = """
WORDS = "has failed, as ordered; queued by "
for i in range(2):
    n = 1
    while not attempt(i, f"fail_kernel={n}"):
        n += 1
    assert n > 15, n
assert told == {("RuntimeError", True)}, told
print("failures", failures)
"""


def test_each_kernel_of_a_step_in_turn_fails():
    assert int(run(TRAINING + KERNELS).split()[1]) > 30


def test_memory_is_given_back_after_a_failure():
    module = adjoin.get_device_module("emulated")
    gc.collect()
    base = module.memory_allocated()
    x = adjoin.ones(1000, device="emulated", requires_grad=True)
    configure("fail_kernel=2")
    with pytest.raises(RuntimeError, match="as ordered"):
        F.softmax(x.exp(), 0).sum().backward()
        wait()
    del x
    gc.collect()
    assert module.memory_allocated() == base

"""tests/plugins/paper_faults_test.py: faults of a card, each in a call that meets it, in both vendors' plugin files: what was ordered
is told with its words, and the next call is right once the fault is gone. The table is FAULTS; -s prints how many."""

import collections
import json
import re
import subprocess

from paper import either, run, surroundings

from abi_tools import adjoin


Fault = collections.namedtuple("Fault", "order call told vendors", defaults=(("cuda", "hip"),))
CUDA, HIP = ("cuda",), ("hip",)

# Calls, each a function of none. `x` and `y` are matrices of the card, `h` one of the host, `i` a vector of indices.
PROGRAM = """
import os, re, signal, threading
from adjoin.nn import functional as F
adjoin.manual_seed(1)
def big():
    gpus.empty_cache()
    return adjoin.ones(3 << 20, device=gpu)
x, y, h = adjoin.ones(8, 8, device=gpu), adjoin.ones(8, 8, device=gpu), adjoin.ones(8, 8)
doubles = adjoin.ones(8, 8, device=gpu, dtype=adjoin.float64)
v, m, k = adjoin.arange(12.0, device=gpu), adjoin.ones(2, 4, 9, 8, device=gpu), adjoin.ones(6, 4, 3, 3, device=gpu)
i, many, kept = adjoin.tensor([1, 0], device=gpu), adjoin.empty(1 << 22, device=gpu), []
wrong, zero = adjoin.tensor([1, 8], device=gpu), adjoin.tensor([3, 0], device=gpu)
side, mark, other = gpus.Stream(), gpus.Event(), adjoin.ones(8, 8, device=gpu + ":1")
mark.record()
graph, replayed = Graph(), adjoin.ones(8, 8, device=gpu)
graph.capture_begin()
result = replayed + 1
graph.capture_end()
def captured():
    g = Graph()
    g.capture_begin()
    z = x + 1
    g.capture_end()
    g.replay()
    return z
def on_side():
    with gpus.stream(side):
        return x + 1
def late(wait):  # a kernel has failed before
    x + 1
    wait()
def hung(wait):
    z = x + 1
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        wait(z)
    except KeyboardInterrupt:
        return "left"
    finally:
        order("hang=0")
    return "it did not wait"
def grown():
    w = many.clone().requires_grad_()
    gpus.empty_cache()
    (w * w).sum().backward()
def found(f):
    def call():
        f()
        gpus.synchronize()
    return call
calls = {
    "big": big, "add": lambda: x + y, "large add": lambda: (gpus.empty_cache(), many + many), "mm": lambda: x @ y, "mm of doubles": lambda: doubles @ doubles, "bmm": lambda: adjoin.bmm(m[0], m[0].mT),
    "linear": lambda: F.linear(x, y, y[0]), "convolution": lambda: F.conv2d(m, k), "softmax": lambda: x.softmax(1), "sum": lambda: x.sum(0),
    "norm": lambda: F.layer_norm(x, (8,)), "sort": lambda: v.sort(), "cumsum": lambda: v.cumsum(0), "cat": lambda: adjoin.cat([x, y]),
    "large cat": lambda: (gpus.empty_cache(), adjoin.cat([many, many])), "large sort": lambda: (gpus.empty_cache(), many.sort()), "grown": grown,
    "large copy": lambda: (gpus.empty_cache(), adjoin.ones(1 << 21).to(gpu)), "large draw": lambda: (gpus.empty_cache(), adjoin.randn(1 << 21, device=gpu)),
    "large clone": lambda: (gpus.empty_cache(), many.clone()),
    "index": lambda: x.index_select(0, i), "scatter": lambda: x.clone().index_add_(0, i, y[:2]), "draw": lambda: adjoin.randn(4, device=gpu),
    "dropout": lambda: F.dropout(x, 0.5), "attention": lambda: F.scaled_dot_product_attention(m, m, m), "transposed": lambda: x.t().contiguous(),
    "fill": lambda: x.clone().fill_(1.0), "zeros": lambda: adjoin.zeros(8, 8, device=gpu), "step": lambda: adjoin._foreach_add_([x.clone(), y.clone()], 1.0),
    "to host": x.cpu, "number": lambda: x[0, 0].item(), "list": x.tolist, "truth": lambda: bool(x[0, 0] > 0), "numpy": lambda: x.cpu().numpy(),
    "to card": lambda: h.to(gpu), "to other card": lambda: x.to(gpu + ":1"), "copy": lambda: y.copy_(x), "rows": lambda: x[:, :4].cpu(),
    "pin": lambda: adjoin.ones(1 << 21).pin_memory(gpu), "not waited for": lambda: h.to(gpu, non_blocking=True),
    "synchronize": gpus.synchronize, "stream": side.synchronize, "event": lambda: mark.synchronize(), "current": lambda: gpus.current_stream().synchronize(),
    "asked stream": side.query, "asked event": lambda: mark.query(), "record": lambda: gpus.Event().record(), "new stream": lambda: kept.append(gpus.Stream(priority=-1 - len(kept))),
    "on side": on_side, "wait for event": lambda: side.wait_event(mark), "wait for stream": lambda: side.wait_stream(gpus.current_stream()),
    "capture": captured, "replay": graph.replay, "memory": gpus.mem_get_info, "elapsed": lambda: timed(),
    "late synchronize": lambda: late(gpus.synchronize), "late number": lambda: late(lambda: y[0, 0].item()), "late to host": lambda: late(y.cpu),
    "late stream": lambda: late(gpus.current_stream().synchronize), "late event": lambda: late(lambda: marked().synchronize()),
    "late list": lambda: late(y.tolist), "late truth": lambda: late(lambda: bool((y > 0).all())), "late replay": lambda: (graph.replay(), gpus.synchronize()),
    "hung synchronize": lambda: hung(lambda z: gpus.synchronize()), "hung number": lambda: hung(lambda z: z[0, 0].item()), "hung to host": lambda: hung(lambda z: z.cpu()),
    "hung stream": lambda: hung(lambda z: gpus.current_stream().synchronize()), "hung event": lambda: hung(lambda z: marked().synchronize()),
    "hung list": lambda: hung(lambda z: z.tolist()),
    "bad index_select": found(lambda: x.index_select(0, wrong)), "bad embedding": found(lambda: F.embedding(wrong, x)), "bad gather": found(lambda: x.gather(0, wrong.reshape(1, 2))),
    "bad index": found(lambda: x[wrong]), "bad index_put": found(lambda: x.clone().index_put_((wrong,), y[0])), "bad index_add": found(lambda: x.clone().index_add_(0, wrong, y[:2])),
    "bad scatter": found(lambda: x.clone().scatter_(0, wrong.reshape(1, 2), 1.0)), "bad take": found(lambda: x[0].take(wrong)), "bad one_hot": found(lambda: F.one_hot(wrong, 4)),
    "bad class": found(lambda: F.cross_entropy(x[:2], wrong)), "bad division": found(lambda: zero // zero), "bad remainder": found(lambda: zero % zero),
    "new kernel": lambda: adjoin.special.bessel_j0(x), "new module": lambda: adjoin.median(v),
}
def marked():
    event = gpus.Event()
    event.record()
    return event
def timed():
    a, b = gpus.Event(enable_timing=True), gpus.Event(enable_timing=True)
    a.record(), b.record(), b.synchronize()
    return a.elapsed_time(b)
def well():
    order("well")
    told(gpus.synchronize)  # what is left of the fault is told once
    replayed.fill_(2)
    graph.replay()
    right = [(x + y).sum().item() == 128, (x @ y).sum().item() == 512, x.cpu().tolist() == h.tolist(), result.sum().item() == 192]
    with gpus.stream(gpus.Stream()):
        right.append((x * 3).sum().item() == 192)
    return all(right)
for line, call in FAULTS:
    order(line) if line else None
    said = answer = None
    try:
        answer = calls[call]()
        said = answer if answer == "left" else None
    except (RuntimeError, IndexError, MemoryError) as e:
        said = f"{type(e).__name__}: {e}"
    answer = None
    print(json.dumps([said, well()]), flush=True)
"""
MEMORY = r"OutOfMemoryError: .*(: out of memory: asked for|OUT_OF_MEMORY \(2\))"
LOST = r"RuntimeError: .*ILLEGAL_ADDRESS \(700\).*the device is lost to this process; the ops queued last are"
# The card may be late: ops that were queued before it answers stand in front of the one that failed.
LATE = r"RuntimeError: .*LAUNCH_FAILED \(719\).*the device is lost to this process; the ops queued last are .*\badd by .* in late"
NOTHING = None  # another way serves, and its result is right


def answered(code):
    return rf"\w+Error: .* says .*\({code}\): "


FAULTS = [
    # memory is refused: always; or once, and what is cached goes back
    *(Fault("full=1 idle=1", f, MEMORY) for f in ("big", "large add", "large cat", "large sort", "large copy", "large draw", "large clone", "grown", "pin")),
    *(Fault("fail_alloc=1 idle=1", f, NOTHING) for f in ("big", "large add", "large cat", "large sort", "large copy", "large draw", "large clone", "grown", "pin")),
    # the device is lost, from this call on
    *(Fault("lost=700", f, LOST) for f in (
        "add", "mm", "bmm", "linear", "convolution", "softmax", "sum", "norm", "sort", "cumsum", "cat", "index", "scatter", "draw", "dropout", "attention",
        "transposed", "fill", "zeros", "step", "to host", "number", "list", "truth", "to card", "to other card", "copy", "rows", "big", "pin",
        "synchronize", "stream", "current", "event", "asked stream", "asked event", "record", "new stream", "on side", "wait for event", "replay", "capture", "memory",
    )),
    # a kernel fails when it runs: whoever waits is told
    *(Fault("fail_kernel=1", f"late {f}", LATE) for f in ("synchronize", "number", "to host", "stream", "event", "list", "truth")),
    Fault("fail_kernel=1", "late replay", LATE.split(" are ")[0]),
    # a kernel does not end: whoever waits can leave
    *(Fault("hang=1", f"hung {f}", "left") for f in ("synchronize", "number", "to host", "stream", "event", "list")),
    # one call is answered with an error
    *(Fault(f"answer={step}:{code}", f, answered(code)) for step, code, f in (
        ("allocate", 801, "pin"), ("launch", 701, "add"), ("launch", 1, "softmax"), ("launch", 401, "sort"), ("copy_rows", 1, "to host"),
        ("copy_rows", 1, "to card"), ("copy_rows", 1, "rows"), ("copy_rows", 400, "number"), ("event_new", 2, "record"), ("event_record", 400, "record"),
        ("event_query", 400, "asked event"), ("event_wait", 999, "event"), ("stream_new", 2, "new stream"), ("stream_query", 400, "asked stream"),
        ("stream_wait", 999, "stream"), ("stream_wait_event", 400, "wait for event"), ("device_wait", 999, "synchronize"), ("capture_begin", 906, "capture"),
        ("capture_end", 901, "capture"), ("graph_launch", 1, "replay"), ("memory_info", 999, "memory"), ("event_elapsed", 400, "elapsed"),
        ("get_function", 500, "new kernel"), ("load_module", 200, "new module"),
    )),
    Fault("answer=enable_peer:217", "to other card", NOTHING),
    Fault("answer=allocate:3", "big", NOTHING),
    Fault("no_image=1", "new module", answered(209)),
    # what a kernel finds
    *(Fault("", f"bad {f}", r"OutOfRangeError: [\w:]+: index 8 is out of range for dimension \d with size \d; queued by ") for f in (
        "index_select", "embedding", "gather", "index", "index_put", "index_add", "scatter", "take", "one_hot", "class",
    )),
    *(Fault("", f"bad {f}", r"RuntimeError: [\w:]+: integer division by zero.*; queued by ") for f in ("division", "remainder")),
    # the vendor's libraries refuse or fail
    Fault("answer=cublasLtMatmul:14", "mm", r"RuntimeError: .*cublasLt.*14|", CUDA),
    Fault("answer=cublasLtMatmulAlgoGetHeuristic:15", "bmm", NOTHING, CUDA),
    Fault("answer=cudnnBackendExecute:4000", "convolution", r"RuntimeError: .*cuDNN", CUDA),
    Fault("answer=hipblasLtMatmul:5", "mm", r"RuntimeError: .*hipBLASLt", HIP),
    Fault("answer=hipblasLtMatmulAlgoGetHeuristic:7", "bmm", NOTHING, HIP),
    Fault("answer=rocblas_gemm_strided_batched_ex:6", "mm of doubles", r"RuntimeError: .*rocBLAS", HIP),
]  # fmt: skip


@either
def test_faults_in_calls_are_told_and_survived(name, card):
    faults = [fault for fault in FAULTS if name in fault.vendors]
    table = f"import json\nFAULTS = {[(fault.order, fault.call) for fault in faults]!r}\n"
    lines = run(table + PROGRAM, name, card).splitlines()
    wrong = []
    for fault, line in zip(faults, lines, strict=True):
        told, well = json.loads(line)
        as_wanted = told is None if fault.told is NOTHING else bool(told and re.search(fault.told, told))
        if not as_wanted or not well:
            wrong.append(
                f"{fault.order or 'a finding'} in {fault.call}: {'' if well else 'not well afterwards; '}told {told}"
            )
    print(f"{name}: {len(faults)} ordered faults in calls, {len(faults) - len(wrong)} as wanted")
    assert not wrong, "\n".join(wrong)
    assert len(faults) >= 60


@either
def test_what_is_queued_stays_as_it_was_ordered(name, card):
    """Of a sort that was to do nothing the late half ran, and stored where the other half had not said."""
    program = """
x, y = adjoin.ones(4, device=gpu), adjoin.full((4,), 7.0, device=gpu)
gpus.synchronize()
for orders in ("idle=1 idle=0", "lost=700 well"):
    before, after = orders.split()
    order("hang=1")
    z = x + 1  # what is behind it is queued until hang=0
    if before == "idle=1":
        order(before)
    adjoin.add(x, 1, out=y)
    if before != "idle=1":
        order(before)
        print("700" in told(lambda: x * 2))
    order(after)
    order("hang=0")
    print(y.tolist(), (x + 1).tolist())
"""
    seven, two = [7.0] * 4, [2.0] * 4
    assert run(program, name, card) == f"{seven} {two}\nTrue\n{seven} {two}\n"


# (vendor, orders, a symbol that its library lacks, what `adjoin plugins why` tells)
LIBRARIES = [
    *(("cuda", "", symbol, rf"device cuda: no device, because .*it has no {symbol}: the oldest driver that serves is that of CUDA 11\.4") for symbol in (
        "cuInit", "cuLaunchKernel", "cuEventQuery", "cuMemAlloc_v2", "cuStreamBeginCapture_v2", "cuIpcOpenMemHandle_v2", "cuGraphLaunch", "cuModuleLoadData",
    )),
    *(("cuda", "", symbol, rf"library cuBLASLt: not found: .*{symbol}") for symbol in ("cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic")),
    *(("cuda", "", symbol, rf"library cuDNN: not found: .*{symbol}") for symbol in ("cudnnBackendExecute", "cudnnCreate")),
    ("cuda", "version=12040", "", r"missing: a driver of CUDA \d+: .* the driver serves up to 12\.4"),
    ("cuda", "devices=0", "", r"device cuda: no device, because CUDA says CUDA_ERROR_NO_DEVICE \(100\)"),
    *(("hip", "", symbol, rf"device hip: no device, because .*it has no {symbol}") for symbol in (
        "hipGetDeviceCount", "hipModuleLaunchKernel", "hipEventQuery", "hipMalloc", "hipStreamBeginCapture", "hipIpcOpenMemHandle", "hipGraphLaunch", "hipModuleLoadData",
    )),
    ("hip", "", "rocblas_gemm_strided_batched_ex", r"library rocBLAS: not found: .*rocblas_gemm_strided_batched_ex"),
    ("hip", "", "rocblas_create_handle", r"library rocBLAS: not found: .*rocblas_create_handle"),
    ("hip", "devices=0", "", r"device hip: no device, because HIP says hipError_NO_DEVICE \(100\)"),
]  # fmt: skip


def without(symbol, card, folder):
    """The simulated card without a function."""
    script, library = folder / f"{symbol}.map", folder / f"lib{symbol}.so"
    script.write_text(f"{{ global: *; local: {symbol}; }};\n")
    objects = sorted(card.parent.glob("*.o"))
    command = ["g++", "-shared", *objects, "-o", library, f"-Wl,--version-script={script}", "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    return library


@either
def test_faults_of_libraries_are_told(name, card, tmp_path):
    cases = [case[1:] for case in LIBRARIES if case[0] == name]
    wrong = []
    for orders, symbol, told in cases:
        library = without(symbol, card, tmp_path) if symbol else card
        why = adjoin("plugins", "why", name, **surroundings(name, library, orders)).stdout
        if not re.search(told, why):
            wrong.append(f"{orders or symbol}: {why}")
    print(f"{name}: {len(cases)} faults of libraries, {len(cases) - len(wrong)} as wanted")
    assert not wrong, "\n".join(wrong)

"""tests/plugins/paper_libraries_test.py: the plugin files cuda and hip over simulated libraries: products, convolutions, and the
switches that say how they compute (paper_card/blaslt.cpp, rocblas.cpp, cudnn.cpp); what adjoin.cuda says and does beyond its
plugin (tools.cpp): memory in numbers, graphs of functions, several devices, NVIDIA's tools."""

import pytest
from paper import PLUGINDIR, VENDORS, either, needs_cuda, run, surroundings

from abi_tools import adjoin


@either
def test_products_over_nothing_are_zero(name, card):
    """Of a library that does not say what it answers."""
    program = """
for x, y in ((adjoin.empty(2, 0), adjoin.empty(0, 3)), (adjoin.empty(2, 2, 0), adjoin.empty(2, 0, 3))):
    print((x.to(gpu) @ y.to(gpu)).tolist())
print((adjoin.ones(2, 5, device=gpu) @ adjoin.ones(5, 1, device=gpu)).tolist(), count("products"))
"""
    rows = [[0.0] * 3] * 2
    assert run(program, name, card) == f"{rows}\n{[rows] * 2}\n[[5.0], [5.0]] 1\n"


def test_what_a_library_works_with_is_not_kept_for_each_stream(card):
    """It was 32 MB a stream, for ever, and unknown to the core."""
    if "cuda" not in VENDORS:
        pytest.skip("NOT TESTED: the plugin cuda is not built")
    program = """
x = adjoin.ones(8, 8, device=gpu)
for _ in range(40):
    side = gpus.Stream()
    with gpus.stream(side):
        y = x @ x
    side.synchronize()
print(y[7, 7].item(), count("products"), gpus.max_memory_allocated() > 1 << 20)
"""
    assert run(program, "cuda", card, f"memory={256 << 20}") == "8.0 40 True\n"


CONVOLUTION = """
from adjoin.nn import functional as F
def tensors(dtype=adjoin.float32, groups=1, sizes=(9, 8)):
    adjoin.manual_seed(3)
    shapes = (2, 4, *sizes), (6, 4 // groups, 3, *[2] * (len(sizes) - 1)), (6,)
    return [adjoin.randn(shape).to(dtype) for shape in shapes]
def both_ways(x, w, b, where, **how):
    inputs = [t.to(where).requires_grad_() for t in (x, w, b)]
    f = [F.conv1d, F.conv2d, F.conv3d][x.ndim - 3]
    y = f(*inputs, **how)
    by = (adjoin.arange(y.numel()) % 5 - 2).reshape(y.shape).to(where, y.dtype)
    return [y.detach(), *adjoin.autograd.grad((y * by).sum(), inputs)]
"""


@needs_cuda
def test_convolutions_by_the_library(card):
    program = (
        CONVOLUTION
        + """
cases = [
    ({}, {}), ({"dtype": adjoin.float64}, {"stride": 2, "padding": (1, 0)}), ({"groups": 2}, {"groups": 2, "dilation": 2}),
    ({"sizes": (11,)}, {"padding": 1}), ({"sizes": (4, 5, 3)}, {"stride": (1, 2, 1)}), ({"dtype": adjoin.bfloat16}, {}),
    ({"dtype": adjoin.float16}, {"padding": 1}),
]
for made, how in cases:
    given = tensors(**made)
    before = count("convolutions")
    got = both_ways(*given, gpu, **how)
    bound = {2: 3e-2, 4: 2e-5, 8: 1e-12}[given[0].element_size()]
    for ours, wanted in zip(got, both_ways(*given, "cpu", **how)):
        adjoin.testing.assert_close(ours.cpu(), wanted, rtol=bound, atol=bound)
    print(count("convolutions") - before >= 3)
x = adjoin.randn(2, 6, 7, 8).to(gpu, memory_format=adjoin.channels_last)
t = both_ways(x.cpu(), adjoin.ones(4, 6, 3, 3), adjoin.ones(4), gpu)
y = F.conv_transpose2d(x, adjoin.ones(6, 2, 3, 3, device=gpu), stride=2)
adjoin.testing.assert_close(y.cpu(), F.conv_transpose2d(x.cpu(), adjoin.ones(6, 2, 3, 3), stride=2))
print(t[0].shape, gpus.max_memory_allocated() > 1 << 20)
"""
    )
    assert run(program, "cuda", card) == "True\n" * 7 + "adjoin.Size([2, 4, 5, 6]) True\n"


@needs_cuda
def test_convolutions_conform(card):
    """Every layout and dtype; the gradient of a bias that lies with gaps was written as if it had none."""
    out = adjoin(
        "conform", PLUGINDIR / "libaj_cuda.so", "--mode", "all", "--op", "convolution", "--op", "convolution_backward",
        **surroundings("cuda", card),
    )  # fmt: skip
    assert "no fault found in what was checked" in out.stdout, out.stdout[-3000:]


@needs_cuda
def test_what_a_convolution_works_with_is_the_cores(card):
    """By call, and a graph's own: it was freed and grown while graphs had its address, and kept for each stream."""
    program = (
        CONVOLUTION
        + """
x, w, b = (t.to(gpu) for t in tensors())
wanted = F.conv2d(x, w, b).cpu()
graph = Graph()
graph.capture_begin()
y = F.conv2d(x, w, b)
graph.capture_end()
kept, full = [], lambda: kept.append(adjoin.empty(1 << 18, device=gpu).fill_(7))
for _ in range(40):
    side = gpus.Stream()
    with gpus.stream(side):
        F.conv2d(x, w, b)
    side.synchronize()
while not (why := told(full)):
    pass
graph.replay()
print("out of memory" in why, adjoin.equal(y.cpu(), wanted), all((k.cpu() == 7).all().item() for k in kept))
"""
    )
    assert run(program, "cuda", card, f"memory={48 << 20}") == "True True True\n"


@needs_cuda
def test_libraries_compute_as_the_switches_say(card):
    """What serves is the heuristic's first, so bits do not depend on a measurement, unless a program wants it."""
    program = (
        CONVOLUTION
        + """
from adjoin.backends import cuda, cudnn
x, w, _ = (t.to(gpu) for t in tensors())
a, b = adjoin.randn(520, 512, device=gpu), adjoin.randn(20, 20, device=gpu)
exact = F.conv2d(x, w), b @ b
gpus.synchronize()
order("idle=1")
def ran(f, what):
    before = count(what)
    f()
    return count(what) - before
def all_of():
    conv = ran(lambda: F.conv2d(x, w, padding=(1, 2)), "convolutions")
    return conv, ran(lambda: F.conv2d(x, w, padding=(1, 2)), "convolutions"), ran(lambda: a @ a[:512], "products")
print(all_of())
cudnn.benchmark = True
print(all_of(), cudnn.benchmark)
with cudnn.flags(deterministic=True):
    print(ran(lambda: F.conv2d(x, w, padding=2), "convolutions"))
    a = a[1:]
    print(ran(lambda: a @ a[:512], "products"))
print(ran(lambda: F.conv2d(x, w, padding=2), "convolutions") > 1)
cudnn.benchmark = False
order("idle=0")
differ = lambda: (not adjoin.equal(F.conv2d(x, w), exact[0]), not adjoin.equal(b @ b, exact[1]))
print(differ())
cudnn.allow_tf32 = True
print(differ())
cuda.matmul.allow_tf32 = True
print(differ(), adjoin.get_float32_matmul_precision())
adjoin.set_float32_matmul_precision("highest")
print(differ(), cuda.matmul.allow_tf32)
adjoin.set_float32_matmul_precision("high")
adjoin.testing.assert_close(b @ b, exact[1], rtol=1e-2, atol=1e-1)
with cudnn.flags(allow_tf32=False):
    print(differ(), cuda.matmul.allow_tf32)
"""
    )
    assert run(program, "cuda", card).splitlines() == [
        "(1, 1, 1)", "(7, 1, 33) True", "1", "1", "True",
        "(False, False)", "(True, False)", "(True, True) high", "(True, False) False", "(False, True) True",
    ]  # fmt: skip


@either
def test_products_that_add_are_the_librarys(name, card):
    """linear, addmm and baddbmm ran in a tile of our own, without the units that multiply matrices."""
    program = """
from adjoin.nn import functional as F
def ran(f, *inputs, **how):
    before = count("products"), count("launches")
    got = f(*(t.to(gpu) for t in inputs), **how)
    done = count("products") - before[0], count("launches") - before[1]
    bound = {2: 2e-2, 4: 1e-5, 8: 1e-12}[got.element_size()]
    adjoin.testing.assert_close(got.cpu(), f(*inputs, **how), rtol=bound, atol=bound)
    return done
adjoin.manual_seed(1)
wide = {dtype: [adjoin.randn(s).to(dtype) for s in ((6, 5), (7, 5), (7,), (3, 2, 5), (6, 7), (5, 7), (4, 6, 5), (4, 5, 7), (4, 6, 7))]
        for dtype in (adjoin.float32, adjoin.float64, adjoin.float16, adjoin.bfloat16)}
for x, w, b, cube, added, right, stack, stack_right, stack_added in wide.values():
    print(
        ran(F.linear, x, w), ran(F.linear, x, w, b), ran(F.linear, cube, w, b), ran(F.linear, x, w[0], b[0]),
        ran(F.linear, x.t().contiguous().t(), w.t().contiguous().t(), b)[0], ran(F.linear, x[0], w, b),
        ran(adjoin.addmm, added, x, right, beta=0.5, alpha=2), ran(adjoin.addmm, b, x, right),
        ran(adjoin.addmm, b, x, right, beta=2)[0], ran(adjoin.addmm, added.t().contiguous().t(), x, right)[0],
        ran(adjoin.baddbmm, stack_added, stack, stack_right, alpha=3), ran(adjoin.baddbmm, stack_added[:1], stack, stack_right)[0],
    )
x, w, b, cube = wide[adjoin.float32][:4]
whole = adjoin.randn(3, 4, 7)[:, 1:3]  # a bias for each row
got = F.linear(cube.to(gpu), w.to(gpu), whole.to(gpu)), F.linear(cube.to(gpu), w[0].to(gpu), whole[:, :, 0].to(gpu))
adjoin.testing.assert_close(got[0].cpu(), cube @ w.t() + whole)
adjoin.testing.assert_close(got[1].cpu(), cube @ w[0] + whole[:, :, 0])
x, right = wide[adjoin.float32][0].to(gpu), wide[adjoin.float32][5].to(gpu)
nan = adjoin.full((6, 7), float("nan"), device=gpu)
print(adjoin.addmm(nan, x, right, beta=0).isnan().any().item())
z = adjoin.ones(6, 7, device=gpu)
adjoin.testing.assert_close(z.addmm_(x, right), x @ right + 1)
inputs = [t.to(gpu).requires_grad_() for t in wide[adjoin.float64][:3]]
print(adjoin.autograd.gradcheck(F.linear, inputs))
stack = [t.to(gpu).requires_grad_() for t in (wide[adjoin.float64][i][:2] for i in (8, 6, 7))]
print(adjoin.autograd.gradcheck(adjoin.baddbmm, stack))
print(F.linear(adjoin.ones(2, 0, device=gpu), adjoin.ones(3, 0, device=gpu), adjoin.ones(3, device=gpu)).tolist())
print(all(f"plugin {gpu}" in adjoin._C.explain_op(op, gpu) for op in ("nn::linear", "addmm", "baddbmm")))
"""
    # rocBLAS, which has doubles, adds to a copy of the bias.
    one, copied = (1, 0), (1, 1)
    lines = [
        f"{one} {row} {row} {copied} 1 {one} {one} {row} 1 1 {one} 1"
        for row in (one, copied if name == "hip" else one, one, one)
    ]
    assert run(program, name, card).splitlines() == [*lines, "False", "True", "True", str([[1.0] * 3] * 2), "True"]
    if name == "hip":  # an older one has rocBLAS alone
        lines = [f"{one} {copied} {copied} {copied} 1 {one} {one} {copied} 1 1 {one} 1"] * 4
        assert run(program, name, card, ADJOIN_HIPBLASLT="/no/such/library.so").splitlines()[:4] == lines


@either
def test_memory_is_counted_under_the_names_of_pytorch(name, card):
    program = """
def counted():
    s = gpus.memory_stats()
    for pool in ("small_pool", "large_pool", "all"):
        assert s[f"allocated_bytes.{pool}.current"] == s[f"allocated_bytes.{pool}.allocated"] - s[f"allocated_bytes.{pool}.freed"]
    assert s["allocation.all.current"] == s["allocation.small_pool.current"] + s["allocation.large_pool.current"]
    return [s[key] for key in ("allocation.small_pool.current", "allocation.large_pool.current", "allocated_bytes.all.current",
            "allocated_bytes.all.peak", "reserved_bytes.all.current", "allocation.all.freed", "num_alloc_retries", "num_ooms")]
x, small = adjoin.ones(1 << 20, device=gpu), [adjoin.ones(100, device=gpu) for _ in range(5)]
print(counted(), gpus.memory_allocated() == 4 << 20 | 5 * 512)
del x, small[1:]
print(counted(), gpus.max_memory_allocated(), gpus.memory_reserved())
gpus.reset_peak_memory_stats()
gpus.reset_accumulated_memory_stats()
print(gpus.max_memory_allocated(), gpus.memory_stats()["allocation.all.freed"], gpus.memory_stats()["allocation.all.current"])
y = adjoin.ones(3 << 20, device=gpu)
print(gpus.max_memory_reserved() == gpus.memory_reserved(), gpus.memory_stats()["segment.all.current"])
del y
gpus.empty_cache()
print(gpus.max_memory_reserved() - gpus.memory_reserved(), gpus.memory_stats()["num_device_free"])
order("fail_alloc=1")
y = adjoin.ones(2 << 20, device=gpu)
order("full=1")
told(lambda: adjoin.ones(1 << 22, device=gpu))
order("full=0")
print(gpus.memory_stats()["num_alloc_retries"], gpus.memory_stats()["num_ooms"], gpus.memory_stats(1)["num_ooms"])
nested = gpus.memory_stats_as_nested_dict()
print(nested["allocation"]["all"]["current"], "Peak Usage" in gpus.memory_summary(), len(gpus.memory_summary(abbreviated=True)) < len(gpus.memory_summary()))
gpus.set_per_process_memory_fraction(0.25)
print(gpus.get_per_process_memory_fraction(), gpus.get_per_process_memory_fraction(1), told(lambda: adjoin.ones(1 << 27, device=gpu))[:16])
gpus.set_per_process_memory_fraction(0)
print(told(lambda: adjoin.ones(1 << 27, device=gpu))[:16])
gpus.set_per_process_memory_fraction(1)
print(gpus.get_per_process_memory_fraction())
"""
    lines = run(program, name, card).splitlines()
    mega, five, one = 1 << 20, (4 << 20) + 5 * 512, 512
    assert lines[0] == f"{[5, 1, five, five, 8 * mega, 0, 0, 0]} True"
    assert lines[1] == f"{[1, 0, one, five, 8 * mega, 5, 0, 0]} {five} {8 * mega}"
    assert lines[2:4] == ["512 0 1", "True 2"]
    assert lines[4] == f"{12 * mega} 1"
    retries, *rest = lines[5].split()
    assert int(retries) >= 2 and rest == ["1", "0"]  # once for what was refused once, then in vain
    assert lines[6:] == ["2 True True", "0.25 1.0 OutOfMemoryError", "OutOfMemoryError", "1.0"]


@either
def test_memory_without_a_cache_is_counted(name, card):
    program = """
x = adjoin.ones(1 << 20, device=gpu)
y = adjoin.ones(100, device=gpu)
first = gpus.memory_stats()
print([first[key] for key in ("allocation.all.current", "segment.all.current")], first["reserved_bytes.all.current"] == gpus.memory_allocated())
del x
last = gpus.memory_stats()
print(last["num_device_free"], gpus.max_memory_reserved() == first["reserved_bytes.all.current"] > gpus.memory_reserved() == 400)
try:
    gpus.memory_snapshot()
except NotImplementedError as e:
    print(e)
try:
    gpus.caching_allocator_enable()
except NotImplementedError as e:
    print("before a program begins" in str(e), gpus.caching_allocator_enable(False))
"""
    lines = run(program, name, card, ADJOIN_MEMORY_CACHE="off").splitlines()
    assert lines[:2] == ["[2, 2] True", "1 True"]
    assert "has memory of its own from the device" in lines[2] and lines[3] == "True None"


@either
def test_memory_is_shown_piece_by_piece(name, card):
    program = """
def make():
    return adjoin.ones(1 << 20, device=gpu)
x, small = make(), [adjoin.ones(100, device=gpu) for _ in range(3)]
del small[1]
(segment,) = gpus.memory_snapshot()
print(segment["total_size"], segment["allocated_size"], segment["segment_pool_id"], segment["stream"])
blocks = segment["blocks"]
print([(b["state"], b["size"]) for b in blocks], sum(b["size"] for b in blocks) == segment["total_size"])
print(blocks[0]["frames"][0]["name"], blocks[0]["frames"][0]["op"], blocks[0]["address"] == x.data_ptr())
print(all(b["address"] + b["size"] == c["address"] for b, c in zip(blocks, blocks[1:])))
order("hang=1")
side = gpus.Stream()
with gpus.stream(side):
    y = x + 1
address, x = x.data_ptr(), None
stats, (first,) = gpus.memory_stats(), [s for s in gpus.memory_snapshot() if s["address"] == address]
print(first["blocks"][0]["state"], first["active_size"] > first["allocated_size"])
print(stats["allocation.all.current"], stats["active.all.current"])
order("hang=0")
gpus.synchronize()
print(gpus.memory_stats()["active.all.current"])
graph = Graph()
with gpus.graph(graph):
    z = small[0] + 1
print([s["segment_pool_id"][1] != 0 for s in gpus.memory_snapshot()].count(True))
address = gpus.caching_allocator_alloc(1 << 21)
before = gpus.memory_allocated()
gpus.caching_allocator_delete(address)
print(before - gpus.memory_allocated())
try:
    gpus.caching_allocator_delete(address)
except ValueError as e:
    print("was given back" in str(e))
"""
    lines = run(program, name, card).splitlines()
    used, free = "active_allocated", "inactive"
    rest = (4 << 20) - 3 * 512
    assert lines[0] == f"{8 << 20} {(4 << 20) + 2 * 512} (0, 0) 0"
    sizes = [(used, 4 << 20), (used, 512), (free, 512), (used, 512), (free, rest)]
    assert lines[1] == f"{sizes} True", lines[1]
    assert lines[2:4] == ["make ones True", "True"]
    assert lines[4:7] == ["active_pending_free True", "3 4", "3"]
    assert lines[7:] == ["1", f"{2 << 20}", "True"]


@either
def test_functions_run_as_graphs(name, card):
    program = """
import copy
from adjoin import nn
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x):
        h = self.a(x).tanh()
        return self.b(h), h.detach() * 2
def go(net, x):
    net.zero_grad()
    x.grad = None
    y, h = net(x)
    y.sin().sum().backward()
    return y.tolist(), h.tolist(), h.requires_grad, x.grad.tolist(), [p.grad.tolist() for p in net.parameters()]
adjoin.manual_seed(0)
eager = Two().to(gpu)
net = copy.deepcopy(eager)
print(gpus.make_graphed_callables(net, (adjoin.randn(5, 4, device=gpu, requires_grad=True),)) is net)
for _ in range(3):
    x = adjoin.randn(5, 4, device=gpu).requires_grad_()
    eager_x = x.detach().clone().requires_grad_()
    print(go(net, x) == go(eager, eager_x))
wanted = go(eager, x)
net.eval()
print(go(net, x) == wanted)
ones = adjoin.ones(3, device=gpu)
f, g = gpus.make_graphed_callables(
    (lambda x: x * 2, lambda x, y: {"s": x + y, "m": x * y}), ((ones.clone(),), (ones.clone().requires_grad_(), ones.clone()))
)
x = adjoin.arange(3.0, device=gpu).requires_grad_()
y = g(x, x.detach() + 1)
(y["s"].sum() + (y["m"] * 3).sum()).backward()
print(f(x.detach()).tolist(), y["s"].tolist(), y["m"].tolist(), x.grad.tolist())
print(told(f, adjoin.ones(2, device=gpu)))
pool, one, two = gpus.graph_pool_handle(), Graph(), Graph()
w, reserved = adjoin.ones(1 << 12, device=gpu), gpus.memory_reserved()
with gpus.graph(one, pool=pool):
    p, inside = (w + 1).sum(), gpus.is_current_stream_capturing()
    with gpus.stream(gpus.Stream()):
        beside = gpus.is_current_stream_capturing()
first = gpus.memory_reserved() - reserved
with gpus.graph(two, pool=pool):
    q = (w + 2).sum()
w.fill_(2)
one.replay(), two.replay()
print(inside, beside, gpus.is_current_stream_capturing(), first > 0, gpus.memory_reserved() - reserved == first, p.item(), q.item())
s = gpus.Stream()
with gpus.stream(gpus.ExternalStream(s.native_handle)):
    print(gpus.current_stream() == s == gpus.get_stream_from_external(s.native_handle, 0), (w + 1)[0].item())
with gpus.StreamContext(s), gpus.StreamContext(None):
    print(gpus.current_stream() == s)
"""
    lines = run(program, name, card).splitlines()
    assert lines[:5] == ["True"] * 5
    assert lines[5] == "[0.0, 2.0, 4.0] [1.0, 3.0, 5.0] [0.0, 2.0, 6.0] [4.0, 7.0, 10.0]"
    assert lines[6].endswith("an input of shape (2,) and adjoin.float32, where the sample had (3,) and adjoin.float32")
    assert lines[7:] == ["True False False True True 12288.0 16384.0", "True 3.0", "True"]


@either
def test_generators_of_all_devices(name, card):
    program = """
numbers = lambda: [adjoin.rand(3, device=f"{gpu}:{i}").tolist() for i in range(2)]
gpus.manual_seed_all(3)
states = gpus.get_rng_state_all()
first = numbers()
gpus.set_rng_state_all(states)
print(len(states), numbers() == first != numbers())
gpus.seed_all()
both = [adjoin._C.default_generator(adjoin.device(gpu, i)).initial_seed() for i in range(2)]
gpus.seed()
print(both[0] == both[1] != 3, gpus.initial_seed() != both[0])
with gpus.device_of(adjoin.ones(1, device=f"{gpu}:1")):
    print(gpus.current_device())
with gpus.device_of(adjoin.ones(1)):
    print(gpus.current_device())
"""
    assert run(program, name, card) == "2 True\nTrue True\n1\n0\n"


@needs_cuda
def test_what_the_driver_says_of_a_card(card):
    program = """
first, second = gpus.get_device_properties(), gpus.get_device_properties(1)
print(first.name, first.major, first.minor, first.warp_size, first.multi_processor_count, first.total_memory, first.gcnArchName)
print(first.uuid != second.uuid, second.pci_bus_id, gpus.get_device_capability(), gpus.get_device_capability("cuda:1"))
print("sm_90" in gpus.get_arch_list(), "code=sm_90" in gpus.get_gencode_flags())
print(gpus.can_device_access_peer(0, 1), gpus.can_device_access_peer(1, 1), told(gpus.can_device_access_peer, 0, 5))
print(gpus.is_bf16_supported(False), gpus.is_tf32_supported(), len(gpus.default_generators))
print(gpus.utilization(), gpus.utilization(1), gpus.memory_usage(), gpus.temperature(), gpus.power_draw(), gpus.clock_rate())
print(gpus.device_memory_used(), gpus.list_gpu_processes())
nvtx, paper.paper_range.restype = gpus.nvtx, ctypes.c_char_p
print(nvtx.range_push("a"), nvtx.range_push("b"), paper.paper_range(), count("ranges"), nvtx.range_pop(), nvtx.range_pop())
with nvtx.range("step {}", 3):
    print(paper.paper_range(), count("ranges"))
number = nvtx.range_start("c")
print(count("ranges"), nvtx.range_end(number), count("ranges"), nvtx.mark("here"), paper.paper_range())
with gpus.profiler.profile():
    print(count("recordings"))
print(count("recordings"), gpus.cudart().cudaProfilerStart(), count("recordings"), gpus.cudart().cudaProfilerStop())
print(gpus.cudart().cudaMemGetInfo(0)[1], gpus.check_error(0))
try:
    gpus.check_error(gpus.cudart().cudaError.memoryAllocation)
except gpus.CudaError as e:
    print(e, e.code)
graph, side = Graph(), gpus.Stream()
x = adjoin.ones(4, device=gpu)
with gpus.graph(graph):
    side.wait_stream(gpus.current_stream())
    with gpus.stream(side):
        joined = gpus.is_current_stream_capturing()
    gpus.current_stream().wait_stream(side)
print(joined, count("contexts"))
"""
    lines = run(program, "cuda", card).splitlines()
    assert lines[0] == f"card of paper 9 0 32 132 {1 << 30} sm_90"
    assert lines[1:3] == ["True 1 (9, 0) (9, 0)", "True True"]
    assert lines[3].endswith("OutOfRangeError: device 'cuda:5': there are 2 cuda devices")
    assert lines[4:6] == ["True True 2", "60 61 20 41 300000 1980"]
    assert lines[6:8] == [f"{1 << 29} GPU:0", "process        123 uses        5.000 MB GPU memory"]
    assert lines[8:11] == ["0 1 b'b' 2 1 0", "b'step 3' 1", "1 None 0 None b'here'"]
    assert lines[11:14] == ["1", "0 0 1 0", f"{1 << 30} None"]
    assert lines[14:] == ["out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2) 2", "True 1"]


@needs_cuda
def test_tensors_go_to_several_cards_and_back(card):
    program = """
comm, x = gpus.comm, adjoin.arange(6.0, device="cuda:0")
both = comm.broadcast(x, [0, 1])
print([t.device.index for t in both], both[0] is x, both[1].tolist() == x.tolist())
print(comm.reduce_add([x, both[1]], 1).tolist(), comm.reduce_add([x, both[1]]).device, x.tolist())
parts = comm.scatter(x, [0, 1], [2, 4])
print([(t.device.index, t.tolist()) for t in parts], comm.gather(parts, destination=1).tolist(), comm.gather(parts, destination=-1).device)
out = [adjoin.empty(3, device="cuda:0"), adjoin.empty(3, device="cuda:1")]
print([t.tolist() for t in comm.scatter(x, out=out)], out[1].tolist())
side = gpus.Stream(1)
part = comm.scatter(x, [0, 1], streams=[None, side])[1]
side.synchronize()
print(part.tolist(), [[t.device.index for t in group] for group in comm.broadcast_coalesced([x, x + 1], [0, 1])])
print([t.tolist() for t in comm.reduce_add_coalesced([[x[:2], x[2:4]], [x[4:], x[:2]]])])
"""
    assert run(program, "cuda", card).splitlines() == [
        "[0, 1] True True",
        "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0] cuda:0 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]",
        "[(0, [0.0, 1.0]), (1, [2.0, 3.0, 4.0, 5.0])] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] cpu",
        "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] [3.0, 4.0, 5.0]",
        "[3.0, 4.0, 5.0] [[0, 0], [1, 1]]",
        "[[4.0, 6.0], [2.0, 4.0]]",
    ]

"""tests/plugins/paper_libraries_test.py: the plugin files cuda and hip over simulated libraries: products, convolutions, and the
switches that say how they compute (paper_card/cublaslt.cpp, rocblas.cpp, cudnn.cpp)."""

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
    # A library without a bias adds to a copy of it.
    one, row = (1, 0), {"cuda": (1, 0), "hip": (1, 1)}[name]
    line = f"{one} {row} {row} {(1, 1)} 1 {one} {one} {row} 1 1 {one} 1"
    assert run(program, name, card) == f"{line}\n" * 4 + f"False\nTrue\nTrue\n{[[1.0] * 3] * 2}\nTrue\n"

"""tests/python/graph/fuse_test.py: chains that the fuser runs have the bits of eager: every function, layouts, broadcasting, masks, rows that
are reduced; what it cannot do is left to the calls; a stranger's compiler takes its place."""

import os
import random
import subprocess
import sys
from pathlib import Path

import adjoin
import pytest
import random_programs
from adjoin import jit
from adjoin.nn import functional as F

SEED = int(os.environ.get("ADJOIN_TEST_SEED", random.randrange(10**6)))
HERE = Path(__file__).parent


def bits(t):
    """Bytes of a tensor, a NaN being a NaN: which of two operands gives its bits is the compiler's choice."""
    t = t.detach()
    if t.dtype.is_floating_point:
        t = adjoin.where(t.isnan(), adjoin.full_like(t, float("nan")), t)
    return str(t.dtype), tuple(t.shape), t.stride(), t.numpy().tobytes()


def check(f, *inputs, groups=1, passes=None):
    """f's program gives the bits of f, in so many fused groups."""
    wanted = f(*inputs)
    traced = jit.trace(f, inputs)
    given = traced(*inputs)
    wanted, given = ((r,) if isinstance(r, adjoin.Tensor) else r for r in (wanted, given))
    for a, b in zip(wanted, given, strict=True):
        assert bits(a) == bits(b), (SEED, f, [t.shape for t in inputs], (a != b).sum())
    stats = traced.stats()
    if groups is not None:
        assert stats["groups"] == groups, stats
    if passes is not None:
        assert stats["passes"] == passes, stats
    return traced


UNARY = """abs neg square reciprocal floor ceil trunc relu sqrt rsqrt log log2 log10 log1p sin cos tan exp exp2 expm1 tanh sigmoid erf
erfc F.silu F.gelu F.elu F.softplus F.leaky_relu""".split()
BINARY = "add sub mul div maximum minimum pow".split()
COMPARED = "eq ne lt le gt ge".split()


def function(name):
    return getattr(F, name[2:]) if name.startswith("F.") else getattr(adjoin, name)


def values(shape, dtype):
    """Of all magnitudes, with those that need care."""
    adjoin.manual_seed(SEED)
    x = adjoin.randn(shape, dtype=dtype) * adjoin.exp(3 * adjoin.randn(shape, dtype=dtype))
    flat = x.reshape(-1)
    for i, special in enumerate((0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, 1e-40)):
        if i < flat.numel():
            flat[(i * 37) % flat.numel()] = special
    return x


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
def test_every_function(dtype):
    x, y = values((7, 100), dtype), values((7, 100), dtype).flip(0).contiguous()
    for name in UNARY:
        f = function(name)
        check(lambda x, f=f: f(x) * 1.5, x)
    for name in BINARY:
        f = function(name)
        number = adjoin.tensor(2.0, dtype=dtype) if name in ("maximum", "minimum") else 2.0
        check(lambda x, y, f=f, n=number: (f(x.abs(), y), f(x.abs() + 1, n), f(x * y, x)), x, y)
    for name in COMPARED:
        f = function(name)
        check(lambda x, y, f=f: adjoin.where(f(x, y) & ~f(y, 0.5), x * 2, y), x, y)
    for exponent in (2, 3, -1, 0.5, 1.7):
        check(lambda x, e=exponent: (x.abs() ** e) + 1, x)
    check(lambda x, y: adjoin.lerp(x, y, 0.3) + adjoin.addcmul(x, y, y, value=0.7), x, y)
    check(lambda x, y: adjoin.addcdiv(x, y, x, value=-0.7).clamp(-1, 2) + x.clamp(min=0.5), x, y)
    check(lambda x, y: adjoin.add(x, y, alpha=0.3) - adjoin.sub(x, y, alpha=3), x, y)
    check(lambda x, y: F.gelu(x, approximate="tanh") * y + F.elu(x, 0.7), x, y)
    check(lambda x, y: (x > 0) * y + (x.isnan() | y.isinf()) * 2.0, x, y)


SHAPES = [
    ((), ()), ((5,), (5,)), ((1000,), (1,)), ((128,), ()), ((3, 200), (200,)), ((200, 3), (200, 1)), ((2, 3, 150), (3, 1)),
    ((4, 1, 70), (1, 5, 70)), ((1, 1), (1, 1)), ((3, 17), (3, 17)), ((70001,), (70001,)), ((0, 4), (4,)), ((300, 500), (300, 500)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
def test_shapes(dtype):
    def f(x, y):
        z = (x * 2 + y).tanh()
        return z, z > y, z * x

    for shape, other in SHAPES:
        check(f, values(shape, dtype), values(other, dtype), groups=None if 0 in shape or shape == (200, 3) else 1)


def test_layouts():
    x = adjoin.randn(6, 300)
    with adjoin.no_grad():
        check(lambda x, y: (x * 2 + y).exp(), x[:, 10:110], x[1:2, 5:105])
        # What eager makes of these is in another order.
        check(lambda x, y: (x * 2 + y).exp(), x.t(), x.t(), groups=0)
        check(lambda x, y: (x * 2 + y).exp(), x[:, ::2], x[:, 1::2])
    check(lambda x, y: (x * 2 + y).exp(), adjoin.randn(3).expand(4, 3), adjoin.randn(4, 3), groups=None)


def layer_norm(x, w, b):
    d = x - x.mean(-1, keepdim=True)
    return d * adjoin.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5) * w + b


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
def test_rows_that_are_reduced(dtype):
    for rows, n in ((3, 768), (8, 100), (40, 130), (5, 4096), (2, 129), (6, 1), (2, 64)):
        x, w, b = (adjoin.randn(s, dtype=dtype) for s in ((rows, n), (n,), (n,)))
        check(layer_norm, x, w, b, passes=1)
        check(softmax, x * 5, passes=1)
        check(lambda x: ((x * x).sum(-1), (x.abs() + 1).amin(-1, keepdim=True)), x)
        check(lambda x, w: (x * w).sum(1).sqrt(), x, w, groups=None)
    check(lambda x: (x.exp() + 1).sum(-1), adjoin.randn(3, 5000, dtype=dtype), groups=None)
    check(layer_norm, *(adjoin.randn(s, dtype=dtype) for s in ((2, 3, 200), (200,), (200,))), passes=1)
    check(lambda x: (x - x.sum()) * x.amax(0), adjoin.randn(50, dtype=dtype), groups=None)


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.float64])
def test_softmax_and_layer_norms_inside_of_a_chain(dtype):
    for shape in ((3, 768), (2, 4, 50), (5, 1), (700,), (2, 4096)):
        x, y = adjoin.randn(shape, dtype=dtype), adjoin.randn(shape, dtype=dtype)
        w, b = adjoin.randn(shape[-1], dtype=dtype), adjoin.randn(shape[-1], dtype=dtype)
        size = shape[-1:]
        check(lambda x, y: adjoin.softmax(x * 0.125 + y, -1) * 2, x, y, passes=1)
        check(lambda x, y: (F.log_softmax(x - y, -1), adjoin.softmax(x - y, -1).sum(-1, keepdim=True)), x, y)
        check(lambda x, y, w, b, size=size: F.layer_norm(x + y, size, w, b).tanh(), x, y, w, b, passes=1)
        check(lambda x, y, size=size: F.layer_norm(x * y, size) + x, x, y, passes=1)
        check(lambda x, w, size=size: F.layer_norm(x * 2, size, w) + 1, x, w, groups=None)
    check(lambda x: adjoin.softmax(x + 1, 0), adjoin.randn(4, 60, dtype=dtype), groups=None)


def test_chains_that_others_stand_between():
    def f(x, w):
        a = x * 2 + 1
        b = a @ w
        c = a.exp() - 1
        return b * c + a, adjoin.cat([c, b]).abs() + 1

    check(f, adjoin.randn(8, 8), adjoin.randn(8, 8), groups=None)

    def written(x):
        y = x * 2 + 1
        y[0] += x[1] * 3
        return (y.exp() - x) * y, y

    check(written, adjoin.randn(6, 50), groups=None)


def test_gradients_go_through_the_calls():
    x = adjoin.randn(4, 50, requires_grad=True)
    traced = jit.trace(lambda x: (x * 2).tanh().exp(), x)
    y = traced(x)
    assert traced.stats()["groups"] == 0
    (y.sum()).backward()
    z = x.detach().clone().requires_grad_()
    (z * 2).tanh().exp().sum().backward()
    assert bits(x.grad) == bits(z.grad)
    with adjoin.no_grad():
        assert bits(traced(x)) == bits(y) and traced.stats()["passes"] == 1


def test_sizes_with_a_name():
    traced = jit.trace(
        layer_norm, (adjoin.randn(4, 160), adjoin.randn(160), adjoin.randn(160)), dynamic={0: {0: "rows"}}
    )
    for rows in (1, 9):
        given = adjoin.randn(rows, 160), adjoin.randn(160), adjoin.randn(160)
        assert bits(traced(*given)) == bits(layer_norm(*given)) and traced.stats()["passes"] == 1


@pytest.mark.parametrize("isa", ["base", "avx2"])
def test_other_instruction_sets(isa):
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import fuse_test as t, adjoin\n"
    code += "t.test_every_function(adjoin.float32); t.test_rows_that_are_reduced(adjoin.float64)"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "ADJOIN_CPU_ISA": isa, "ADJOIN_TEST_SEED": str(SEED)},
    )


def test_sums_of_one_element_do_not_keep_a_chain_apart():
    x = adjoin.randn(70_001, 1)
    traced = jit.trace(lambda x: (x.abs().sqrt() + 1, (x * 2).sum(1)), (x,))
    a, b = traced(x)
    assert a.equal(x.abs().sqrt() + 1) and b.equal((x * 2).sum(1)) and traced.stats()["groups"] == 1


def test_a_tape_sees_calls_in_their_order():
    # Parts of these are put together over other calls, and gradients of one value come from several.
    for seed in (9000270, 9000489):
        _, f, inputs = random_programs.case(seed)
        assert random_programs.differs(f, inputs, seed % 1000, every=True)[0] is None


def test_random_programs_have_the_bits_of_eager():
    full = os.environ.get("ADJOIN_TEST_FULL") == "1"
    bad, fused = random_programs.sweep(SEED, 10_000 if full else 150, every=1 if full else 10)
    assert not bad, (SEED, bad[0], random_programs.shrunk(bad[0][0]))
    assert fused > 0.5


def compiled(folder, source):
    """A plugin in C, made of the installed headers; the search path with it."""
    flags = subprocess.run(["adjoin", "config", "--cflags"], capture_output=True, text=True, check=True).stdout.split()
    command = [
        "cc",
        "-std=c99",
        "-O1",
        "-ffp-contract=off",
        "-Wall",
        "-Wpedantic",
        "-Werror",
        "-shared",
        "-fPIC",
        *flags,
    ]
    subprocess.run([*command, str(HERE / f"{source}.c"), "-o", str(folder / f"libaj_{source}.so")], check=True)
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("ADJOIN_PLUGIN_PATH")]))


def test_parts_that_are_claimed_at_random(tmp_path):
    path = compiled(tmp_path, "claimer")
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import random_programs as r\n"
    code += f"bad, fused = r.sweep({SEED}, 60)\nassert not bad, bad\nassert fused > 0.5, fused\n"
    # A call that shows what it was given is in no part: products of the adjoint of a dense copy have other bits.
    code += "for s in (1000003, 1000011):\n    assert not r.differs(*r.case(s)[1:], s % 1000, every=True)[0], s"
    env = {**os.environ, "ADJOIN_PLUGIN_PATH": path, "CLAIM_SEED": str(SEED)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, (SEED, done.stderr)


VENDOR = """
import os, adjoin
from adjoin import jit
def f(x, y):
    a = x * y + 2.0
    b = (a - y) * 3
    return b.exp() + a, b
x, y = adjoin.randn(40, 30), adjoin.randn(40, 30)
wanted = f(x, y)
for fails in ("", "claim", "compile", "run", ""):
    os.environ["VENDOR_FAILS"] = fails
    traced = jit.trace(f, (x, y))
    for _ in range(2):
        assert all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(traced(x, y), wanted)), fails
print(len(open(os.environ["VENDOR_RAN"]).read().split()))
"""


def test_a_vendors_compiler(tmp_path):
    path = compiled(tmp_path, "vendor")
    assert len((HERE / "vendor.c").read_text().splitlines()) <= 200
    env = {**os.environ, "ADJOIN_PLUGIN_PATH": path, "VENDOR_RAN": str(tmp_path / "ran")}
    done = subprocess.run([sys.executable, "-c", VENDOR], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4, done.stdout
    for told in ("claims nothing today", "compiler has crashed", "program has failed"):
        assert told in done.stderr, done.stderr


def test_nothing_is_loaded_by_an_import():
    code = "import adjoin; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "libadjoin" in maps and "libaj_fuser" not in maps and "libaj_graph" not in maps


def test_results_have_the_versions_that_eager_gives():
    h = adjoin.randn(64, 32).half()

    def f(h):
        return ((h + 1).relu() * 2 - h).abs()

    with adjoin.no_grad():
        made = jit.trace(f, (h,))(h)
        assert bits(made) == bits(f(h)) and made._version == f(h)._version == 0


def resnet_end(x, w, u, s):
    """Two convolutions, their sum, a norm of it: sums of channels-last tensors have bits of their own."""
    y = F.relu(F.conv2d(x, w, padding=1) + F.conv2d(x, u, padding=1)) * 0.5
    return F.batch_norm(y, None, None, s, None, True), y


def test_what_convolutions_give_is_fused_in_its_order():
    adjoin.manual_seed(SEED)
    for shape in ((4, 3, 64, 64), (2, 5, 37, 71)):
        x, s = adjoin.randn(shape), adjoin.randn(16)
        w, u = (adjoin.randn(16, shape[1], 3, 3) for _ in range(2))
        with adjoin.no_grad():
            check(resnet_end, x, w, u, s)
            # Beside a tensor in C order, or spread over channels, it is another walk.
            y, c = adjoin.randn(shape[0], 16, *shape[2:]), adjoin.randn(16, 1, 1)
            check(
                lambda x, w, y: F.batch_norm((F.conv2d(x, w, padding=1) + y).tanh(), None, None, training=True),
                x,
                w,
                y,
                groups=0,
            )
            check(
                lambda x, w, c: F.batch_norm((F.conv2d(x, w, padding=1) + c).tanh(), None, None, training=True),
                x,
                w,
                c,
                groups=0,
            )

            # A tensor that others have may be turned while it is read: it is left to the calls.
            def norm(z):
                return F.batch_norm((z * 2).tanh(), None, None, training=True)

            wanted, traced = norm(F.conv2d(x, w, padding=1)), jit.trace(norm, (F.conv2d(x, w, padding=1),))
            kept = F.conv2d(x, w, padding=1)
            assert bits(traced(kept)) == bits(wanted) and traced.stats()["groups"] == 0
            check(lambda x, w: adjoin.softmax(F.conv2d(x, w, padding=1) * 2, -1).tanh(), x, w, groups=None)
            check(lambda x, w: (F.conv2d(x, w, padding=1) * 2).sum(-1, keepdim=True).tanh(), x, w, groups=None)


def test_a_training_step_of_convolutions_has_groups():
    def step(x, w, u, s):
        for t in (w, u, s):
            t.grad = None
        y, z = resnet_end(x, w, u, s)
        (y.relu() + z).sum().backward()
        return w.grad, u.grad, s.grad

    adjoin.manual_seed(SEED)
    given = (
        adjoin.randn(4, 3, 64, 64),
        *(adjoin.randn(16, 3, 3, 3, requires_grad=True) for _ in range(2)),
        adjoin.randn(16),
    )
    given[3].requires_grad_(True)
    wanted = [bits(g) for g in step(*given)]
    memory = adjoin._C.lazy_memory()
    for _ in range(2):
        adjoin._C.lazy_enter(memory, 0)
        try:
            out = step(*given)
        finally:
            adjoin._C.lazy_leave()
        assert [bits(g) for g in out] == wanted
        assert adjoin._C.lazy_stats(memory)[4] >= 1

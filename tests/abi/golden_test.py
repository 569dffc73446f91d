"""tests/abi/golden_test.py: plugins that were compiled when the candidate was closed are loaded by every later build, and used.

The binaries stand in golden/rc2/bin; nobody compiles them again (golden/rc2/README.md). What is compiled here from the same
sources with today's headers must do the same, and old and new plugins must get along in one process. That plugins of the
candidate before are refused with the sentence that says why is in evolve_test.py.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from abi_tools import ADJOIN, HERE, INCLUDE, LIBADJOIN, adjoin, run, run_python
from symbols_test import NEWEST, versions_asked

RC2 = HERE / "golden/rc2"
sys.path.insert(0, str(RC2))
import build as golden  # noqa: E402

here = pytest.mark.skipif(not golden.BIN.is_dir(), reason=f"NOT TESTED: no golden plugins for {golden.BIN.name}")
PARTS = [*golden.PLUGINS, "frontend"]


@pytest.fixture(scope="session")
def sets(tmp_path_factory):
    """{"golden": where the stored ones are, "fresh": where those of today are}; copies, in folders that are trusted."""
    folder = tmp_path_factory.mktemp("golden")
    if golden.BIN.is_dir():
        shutil.copytree(golden.BIN, folder / "golden")
        (folder / "golden").chmod(0o755)
    golden.build(folder / "fresh", include=INCLUDE, prefix="fresh")
    return {"golden": folder / "golden", "fresh": folder / "fresh"}


def file_of(sets, prefix, part):
    if prefix == "golden" and not golden.BIN.is_dir():
        pytest.skip(f"NOT TESTED: no golden plugins for {golden.BIN.name}")
    return sets[prefix] / (f"{prefix}_frontend" if part == "frontend" else f"libaj_{prefix}_{part}.so")


@here
def test_nobody_has_touched_them():
    assert golden.SUMS.read_text() == golden.sums(golden.BIN), (
        "they are never compiled again: git checkout tests/abi/golden"
    )
    assert [f.name for f in sorted(golden.BIN.iterdir())] == sorted(
        ["SHA256SUMS", "golden_frontend", *(f"libaj_golden_{part}.so" for part in golden.PLUGINS)]
    )
    assert sum(f.stat().st_size for f in golden.BIN.iterdir()) < 300_000


@here
@pytest.mark.parametrize("part", PARTS)
def test_they_ask_for_no_newer_system(part):
    file = golden.BIN / ("golden_frontend" if part == "frontend" else f"libaj_golden_{part}.so")
    asked = versions_asked(file)
    assert {k: v for k, v in asked.items() if v > NEWEST.get(k, v)} == {}
    assert "libadjoin" not in subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("prefix", ["golden", "fresh"])
@pytest.mark.parametrize("part", list(golden.PLUGINS))
def test_check_agrees(part, prefix, sets):
    got = run(ADJOIN, "plugins", "check", file_of(sets, prefix, part))
    assert got.returncode == 0 and re.search(r"^verdict +ok$", got.stdout, re.M), got.stdout + got.stderr


BEGIN = """
import adjoin, math
ONLY = adjoin.plugin
def space(part):
    return getattr(adjoin.ops, f"{PREFIX}_{part}")
def close(a, b):
    adjoin.testing.assert_close(a, b)
def refused(kind, f, *words):
    try:
        made = f()
    except kind as e:
        assert all(w in str(e) for w in words), str(e)
        return
    raise AssertionError(f"not refused: {made!r}")
def tensors(*shape, dtype=adjoin.float64):
    adjoin.manual_seed(3)
    return adjoin.randn(*shape, dtype=dtype)
check, again = adjoin.autograd.gradcheck, adjoin.autograd.gradgradcheck
"""
USES = {
    "op": """
    op = space("op")
    x, y = tensors(3, 4), tensors(4) + 1
    for dtype in (adjoin.float32, adjoin.float64):
        a = x.to(dtype)
        close(op.squash(a, by=2.0), a / (2 + a.abs()))
        close(op.squash(a.t()[1:], by=0.5), (a / (0.5 + a.abs())).t()[1:])
        close(op.product(a, y.to(dtype)), a * y.to(dtype))
        into = adjoin.zeros(3, 4, dtype=dtype)
        assert op.squash(a, out=into) is into
        close(into, a / (1 + a.abs()))
        b = a.clone()
        version = b._version
        assert op.squash_(b, by=3.0) is b and b._version > version
        close(b, a / (3 + a.abs()))
    op.counts()
    op.product(x, x)
    assert list(op.counts()) == [1, 0]
    op.product(x.t(), y.reshape(4, 1))
    assert list(op.counts()) == [0, 0]
    assert op.squash(adjoin.tensor([1, -3])).dtype is adjoin.float32
    w = x.clone().requires_grad_()
    assert check(lambda t: op.squash(t, by=2.0), (w,)) and again(lambda t: op.squash(t, by=2.0), (w,))
    v = y.clone().requires_grad_()
    assert check(op.product, (w, v)) and again(op.product, (w, v))
    op.counts()
    op.product(w, y).sum().backward()  # one of two needs a gradient: the other argument alone is saved
    assert op.counts()[1] == 1
    close(w.grad, y.expand(3, 4))
    z = w * 1
    s = op.squash(z)
    s.mul_(2)
    refused(RuntimeError, lambda: s.sum().backward(), "modified by an inplace operation")
    # Views: memory, writes and gradients go through them.
    m = adjoin.arange(12.0).reshape(3, 4)
    c = op.columns(m, 1, 2)
    assert c.tolist() == [[1, 2], [5, 6], [9, 10]] and c._is_view() and c.data_ptr() == m.data_ptr() + 4
    c.add_(100)
    assert m[2].tolist() == [8, 109, 110, 11]
    refused(RuntimeError, lambda: op.columns(m, 3, 2), "not in the matrix")
    top, bottom = op.halves(adjoin.arange(6.0).reshape(2, 3))
    assert bottom.tolist() == [[3, 4, 5]] and bottom._is_view()
    assert check(lambda t: op.columns(t, 0, 3) * 2, (w,))
    leaf = adjoin.ones(2, 4, requires_grad=True)
    body = leaf * 1
    op.columns(body, 1, 2).mul_(10)
    body.sum().backward()
    assert leaf.grad.tolist() == [[1, 10, 10, 1]] * 2
    # The first argument is written.
    t = adjoin.ones(3)
    version = t._version
    assert op.accumulate(t, adjoin.arange(3.0)) is t or t.tolist()
    assert t.tolist() == [1, 2, 3] and t._version > version
    u, k = adjoin.ones(3, requires_grad=True), adjoin.ones(3, requires_grad=True)
    h = u * 2
    (op.accumulate(h, k) * adjoin.arange(3.0)).sum().backward()
    assert u.grad.tolist() == [0, 2, 4] and k.grad.tolist() == [0, 1, 2] and h.tolist() == [3, 3, 3]
    refused(RuntimeError, lambda: op.accumulate(adjoin.ones(3), adjoin.ones(4)), "one size")
    # A body, shapes that depend on data, an error with a cause.
    close(op.soft(x), x / (1 + x.abs()))
    assert check(op.soft, (w,)) and again(op.soft, (w,))
    into = adjoin.zeros(3, 4, dtype=adjoin.float64)
    op.soft(x, out=into)
    close(into, x / (1 + x.abs()))
    p = op.positive(adjoin.tensor([[1.0, -2.0], [0.0, 3.0]], requires_grad=True))
    assert p.tolist() == [1, 3] and not p.requires_grad
    refused(NotImplementedError, lambda: op.positive(x), "it has float32")
    refused(KeyError, lambda: op.refuse(x), "no key fits")
    """,
    "objects": """
    op = space("objects")
    x = adjoin.tensor([1.0, 2.0, 3.0], requires_grad=True)
    plan = op.plan(3.0)
    y = op.planned(x, plan)
    assert y.tolist() == [3, 6, 9] and op.planned(x).tolist() == [1, 2, 3]
    assert op.alive()[0] == 1
    del plan
    assert op.alive()[0] == 1, "the tape keeps it"
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    del y
    assert op.alive()[0] == 0
    refused(TypeError, lambda: op.planned(x, object()))
    # Functions, both ways.
    assert op.apply(x.detach(), lambda t, half: t * half).tolist() == [0.5, 1, 1.5]
    refused(ZeroDivisionError, lambda: op.apply(x.detach(), lambda t, half: 1 / 0))
    f = op.adder(10.0)
    assert f(x.detach()).tolist() == [11, 12, 13] and op.alive()[2] == 1
    refused(TypeError, lambda: f(1), "one tensor")
    del f
    assert op.alive()[2] == 0
    # What is owned outlives what it came from.
    told, corner = op.told(x), op.corner(adjoin.zeros(2, 3))
    assert told == "1 dimensions of float32 on cpu" and corner == 6 + 2j
    m = op.lent(5)
    part = m[2:]
    assert op.alive()[1] == 1
    del m
    assert part.tolist() == [2, 3, 4] and op.alive()[1] == 1
    del part
    assert op.alive()[1] == 0
    assert op.through_dlpack(x.detach()).tolist() == [1, 2, 3]
    assert op.through_dlpack(adjoin.arange(6.0).reshape(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    codes = op.codes(7)
    assert codes.numel() == 7 and codes.nbytes == 7 and "golden_code" in str(codes.dtype)
    # Random numbers: of a generator, or of the default one.
    g = adjoin.Generator().manual_seed(5)
    state = g.get_state().tolist()
    first = op.noise(adjoin.empty(6), generator=g)
    assert g.get_state().tolist() != state
    g.set_state(adjoin.tensor(state, dtype=adjoin.uint8))
    assert op.noise(adjoin.empty(6), generator=g).tolist() == first.tolist()
    assert (first[1:] - first[:-1]).tolist() == [1] * 5 and first[0].item() == 5 * 31 % 997
    adjoin.manual_seed(9)
    a = op.noise(adjoin.empty(4))
    assert op.noise(adjoin.empty(4)).tolist() == [v + 4 for v in a.tolist()]
    # A prepared form is made once, and again when the contents have changed.
    w, v = adjoin.arange(2000.0).reshape(200, 10), adjoin.ones(10)
    want = (2 * w @ v)
    op.alive()
    for _ in range(20):
        close(op.rows(w, v), want)
    packs = op.alive()[3]
    assert packs < 20, packs
    w.mul_(2)
    close(op.rows(w, v), 2 * want)
    assert op.alive()[3] == 1
    refused(RuntimeError, lambda: op.rows(w, adjoin.ones(3)), "its columns")
    refused((RuntimeError, NotImplementedError), lambda: op.rows(w.requires_grad_(), v).sum().backward())
    """,
    "kit": """
    op = space("kit")
    x = tensors(3, 4)
    for dtype in (adjoin.float32, adjoin.float64, adjoin.bfloat16, adjoin.float16):
        a = x.to(dtype)
        close(op.ratio(a, by=2.0), (a.double() / (2 + a.double() * a.double())).to(dtype))
    w = x.clone().requires_grad_()
    assert check(lambda t: op.ratio(t, by=2.0), (w,)) and again(lambda t: op.ratio(t, by=2.0), (w,))
    u, v = tensors(5).requires_grad_(), (tensors(10)[::2] + 1).requires_grad_()
    close(op.dot(u, v), (u * v).sum())
    assert check(op.dot, (u, v)) and again(op.dot, (u, v))
    refused(RuntimeError, lambda: op.dot(x, x), "two vectors")
    close(op.ramp(x, 3.0), x * x.relu() + 3)
    assert check(op.ramp, (w,))
    into = adjoin.zeros(3, 4, dtype=adjoin.float64)
    assert op.ramp(x, out=into) is into
    close(into, x * x.relu() + 1)
    b = x.clone()
    op.ramp_(b)
    close(b, into)
    """,
    "key": """
    op = space("key")
    x, one = adjoin.tensor([1.0, -2.0, 3.0]), adjoin.ones(3)
    for place in ("above", "below"):
        op.counts()
        with adjoin.plugin.key(f"{PREFIX}_key_{place}"):
            assert (x + one).tolist() == [3, 0, 5]  # the second argument counts twice
            assert (x + 1).tolist() == [2, -1, 4]  # declined: the fallback, then the processor
            out = adjoin.zeros(3)
            assert adjoin.add(x, one, out=out) is out and out.tolist() == [3, 0, 5]
            assert adjoin.neg(x, out=out) is out and out.tolist() == [-1, 2, -3]
            assert adjoin.exp(x, out=out) is out
            close(out, adjoin.tensor([math.exp(v) for v in (1, -2, 3)]))
            y = x.clone()
            assert y.neg_() is y and y.tolist() == [-1, 2, -3]
            y.add_(one)
            assert y.tolist() == [1, 4, -1]
            y.zero_().exp_()
            assert y.tolist() == [1, 1, 1]
            close(x.sin(), adjoin.tensor([math.sin(v) for v in (1, -2, 3)]))
            assert x.double().neg().tolist() == [-1, 2, -3]  # not a dtype of the kernel
            w = adjoin.tensor([1.0, 2.0], requires_grad=True)
            loss = (w * w.exp()).sum()
        loss.backward()
        close(w.grad, (1 + w.detach()) * w.detach().exp())
        passed, served = op.counts()
        assert passed > 3 and served > 8, (passed, served)
        x + one
        assert list(op.counts()) == [0, 0], "outside of the key"
    """,
    "blas": """
    op, blas = space("blas"), adjoin.backends.blas
    name = f"{PREFIX}_blas"
    op.calls()  # loads it
    before = blas.get()
    blas.set(name)
    op.calls()
    for dtype in (adjoin.float32, adjoin.float64):
        a, b = tensors(20, 30).to(dtype), tensors(30, 25).to(dtype)
        want = adjoin.tensor([[sum(r[k] * b.tolist()[k][j] for k in range(30)) for j in range(25)] for r in a.tolist()], dtype=dtype)
        turned = a.t().contiguous().t(), b.t().contiguous().t()
        for got in (a @ b, turned[0] @ b, a @ turned[1], adjoin.addmm(adjoin.zeros(20, 25, dtype=dtype), a, b, alpha=1)):
            adjoin.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        both = adjoin.bmm(adjoin.stack([a, 2 * a]), adjoin.stack([b, b]))
        adjoin.testing.assert_close(both, adjoin.stack([want, 2 * want]), rtol=1e-5, atol=1e-5)
        adjoin.testing.assert_close(adjoin.addmm(want, a, b, beta=-1, alpha=2), want, rtol=1e-5, atol=1e-4)
    assert op.calls() >= 12 and blas.serving(20, 25, 30, adjoin.float32) == name
    blas.set(before)
    a @ b
    assert op.calls() == 0
    """,
    "device": """
    name = f"{PREFIX}_device"
    h = adjoin.arange(24.0).reshape(4, 6)
    x = h.to(name)
    assert x.device.type == name and x.tolist() == h.tolist()
    for f in (lambda t: t[1:, 2:] * 2 + t[1:, :4], lambda t: -t.t()[2], lambda t: (t - 3).relu() / 2, lambda t: (t / 30).exp(),
              lambda t: t.add(t, alpha=0.5), lambda t: t[:, :4] @ t[:, 2:], lambda t: t.sum(1), lambda t: t[[3, 0]], lambda t: t[0, :0]):
        close(f(x).cpu(), f(h))
    for t in (h, x):
        t[1:3, 1::2].neg_()
        t[:, 1].copy_(adjoin.arange(4.0))
        adjoin.mul(t[0], t[1], out=t[2])
        t[3].fill_(5)
    assert x.tolist() == h.tolist()
    grads = []
    for t in (h, x):
        w = (t[:2] / 10).detach().requires_grad_()
        (w @ t.t() - 1).square().sum().backward()
        grads.append(w.grad.cpu())
    close(*grads)
    assert adjoin.zeros(0, device=name).tolist() == []
    """,
}
LEAVE = """
KEPT = {  # what a plugin's file stays mapped for; the key's is unmapped
    "op": ["derivative"], "objects": ["derivative"], "kit": ["derivative"], "blas": ["handed out"], "device": ["is open"],
}
name = f"{PREFIX}_{PART}"
import gc
def use():
    exec(USE, dict(globals()))
use()
gc.collect()
left = adjoin.plugin.unload(name)
assert left == "" if PART == "key" else all(w in left for w in KEPT[PART]), left
adjoin.plugin.enable(name)
use()
adjoin.plugin.disable(name)
adjoin.plugin.enable(name)
use()
print("used three times")
"""


def use(sets, prefix, part, **extra):
    program = f"PREFIX, PART, USE = {prefix!r}, {part!r}, {unindented(USES[part])!r}\n" + BEGIN + LEAVE
    file_of(sets, prefix, part)
    return run_python(program, ADJOIN_PLUGIN_PATH=sets[prefix], ADJOIN_FALLBACK="host", **extra)


def unindented(text):
    return re.sub(r"^    ", "", text, flags=re.M)


@pytest.mark.parametrize("prefix", ["golden", "fresh"])
@pytest.mark.parametrize("part", list(golden.PLUGINS))
def test_used_unloaded_used_again(part, prefix, sets):
    got = use(sets, prefix, part)
    assert got.returncode == 0 and got.stdout.endswith("used three times\n"), got.stdout + got.stderr


@here
@pytest.mark.parametrize("part", list(golden.PLUGINS))
def test_used_with_the_candidates_tables_alone(part, sets):
    """Tables that end where those of the candidate do, right before a page that cannot be read."""
    got = use(sets, "golden", part, ADJOIN_ABI_TRUNCATE="1")
    assert got.returncode == 0 and got.stdout.endswith("used three times\n"), got.stdout + got.stderr


@pytest.mark.parametrize("prefix", ["golden", "fresh"])
def test_the_frontend(prefix, sets):
    """It reaches libadjoin by dlopen alone; the plugin that it loads is of the other set."""
    other = "fresh" if prefix == "golden" else "golden" if golden.BIN.is_dir() else "fresh"
    got = run(file_of(sets, prefix, "frontend"), LIBADJOIN, file_of(sets, other, "key"), f"{other}_key")
    assert got.returncode == 0 and got.stdout.endswith("all held\n"), got.stdout + got.stderr


@here
def test_old_and_new_in_one_process(sets):
    program = (
        BEGIN
        + """
old, new = adjoin.ops.golden_objects, adjoin.ops.fresh_objects
x = adjoin.tensor([1.0, 2.0])
one, two = old.plan(2.0), new.plan(3.0)
assert old.planned(x, one).tolist() == [2, 4] and new.planned(x, two).tolist() == [3, 6]
refused(TypeError, lambda: old.planned(x, two), "golden_objects::plan", "fresh_objects::plan")
refused(TypeError, lambda: new.planned(x, one), "golden_objects::plan", "fresh_objects::plan")
assert old.codes(3).dtype is new.codes(3).dtype  # both registered it
assert new.apply(x, lambda t, half: old.apply(t, lambda u, _: u * half)).tolist() == [0.5, 1]
assert old.apply(old.adder(1.0)(new.adder(2.0)(x)), lambda t, half: t).tolist() == [4, 5]
a, b = adjoin.ops.golden_op, adjoin.ops.fresh_op
w = tensors(3, 4).requires_grad_()
assert check(lambda t: a.product(b.squash(t), b.soft(a.squash(t))), (w,))
with adjoin.plugin.key("golden_key_above"), adjoin.plugin.key("fresh_key_below"):
    assert (x + x).tolist() == [5, 10]  # the second argument twice at each: four times
h = adjoin.arange(6.0).reshape(2, 3)
h.to("golden_device").to("fresh_device")
close(((h.to("golden_device") * 2).to("fresh_device") + 1).cpu(), h * 2 + 1)
blas = adjoin.backends.blas
for name in ("golden_blas", "fresh_blas"):
    getattr(adjoin.ops, name).calls()
    blas.set(name)
    (adjoin.ones(20, 20) @ adjoin.ones(20, 20)).sum().item() == 8000 or 1 / 0
    assert getattr(adjoin.ops, name).calls() == 1
assert adjoin.plugin.unload("fresh_op") == "" or True
close(a.squash(x), x / (1 + x))
print("together")
"""
    )
    path = f"{sets['golden']}:{sets['fresh']}"
    got = run_python(program, ADJOIN_PLUGIN_PATH=path, ADJOIN_FALLBACK="host")
    assert got.returncode == 0 and got.stdout == "together\n", got.stdout + got.stderr


@here
def test_the_stored_device_conforms(sets):
    words = [w for op in ("add", "copy_", "fill_", "mm", "relu") for w in ("--op", op)]
    got = adjoin("conform", file_of(sets, "golden", "device"), *words, timeout=120)
    assert got.returncode == 0, got.stdout + got.stderr


@here
def test_what_its_note_says_is_read_without_loading(sets):
    got = adjoin("ops", "golden_op::squash", ADJOIN_PLUGIN_PATH=sets["golden"])
    assert got.returncode == 0 and "golden_op::squash(Tensor x, *, float by=1.0) -> Tensor" in got.stdout, (
        got.stdout + got.stderr
    )


def test_the_same_bytes_every_time(tmp_path):
    """Compiled in two places by one compiler: nothing in them says where or when."""
    both = [golden.build(tmp_path / name, parts=["op", "key"]) for name in ("one", "two")]
    assert [Path(f).read_bytes() for f in both[0].values()] == [Path(f).read_bytes() for f in both[1].values()]

"""tests/abi/lent_test.py: a tensor to be written is lent to a kernel at a key: it is left, passed on, replaced, or somebody else's."""

import shutil

import pytest

from abi_tools import HERE, HOST_FLAGS, build_host, compile_plugin, run, run_python

GOOD = {  # op of lent.c: what comes of 0.25, -1, 4
    "neg": "41.000 41.000 41.000",
    "abs": "0.250 1.000 4.000",
    "exp": "1.284 0.368 54.598",
    "tanh": "41.000 41.000 41.000",
    "sin": "0.247 -0.841 -0.757",
    "cos": "0.969 0.540 -0.654",
    "trunc": "0.000 -1.000 4.000",
    "expm1": "0.284 -0.632 53.598",
    "arctan": "0.245 -0.785 1.326",
}
BAD = {
    "sqrt": "error 13 sqrt: plugin 'lent' on cpu: broken on the way",
    "square": "error 13 square: plugin 'lent' on cpu: broken at once",
    "sign": "error 13 sign: plugin 'lent' on cpu gave None as result 0; its schema is sign(Tensor input) -> Tensor",
    "floor": "error 13 floor: plugin 'lent' on cpu gave int as result 0; its schema is floor(Tensor input) -> Tensor",
    "ceil": "error 16 ceil: 2 arguments given, at most 1 are possible: ceil(Tensor input) -> Tensor",
    "lent::only": "error 12 only: plugin 'lent' on cpu: not by this one",
}
SHAPE = "error 3 round: the tensor to write has shape [3], the result has [2, 3]; it must be empty or of that shape"
FORMS = ["new", "out", "in place"]
WANT = [
    *(f"{op} {form}: {said}" for op, said in {**GOOD, **BAD}.items() for form in FORMS),
    "round new: 0.000 -1.000 4.000 0.000 -1.000 4.000",
    *(f"round {form}: {SHAPE}" for form in FORMS[1:]),
    "zero_ new: 0.000 0.000 0.000",
    "fill_ new: 17.000 17.000 17.000",  # a new tensor was given: it is copied into the argument
    "max.dim out: 4.000 2",
    "done",
]


@pytest.fixture(scope="module")
def lent(tmp_path_factory):
    """lent(key, ...): lines of the program with these keys on its thread."""
    folder = tmp_path_factory.mktemp("lent")
    text = (HERE / "lent.c").read_text()
    plugin = compile_plugin(folder, text, "lent", flags=["-std=c11", "-Werror", *HOST_FLAGS])
    (folder / "host.c").write_text("#define HOST\n" + text)
    program = build_host(folder / "host", source=folder / "host.c")

    def lines(*keys, before=()):
        got = run(*before, program, plugin, *keys)
        assert got.returncode == 0, got.stdout + got.stderr
        return sorted(got.stdout.splitlines())

    lines.plugin = plugin
    return lines


@pytest.mark.parametrize("keys", ["lent", "bare", "over lent", "over bare", "high", "over high"])
def test_every_manner_in_every_form(keys, lent):
    """With a fallback at the key and without, by one key and through two; references are counted by the program."""
    assert lent(*keys.split()) == sorted(WANT)


def test_two_keys_with_kernels(lent):
    """What one passes on is lent to the other; round, whose argument each doubles, aside."""
    assert [line for line in lent("lent", "bare") if "round" not in line] == sorted(w for w in WANT if "round" not in w)


@pytest.mark.skipif(not shutil.which("valgrind"), reason="NOT TESTED: valgrind is not installed")
@pytest.mark.skipif(bool(HOST_FLAGS), reason="a sanitizer looks already")
def test_no_reference_is_lost_or_counted_twice(lent):
    words = [
        "valgrind",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--trace-children=no",
        "-q",
    ]
    assert lent("over", "lent", before=words) == sorted(WANT)


RECORDED = """
import adjoin
adjoin.load_plugin(PLUGIN)
def refused(f, *words):
    try:
        made = f()
    except (RuntimeError, NotImplementedError) as e:
        assert all(w in str(e) for w in words), str(e)
        return
    raise AssertionError(f"not refused: {made!r}")
for key in ("lent", "high", "over"):
    w = adjoin.tensor([0.5, 1.0], requires_grad=True)
    with adjoin.plugin.key(key):
        z = w * 2
        z.exp_()  # replaced: exp(2 w)
        z = z.clone()
        z.abs_()  # passed on
        z = z.clone()
        z.sin_()  # declined
    z.sum().backward()
    want = 2 * adjoin.exp(2 * w.detach()) * adjoin.exp(2 * w.detach()).cos()
    adjoin.testing.assert_close(w.grad, want)
    with adjoin.plugin.key(key):
        refused(lambda: w.exp_(), "leaf")  # as without the key
        refused(lambda: adjoin.exp(w, out=adjoin.zeros(2)), "out=") if key != "high" else None
    s = w.detach() * 1
    saved = (s * w).sum()
    with adjoin.plugin.key(key):
        s.exp_()
    refused(saved.backward, "modified by an inplace operation")
with adjoin.plugin.key("high"):
    z = w * 2
    refused(lambda: z.neg_(), "plugin 'lent'", "key 'high'", "past the tape", "no_grad")
    with adjoin.no_grad():
        z.neg_()
        assert z.tolist() == [41.0, 41.0]
    s = w.detach() * 1
    version = s._version
    s.neg_()
    assert s.tolist() == [41.0, 41.0] and s._version == version + 1
print("held")
"""


def test_what_is_written_stays_on_the_tape(lent):
    """Above the tape and below it: gradients through what a kernel replaced, passed on or declined; never a silent wrong one."""
    got = run_python(f"PLUGIN = {str(lent.plugin)!r}\n" + RECORDED)
    assert got.returncode == 0 and got.stdout == "held\n", got.stdout + got.stderr


# Body::ret of the kit, and kernels of its own, at a key.
KIT = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin;
using namespace adjoin::kit;
namespace {
// Three times the argument, by ret(): it copies into what is lent, or puts a new one there.
void triple(Body& b) { b.ret(0, b.tensor(0) * 3); }
// The tensor itself: nothing is to be copied where it is the one that is written.
void same(Body& b) { b.ret(0, b.tensor(0)); }
void breaks(Body& b) {
  b.ret(0, b.tensor(0) * 3);
  raise(AJ_INTERNAL, "after it was written");
}
}  // namespace
AJ_PLUGIN(.name = "lentkit", .version = "1", .provides = "key:lentkit") {
  uint64_t mask;
  check(dispatch().def_key(plugin.env()->registrar, AJ_STR_LIT("lentkit"), AJ_KEY_BELOW_AUTOGRAD, &mask));
  static const Kernel kernels[] = {{"neg", {body<triple>, 0, 0}}, {"abs", {body<same>, 0, 0}},
                                   {"exp", {body<breaks>, 0, 0}}, {nullptr, {nullptr, 0, 0}}};
  plugin.kernels("lentkit", kernels);
}
"""
PROGRAM = """
import sys
import adjoin
x = adjoin.tensor([1.0, -2.0])
with adjoin.plugin.key("lentkit"):
    assert x.neg().tolist() == [3, -6]
    out = adjoin.zeros(2)
    version = out._version
    assert adjoin.neg(x, out=out) is out and out.tolist() == [3, -6] and out._version > version
    assert adjoin.neg(out, out=out) is out and out.tolist() == [9, -18]
    y = x.clone()
    assert y.neg_() is y and y.tolist() == [3, -6]
    assert y.abs_() is y and y.tolist() == [3, -6]
    assert adjoin.abs(x, out=out).tolist() == [1, -2] and x.abs().tolist() == [1, -2]
    strided = adjoin.zeros(4)
    adjoin.neg(x, out=strided[::2])
    assert strided.tolist() == [3, 0, -6, 0]
    narrow = adjoin.zeros(2, dtype=adjoin.float64)
    assert adjoin.neg(x, out=narrow).tolist() == [3, -6]
    for form in (lambda: x.exp(), lambda: adjoin.exp(x, out=out), lambda: x.clone().exp_()):
        try:
            form()
        except RuntimeError as e:
            assert "after it was written" in str(e), e
        else:
            raise AssertionError("it failed")
    w = adjoin.tensor([1.0, -2.0], requires_grad=True)
    z = w * 2
    z.neg_()  # recorded as the op that it is, whatever the kernel computes
    loss = (z * z).sum()
    assert z.tolist() == [6, -12]
    a = adjoin.zeros(2)
    before = sys.getrefcount(a)
    for _ in range(1000):
        adjoin.neg(x, out=a)
        a.neg_()
        a.abs_()
    assert sys.getrefcount(a) == before
loss.backward()
assert w.grad.tolist() == [-24, 48], w.grad.tolist()
assert adjoin.neg(x, out=out).tolist() == [-1, 2]
print("held")
"""


def test_results_of_the_kit(tmp_path):
    compile_plugin(tmp_path, KIT, "lentkit", "g++", ["-std=c++20", "-O0"], suffix=".cpp")
    got = run_python(PROGRAM, ADJOIN_PLUGIN_PATH=tmp_path)  # the name of the key loads it
    assert got.returncode == 0 and got.stdout == "held\n", got.stdout + got.stderr

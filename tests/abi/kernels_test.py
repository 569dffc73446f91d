"""tests/abi/kernels_test.py: what a plugin's kernel does wrong is told with op, plugin and device; what it declines goes on; what
does not come back can be interrupted, and is named."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from abi_tools import clean_environment, compile_plugin

SOURCE = Path(__file__).with_name("kernels.c").read_text()
BEGIN = """
import sys, adjoin as t
t.load_plugin(sys.argv[1])
v, x = t.ops.vega, t.ones(2, 3)
def told(f, *args):
    try:
        print(f(*args))
    except BaseException as e:
        print(type(e).__name__, e)
"""


@pytest.fixture(scope="module")
def vega(tmp_path_factory):
    return compile_plugin(tmp_path_factory.mktemp("vega"), SOURCE, "vega", "gcc", ["-Wno-missing-field-initializers"])


def start(plugin, program, **extra):
    import adjoin

    path = str(Path(adjoin.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + program, str(plugin)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(PYTHONPATH=path, PYTHONUNBUFFERED=1, **extra),
    )


def output(plugin, program, **extra):
    p = start(plugin, program, **extra)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    return out.strip(), err


@pytest.mark.parametrize(
    "call, said",
    [
        ("v.empty, x", "RuntimeError empty: plugin 'vega' on cpu gave None as result 0; its schema is vega::empty(Tensor x) -> Tensor"),
        ("v.number, x", "RuntimeError number: plugin 'vega' on cpu gave int as result 0; its schema is vega::number(Tensor x) -> Tensor"),
        ("v.no_pointer, x", "RuntimeError no_pointer: plugin 'vega' on cpu gave None as result 0; its schema is "
                            "vega::no_pointer(Tensor x) -> Tensor"),
        ("v.undeclared, x", "RuntimeError undeclared: its infer, of plugin 'vega', has declared no result 0; its schema is "
                            "vega::undeclared(Tensor x) -> Tensor"),
        ("v.no_view, x", "RuntimeError no_view: its infer, of plugin 'vega', has declared no result 0; its schema is "
                         "vega::no_view(Tensor(a) x) -> Tensor(a)"),
        ("v.body_of_nothing, x", "RuntimeError body_of_nothing: its body, of plugin 'vega', gave None as result 0; its schema is "
                                 "vega::body_of_nothing(Tensor x) -> Tensor"),
        ("v.body_of_body, x", "RuntimeError body_of_body: 256 calls inside each other: its body leads back to it"),
        ("v.kernel_in_kernel, x", "RuntimeError kernel_in_kernel: plugin 'vega' on cpu: 256 calls inside each other: its kernel leads back to it"),
        ("v.broken, x", "RuntimeError broken: plugin 'vega' on cpu: broken half way"),
        ("v.misused, x", "RuntimeError misused: the number must be odd"),
        ("v.no_utf8, x", "RuntimeError no_utf8: plugin 'vega' on cpu: caf\ufffd"),
        ("v.refuses, x", "NotImplementedError refuses: plugin 'vega' on cpu: not for me"),
        *((f"v.{name}, x{more}", f"RuntimeError {name}: plugin 'vega' on cpu left {what} as result 0; a kernel that has a plan writes the tensor "
                                 "that is there")
          for name, more, what in (("other", "", "another tensor"), ("other_of_two", ", x", "another tensor"),
                                   ("other_of_two", ", t.ones(3)", "another tensor"), ("other_sum", "", "another tensor"),
                                   ("vanished", "", "None"), ("vanished", ".t()", "None"))),
        ("v.vanished_too, x", "RuntimeError vanished_too: plugin 'vega' on cpu: went away"),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_named(vega, call, said):
    assert output(vega, f"told({call})\ntold({call})")[0].splitlines() == [said] * 2


def test_a_kernel_without_a_plan_may_give_another_tensor(vega):
    program = """
print(v.new(x).tolist())
out = t.zeros(2, 3)
view = out[:]
print(v.new(x, out=out) is out, out.tolist() == view.tolist() == [[2.0] * 3] * 2)
wide = t.zeros(2, 3, dtype=t.float64)
print(v.new(x, out=wide).tolist())
out.fill_(5)
told(lambda: v.other(x, out=out))
told(lambda: v.other_sum(x, out=t.zeros(())))
print(out.tolist() == [[5.0] * 3] * 2)
"""
    twos, refused = (
        str([[2.0] * 3] * 2),
        "left another tensor as result 0; a kernel that has a plan writes the tensor that is there",
    )
    lines = output(vega, program)[0].splitlines()
    assert lines[:3] == [twos, "True True", twos], lines
    assert all(refused in line for line in lines[3:5]) and lines[5:] == ["True"], lines


def test_tags_of_a_plugins_op_count_on_a_device_that_has_lists(vega):
    """The list of cpu knows the ops that come with libadjoin: it leaves exp alone, whose tag says float32."""
    program = """
low = x.bfloat16()
for on in (True, False):
    with t.autocast("cpu", dtype=t.bfloat16, enabled=on):
        print(v.low(x).dtype, v.high(low).dtype, low.exp().dtype)
"""
    assert output(vega, program)[0].splitlines() == [
        "adjoin.bfloat16 adjoin.float32 adjoin.bfloat16",
        "adjoin.float32 adjoin.bfloat16 adjoin.bfloat16",
    ]


def test_what_a_kernel_declines_goes_to_the_next_one_and_to_the_body(vega):
    program = """
y = t.ones(2, 2, requires_grad=True)
print(v.next(x).tolist(), v.to_body(x).tolist(), v.to_body(y).sum().item())
with t.no_grad():
    print(v.to_body(y).tolist())
print(v.pointwise(x, x).tolist(), v.pointwise(x, 1.0).tolist(), v.pointwise(x, t.ones(3)).tolist())
told(lambda: v.flat(x, t.ones(3)))
print(v.flat(x, x).tolist())
"""
    twos, ones = [[2.0] * 3] * 2, [[1.0] * 3] * 2
    assert output(vega, program)[0].splitlines() == [
        f"{twos} {twos} 8.0",
        str([[2.0] * 2] * 2),
        f"{ones} {ones} {twos}",
        "NotImplementedError flat: no cpu kernel takes this call; candidates declined: vega",
        str(ones),
    ]


def test_the_host_serves_a_device_of_host_memory_without_copy(vega):
    program = """
y = t.arange(6.0, device='vega').reshape(2, 3)
print((y * 2).sum(), y.mean().item(), y.t().max().item(), t.tensor(3.0, device='vega') + 1, y[0, 0], float(y[1, 2]))
y[0] = 7
y.add_(t.tensor(1.0))
print(y.tolist(), y.to('cpu').sum().item())
z = y.clone().requires_grad_()
(z * z).sum().backward()
print(z.grad.tolist())
"""
    out = output(vega, program, ADJOIN_FALLBACK="host")[0].splitlines()
    assert out[0].startswith("tensor(30., device='vega") and "tensor(4., device='vega" in out[0], out
    assert out[1:] == ["[[8.0, 8.0, 8.0], [4.0, 5.0, 6.0]] 39.0", "[[16.0, 16.0, 16.0], [8.0, 10.0, 12.0]]"]


WAITS = {
    "a kernel that asks": "v.polls(x)",
    "an event": "e = t.get_device_module('lyra').Event(); e.record(); e.synchronize()",
    "a stream": "t.get_device_module('lyra').current_stream().synchronize()",
    "a device": "t.get_device_module('lyra').synchronize()",
}


@pytest.mark.parametrize("what", WAITS)
def test_who_waits_can_be_interrupted(vega, what):
    p = start(vega, f"print('ready')\n{WAITS[what]}", ADJOIN_WATCHDOG="0.2")
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    time.sleep(0.7)
    began = time.monotonic()
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert "KeyboardInterrupt" in err, err
    if what == "a kernel that asks":
        assert (
            "adjoin: vega::polls: plugin 'vega' on cpu: its kernel has been running for 0 s and has not come back yet"
            in err
        )
    if what == "a device":
        assert (
            "adjoin: lyra: plugin 'vega': what is queued there has been waited for for 0 s and is not done yet" in err
        )


def test_a_kernel_that_takes_long_is_named_once(vega):
    line = "adjoin: vega::sleeps: plugin 'vega' on cpu: its kernel has been running for"
    assert output(vega, "v.sleeps(x)", ADJOIN_WATCHDOG="0.4")[1].count(line) == 1
    assert line not in output(vega, "v.sleeps(x)", ADJOIN_WATCHDOG="0")[1]
    assert line not in output(vega, "v.sleeps(x)")[1]
    many = "import time\nend = time.time() + 1.5\nwhile time.time() < end: v.next(x)"
    assert "adjoin:" not in output(vega, many, ADJOIN_WATCHDOG="0.4")[1]

"""tests/extensions/examples_test.py: the examples build with one line against the installed headers and do what they say."""

import os
import subprocess
import sys


def run(built, name, program, **environment):
    start = f"import adjoin as T\nT.load_plugin({str(built / f'libaj_{name}.so')!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_dispatch_key(built):
    run(
        built,
        "tally",
        """
calls = lambda op: T.ops.tally.calls(T.tensor(0), op).item()
x = T.randn(4, requires_grad=True)
with T.plugin.key("tally"):
    (x * x).sum().backward()
x * x
assert calls("sum") == 1 and calls("mul") >= 2 and calls("mul") == 0
(g,) = T.autograd.grad((x * x).sum(), x)
assert T.equal(g, x.grad)
""",
    )


def test_a_dtype(built):
    run(
        built,
        "fixed16",
        """
fixed = T.dtype("fixed16")
x = T.tensor([0.5, -1.25, 127.9, 300.0])
y = x.to(fixed)
assert y.dtype is fixed and y.element_size() == 2 and str(fixed) == "adjoin.fixed16"
assert y.to(T.float64).tolist() == [0.5, -1.25, 127.8984375, 127.99609375]
assert (y[:2] * y[:2] + y[:2]).to(T.float32).tolist() == [0.75, 0.3125]
grid = T.arange(6).reshape(2, 3).to(fixed)
assert T.equal((grid.t() - grid.t()).to(T.int64), T.zeros(3, 2, dtype=T.int64))
try:
    y + x
except TypeError as error:
    assert "fixed16" in str(error) or "common" in str(error), error
else:
    raise AssertionError("fixed16 and float32 have no common dtype")
""",
    )


def test_a_device(built):
    done = run(
        built,
        "locker",
        """
T.manual_seed(0)
x = T.randn(4, 3, device="locker")
w = T.ones(3, 2, requires_grad=True, device="locker")
((x @ w).tanh() * 2).sum().backward()
here = w.detach().cpu().requires_grad_(True)
((x.cpu() @ here).tanh() * 2).sum().backward()
assert w.grad.device.type == "locker" and T.allclose(w.grad.cpu(), here.grad)
assert T.equal(x.t().cpu(), x.cpu().t()) and T.equal(x[:, 1:].to(T.float64).cpu(), x.cpu()[:, 1:].double())
x[1:3, ::2] = 7
assert x.cpu()[1:3, ::2].tolist() == [[7, 7], [7, 7]] and "device='locker:0'" in repr(x)
print(len(T.fallbacks()))
""",
        ADJOIN_FALLBACK="host",
    )
    assert int(done.stdout) > 3


def test_a_device_without_copies_refuses_with_a_reason(built):
    run(
        built,
        "locker",
        """
x = T.arange(6.0).reshape(2, 3).to("locker")
assert T.equal(x.t().cpu(), T.arange(6.0).reshape(2, 3).t())  # copies between devices are no fallback
try:
    x + 1
except NotImplementedError as error:
    assert "locker" in str(error) and "ADJOIN_FALLBACK" in str(error), error
else:
    raise AssertionError("there is no kernel")
""",
        ADJOIN_FALLBACK="error",
    )

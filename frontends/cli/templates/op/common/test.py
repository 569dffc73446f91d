"""test.py: the op's values beside the formula, first and second derivatives beside finite differences, inputs of all sorts."""

from pathlib import Path

import adjoin as T

T.load_plugin(str(Path(__file__).parent / "libaj_acme.so"))
acme = T.ops.acme.acme


def formula(x, by=1.0):
    return x / (by + x.abs())


x = T.linspace(-3, 3, 24, dtype=T.float64).reshape(4, 6)
for case in (x, x.t(), x[:, ::2], x[1:1], x[0, 0], x.float(), T.arange(-3, 3)):
    got, wanted = acme(case, by=2.0), formula(case, by=2.0)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, (case.shape, case.dtype)
    assert T.allclose(got, wanted, rtol=1e-6), (case.shape, case.dtype)

out = T.empty(4, 6, dtype=T.float64)
assert acme(x, out=out) is out and T.allclose(out, formula(x))

leaf = x.clone().requires_grad_(True)
assert T.autograd.gradcheck(acme, (leaf,)) and T.autograd.gradgradcheck(acme, (leaf,))

for device in ("cuda", "hip"):
    if getattr(T, device).is_available():
        assert T.allclose(acme(x.to(device)).cpu(), formula(x)), device
print("test: everything holds")

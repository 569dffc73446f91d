"""tests/extensions/functions_test.py: the examples that wrap SciPy, Numba and Cython in a Function, differentiated twice."""

import subprocess
import sys

import pytest
from installed import SOURCES

import adjoin as T
from adjoin.autograd import gradcheck, gradgradcheck


def inputs(*shape):
    T.manual_seed(3)
    return T.randn(*shape, dtype=T.float64, requires_grad=True)


def test_scipy():
    pytest.importorskip("scipy")
    from bessel import bessel

    x = inputs(2, 3)
    assert gradcheck(bessel, (x,)) and gradgradcheck(bessel, (x,))
    assert bessel(T.tensor(0.0, dtype=T.float64)).item() == 1


def test_numba():
    pytest.importorskip("numba")
    from recurrence import recurrence

    x, decay = inputs(2, 5), T.tensor(0.7, dtype=T.float64, requires_grad=True)
    assert recurrence(T.ones(3), decay.detach()).tolist() == pytest.approx([1, 1.7, 2.19])
    assert gradcheck(recurrence, (x, decay)) and gradgradcheck(recurrence, (x, decay))


def test_cython(tmp_path, monkeypatch):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    (tmp_path / "hermite.pyx").write_text((SOURCES / "hermite.pyx").read_text())
    line = [sys.executable, "-m", "Cython.Build.Cythonize", "-i", "-3", "hermite.pyx"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    from hermite import hermite

    x = inputs(2, 3)
    assert T.allclose(hermite(x, 2), 4 * x * x - 2)
    assert gradcheck(lambda x: hermite(x, 4), (x,)) and gradgradcheck(lambda x: hermite(x, 4), (x,))

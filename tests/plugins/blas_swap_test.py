"""tests/plugins/blas_swap_test.py: BLAS libraries swapped within one process, mixed by routine, forked after."""

import ctypes
import glob
import os

import pytest

import adjoin

blas = adjoin.backends.blas


def usable(name):
    try:
        return hasattr(ctypes.CDLL(name, mode=os.RTLD_LOCAL), "cblas_sgemm")
    except OSError:
        return False


# The reference BLAS where Debian keeps it, else whichever the system calls BLAS.
REFERENCE = [*glob.glob("/usr/lib/*/blas/libblas.so.3"), *glob.glob("/usr/lib/*/libblas.so.3")][:1]
HERE = [name for name, file in (("openblas", "libopenblas.so.0"), ("blis", "libblis.so.4")) if usable(file)]
HERE += [path for path in REFERENCE if usable(path)]
ULP = {adjoin.float32: 2.0**-23, adjoin.float64: 2.0**-52, adjoin.complex64: 2.0**-23, adjoin.complex128: 2.0**-52}


@pytest.fixture(autouse=True)
def nobody_chosen():
    yield
    blas.set("")


def operands(dtype):
    generator = adjoin.Generator().manual_seed(7)
    a = adjoin.rand(70, 90, generator=generator, dtype=adjoin.float64) + 0.5
    b = adjoin.rand(90, 50, generator=generator, dtype=adjoin.float64) + 0.5
    return a.to(dtype), b.to(dtype)


def ulp_apart(x, y):
    """In units of the last place: elements are positive sums, nothing cancels."""
    wide = adjoin.complex128 if x.is_complex() else adjoin.float64
    return ((x.to(wide) - y.to(wide)).abs() / (y.to(wide).abs() * ULP[x.dtype])).max().item()


def in_child(f):
    """Whether f() is true in a forked child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if f() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("dtype", list(ULP), ids=str)
def test_libraries_are_swapped_within_one_process_and_forks_go_on(dtype):
    if len(HERE) < 3:
        print("NOT TESTED with three libraries: only", HERE)
    a, b = operands(dtype)
    blas.set("own")
    own = a @ b
    for _ in range(2):
        for name in HERE:
            blas.set(name)
            assert blas.serving(70, 50, 90, dtype) == name and blas.get() == name
            product = a @ b
            assert ulp_apart(product, own) <= 16
            again = a @ b
            assert again.tolist() == product.tolist()
            assert in_child(lambda product=product: (a @ b).tolist() == product.tolist())
    blas.set("")
    assert ulp_apart(a @ b, own) <= 16


def test_routines_are_mixed():
    if not HERE:
        pytest.skip("NOT TESTED: no BLAS is installed")
    one, other = HERE[0], HERE[-1]
    blas.set(f"{one},dgemm=own,cgemm={other}")
    serving = {dtype: blas.serving(64, 64, 64, dtype) for dtype in ULP}
    assert serving == {adjoin.float32: one, adjoin.float64: "own", adjoin.complex64: other, adjoin.complex128: one}
    blas.set(f"dgemm={other}")  # the rest is served as if nobody were chosen
    assert blas.serving(64, 64, 64, adjoin.float64) == other and blas.serving(64, 64, 64, adjoin.float32) == "own"
    for dtype in ULP:
        a, b = operands(dtype)
        x = a @ b
        blas.set("own")
        assert ulp_apart(x, a @ b) <= 16
        blas.set(f"dgemm={other}")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("/no/such/lib.so", "cannot be used"),
        ("blurb", "blurb"),
        ("qgemm=own", "no routine 'qgemm'"),
        ("own,dgemm=/no/lib.so", "cannot be used"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(name, told, capfd):
    blas.set("own")
    with pytest.raises((RuntimeError, ValueError), match=told):
        blas.set(name)
    assert blas.get() == "own" and blas.serving(64, 64, 64) == "own"


def test_those_who_are_there_are_listed():
    names = [name for name, _, _ in blas.available()]
    assert "own" in names and all(name in names for name in HERE if "/" not in name)
    assert len(names) == len(set(names))

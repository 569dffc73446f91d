"""bench/transforms.py: Fourier transforms: lines of powers of two, of other lengths, of primes; batches, planes, real numbers."""

import math

from rivals import READY, drawn, jitted
from table import case


def transform(name, statement, *shape, complex_numbers=True, lines=None):
    """lines: the length and the count of what is transformed; without it the whole is one line."""
    n, count = lines or (shape[-1], math.prod(shape[:-1]))
    dtype = "complex64" if complex_numbers else "float32"
    work = (5 if complex_numbers else 2.5) * count * n * math.log2(n)
    kind, axis = statement.split("(")[0].removeprefix("f."), 0 if "dim=0" in statement else -1
    case(
        "fft",
        "fft_" + name,
        statement,
        lambda T: {"f": T.fft, "x": T.randn(*shape, dtype=getattr(T, dtype))},
        flops=work,
        rivals={
            "scipy": (statement.replace("dim=", "axis="), lambda: of_scipy(dtype, shape)),
            "pyfftw": ("plan()", lambda: of_fftw(kind, axis, dtype, shape)),
            "jax": (READY, lambda: of_jax(kind, axis, dtype, shape)),
        },
    )


def of_scipy(dtype, shape):
    import scipy.fft

    return {"f": scipy.fft, "x": drawn(*shape, kind=dtype)}


def of_fftw(kind, axis, dtype, shape):
    """A plan that was measured for this shape."""
    import pyfftw

    x = pyfftw.empty_aligned(shape, dtype=dtype)
    options = {} if kind == "fft2" else {"axis": axis}
    plan = getattr(pyfftw.builders, kind)(x, threads=1, planner_effort="FFTW_MEASURE", **options)
    plan.input_array[:] = drawn(*plan.input_array.shape, kind=dtype)
    return {"plan": plan}


def of_jax(kind, axis, dtype, shape):
    import jax.numpy as jnp

    options = {} if kind == "fft2" else {"axis": axis}
    return jitted(lambda x: getattr(jnp.fft, kind)(x, **options), drawn(*shape, kind=dtype))


for n in (8, 64, 256, 1024, 4096, 1 << 16, 1 << 18, 1 << 20, 100, 1000, 3**8, 10_000, 31, 101, 1009, 10_007):
    transform(str(n), "f.fft(x)", n)
for n in (8, 64, 256, 1024, 4096, 1000, 1009):
    transform(f"64x{n}", "f.fft(x)", 64, n)
for n in (32, 256, 1024):
    transform(f"plane_{n}", "f.fft2(x)", n, n, lines=(n * n, 1))
for n in (256, 1024, 1 << 16, 1 << 20):
    transform(f"real_{n}", "f.rfft(x)", n, complex_numbers=False)
    transform(f"to_real_{n}", "f.irfft(x)", n // 2 + 1, lines=(n, 1))
for shape in ((24, 224, 224), (64, 1000)):
    transform(f"real_{'x'.join(map(str, shape))}", "f.rfft(x)", *shape, complex_numbers=False)
transform("real_columns_1024x64", "f.rfft(x, dim=0)", 1024, 64, lines=(1024, 64), complex_numbers=False)
transform("planes_24x224x224", "f.fft2(x)", 24, 224, 224, lines=(224 * 224, 24))
transform("real_64x1024", "f.rfft(x)", 64, 1024, complex_numbers=False)
transform("columns_1024x64", "f.fft(x, dim=0)", 1024, 64, lines=(1024, 64))

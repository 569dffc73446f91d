"""tests/ops/rows_forward_test.py: the derivative along a direction of every row, in forward mode and by two backward passes,
against differences and against its gradients: <g, J t> = <J'g, t>.
"""

import coverage_table as table
import pytest
import samples
from rows import TENSOR_ROWS
from rows_gradient_test import differentiable, gradient_sample, small

import adjoin as T

ROWS = [r for r in TENSOR_ROWS if differentiable(r)]


def inner(a, b):
    """The real inner product of two lists of tensors."""
    return sum((x.detach().conj() * y.detach()).sum().real.item() for x, y in zip(a, b, strict=True))


def drawn(tensors, seed):
    generator = T.Generator()
    generator.manual_seed(seed)
    return tuple(T.randn(t.shape, dtype=t.dtype, generator=generator) for t in tensors)


def samples_of(row, dtype=None):
    dtype = dtype or ("float64" if "float64" in row.dtypes() else "complex128")
    fit = [s for s in samples.all_samples(row, dtype, table.SEED) if small(s[0])]
    for given, other in table.pick(fit, 3, row.name + "forward"):
        try:
            sample = gradient_sample(row, given, other)
        except (RuntimeError, NotImplementedError):  # not of these numbers
            assert dtype == "complex128"
            continue
        if sample is not None:
            yield sample


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_along_a_direction(row):
    for function, inputs in samples_of(row):
        primals = tuple(x.detach() for x in inputs)
        results = function(*inputs)
        tangents, weights = drawn(primals, 1), drawn(results, 2)
        gradients = T.autograd.grad(results, inputs, weights, materialize_grads=True)
        expected = inner(gradients, tangents)
        _, moved = T.func.jvp(function, primals, tangents)
        _, again = T.autograd.functional.jvp(function, primals, tangents)
        _, along = T.func.linearize(function, *primals)
        for found in (moved, again, along(*tangents)):
            assert inner(weights, found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


STEP = 1e-6


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_forward_mode_against_differences(row):
    for function, inputs in samples_of(row):
        primals = tuple(x.detach() for x in inputs)
        tangents = drawn(primals, 1)
        _, moved = T.func.jvp(function, primals, tangents)
        with T.no_grad():
            up, down = (
                function(*(x + sign * STEP * t for x, t in zip(primals, tangents, strict=True))) for sign in (1, -1)
            )
        for found, a, b in zip(moved, up, down, strict=True):
            T.testing.assert_close(found, (a - b) / (2 * STEP), atol=1e-5, rtol=1e-4)


# Rows that reckon with complex numbers but whose gradients do not, as their own tests say in float64 alone.
REAL_GRADIENTS = {
    "_::glu_each", "nn::glu", "_::huber_each", "nn::huber_loss", "nn::smooth_l1_loss", "nn::kl_div", "xlogy", "special::xlogy",
}  # fmt: skip


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.name not in REAL_GRADIENTS and {"float64", "complex128"} <= set(r.dtypes())], ids=str
)
def test_forward_mode_of_complex_numbers(row):
    for function, inputs in samples_of(row, "complex128"):
        primals = tuple(x.detach() for x in inputs)
        results = function(*inputs)
        tangents, weights = drawn(primals, 1), drawn(results, 2)
        gradients = T.autograd.grad(results, inputs, weights, materialize_grads=True)
        _, moved = T.func.jvp(function, primals, tangents)
        assert inner(weights, moved) == pytest.approx(inner(gradients, tangents), rel=1e-9, abs=1e-9)

"""tests/ops/rows_forward_test.py: the derivative along a direction of every row, by two backward passes, against its gradients.

Those are held against differences in rows_gradient_test.py.
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


def samples_of(row):
    dtype = "float64" if "float64" in row.dtypes() else "complex128"
    fit = [s for s in samples.all_samples(row, dtype, table.SEED) if small(s[0])]
    for given, other in table.pick(fit, 3, row.name + "forward"):
        sample = gradient_sample(row, given, other)
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

"""tests/ops/rows.py: calls a row, compares results; shared by the tests of rows."""

import adjoin
import coverage_table as table
import numpy as np
import samples
from closed_forms_random import SEED as PHILOX_SEED

ROWS = samples.every_row()
TENSOR_ROWS = [r for r in ROWS if r.tensors and r.test is not None]
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 5e-3, "bfloat16": 4e-2, "complex128": 1e-9, "complex64": 5e-5}


def flat(result):
    """The tensors of a result, in order."""
    if isinstance(result, adjoin.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in flat(r)]
    return [adjoin.tensor(result)]


def run(row, given, other):
    """The results. Random rows draw from the same place every time; what is written is a copy."""
    adjoin.manual_seed(PHILOX_SEED)
    written = {p.name for p in row.params if p.written}
    given = samples.complete(row, given, other)
    given = {**given, **samples.moved({k: v for k, v in given.items() if k in written}, lambda t: t.clone())}
    result = row.call(**given, **other)
    return flat(result) if result is not None else flat([given[p.name] for p in row.params if p.written])


def close(a, b, dtype, scale=1.0):
    """Same shape, same values within the dtype's tolerance, NaN where NaN is."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    tol = TOLERANCE.get(dtype, 0) * scale
    if a.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol, equal_nan=True)


def numbers(t):
    """As NumPy's; bfloat16, which NumPy lacks, as float32."""
    t = t.detach().to("cpu")
    return (t.float() if t.dtype == adjoin.bfloat16 else t).numpy()


def name_of(dtype):
    return str(dtype).split(".")[-1]


def same(row, got, expected, dtype, scale=1.0):
    """Two lists of results agree; memory that nobody has written only in shape and dtype."""
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype and list(g.shape) == list(e.shape)
        if row.test.get("values", True):
            close(numbers(g), numbers(e), dtype, scale)


def some(row, dtype, count, salt):
    """A choice of the row's samples by the printed seed."""
    return table.pick(samples.all_samples(row, dtype, table.SEED), count, row.name + salt)


def on(given, device):
    return samples.moved(given, lambda t: t.to(device))

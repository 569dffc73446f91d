"""tests/python/tensor/out_over_argument_test.py: out= may be the first argument of any op whose result has its shape."""

import adjoin as aj
import numpy as np
import pytest

A, B = [[4.0, 1.0], [1.0, 3.0]], [[3.0, 0.5], [2.0, 0.75]]
CASES = {
    "max": lambda x, **o: aj.max(x, aj.tensor(B), **o),
    "min": lambda x, **o: aj.min(x, aj.tensor(B), **o),
    "expit": lambda x, **o: aj.special.expit(x, **o),
    "softmax": lambda x, **o: aj.softmax(x, -1, **o),
    "mm": lambda x, **o: aj.mm(x, aj.tensor(B), **o),
    "mm with itself": lambda x, **o: aj.mm(x, x, **o),
    "inverse": lambda x, **o: aj.inverse(x, **o),
    "cholesky": lambda x, **o: aj.linalg.cholesky(x, **o),
    "sum": lambda x, **o: aj.sum(x, 0, keepdim=True, **o) if x.shape[0] == 1 else aj.logcumsumexp(x, 0, **o),
    "normalize": lambda x, **o: aj.nn.functional.normalize(x, **o),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", ["dense", "transposed", "every second"])
def test_the_result_is_that_without_out(name, layout):
    x = aj.tensor(A)
    if layout == "transposed":
        x = x.mT
    if layout == "every second":
        x = aj.zeros(2, 4)[:, ::2].copy_(x)
    wanted, version, memory = CASES[name](x).tolist(), x._version, x.data_ptr()
    assert CASES[name](x, out=x) is x
    assert x.tolist() == wanted and x._version > version and x.data_ptr() == memory


def test_running_maxima_as_optimizers_keep_them():
    kept, rng = aj.zeros(100), np.random.default_rng(0)
    rows = rng.standard_normal((5, 100)).astype("f4")
    for row in rows:
        aj.max(kept, aj.from_numpy(row), out=kept)
    assert np.array_equal(kept.numpy(), np.maximum(rows.max(0), 0))


def test_what_cannot_be_written_is_refused_and_stays():
    x = aj.tensor(A)
    with pytest.raises(RuntimeError, match="sum: has no in-place form whose result has another shape; assign"):
        aj.sum(x, 0, out=x)
    whole = aj.tensor([1, 2])
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        aj.softmax(whole, 0, dtype=aj.float32, out=whole)
    leaf = aj.tensor(A, requires_grad=True)
    with pytest.raises(RuntimeError, match="out= cannot be differentiated"):
        aj.max(leaf, leaf, out=leaf)
    with aj.no_grad():
        aj.max(leaf, aj.full((2, 2), 2.0), out=leaf)
    assert leaf.tolist() == [[4.0, 2.0], [2.0, 3.0]]
    shared = aj.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="share memory"):
        aj.max(shared, aj.ones(3), out=shared)
    assert x.tolist() == A and whole.tolist() == [1, 2]

"""tests/ops/rows_keys_test.py: under a key that only passes calls on, every row gives the same results and derivatives."""

import sys
from pathlib import Path

import pytest
from rows_forward_test import ROWS, drawn, samples_of

import adjoin as T

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))
import passing  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    passing.load(tmp_path_factory.mktemp("passing"))


def derivatives(function, inputs):
    results = function(*inputs)
    first = T.autograd.grad(results, inputs, drawn(results, 3), create_graph=True, materialize_grads=True)
    ends = [g for g in first if g.requires_grad]
    second = T.autograd.grad(ends, inputs, drawn(ends, 4), materialize_grads=True) if ends else ()
    return [t.detach() for t in (*results, *first, *second)]


@pytest.mark.parametrize("key", passing.KEYS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_derivatives(row, key):
    for function, inputs in samples_of(row):
        plain = derivatives(function, inputs)
        with T.plugin.key(key):
            under = derivatives(function, inputs)
        for a, b in zip(plain, under, strict=True):
            assert T.equal(a.isnan(), b.isnan()) and T.equal(a.nan_to_num(), b.nan_to_num())

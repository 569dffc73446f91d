"""tests/ops/rows_hooks_test.py: what a hook on a saved tensor raises comes out of every row; every row can be checkpointed."""

import pytest
from rows_forward_test import ROWS, drawn, samples_of

import adjoin as T
from adjoin.autograd.graph import saved_tensors_hooks
from adjoin.utils.checkpoint import checkpoint


class Stop(Exception):
    pass


def stopping(after, error):
    """A hook that raises at its call number `after`, and counts."""
    seen = []

    def hook(tensor):
        if len(seen) == after:
            raise error
        seen.append(1)
        return tensor

    return hook, seen


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_exceptions_of_hooks(row):
    for function, inputs in samples_of(row):
        counting, seen = stopping(-1, None)
        with saved_tensors_hooks(counting, lambda t: t):
            function(*inputs)
        for place in {0, len(seen) - 1} if seen else ():
            error = Stop()
            pack, _ = stopping(place, error)
            with pytest.raises(BaseException) as caught, saved_tensors_hooks(pack, lambda t: t):
                function(*inputs)
            assert caught.value is error
            error = Stop()
            unpack, _ = stopping(0, error)
            try:
                with saved_tensors_hooks(lambda t: t, unpack):
                    results = function(*inputs)
                T.autograd.grad(results, inputs, drawn(results, 3), allow_unused=True)
            except Stop as caught:
                assert caught is error


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_checkpoint(row):
    for function, inputs in samples_of(row):
        found = []
        for run in (function, lambda *x: checkpoint(function, *x, use_reentrant=False)):
            results = run(*inputs)
            found.append(T.autograd.grad(results, inputs, drawn(results, 3), materialize_grads=True))
        for a, b in zip(*found, strict=True):
            assert T.equal(a.isnan(), b.isnan()) and T.equal(a.nan_to_num(), b.nan_to_num())

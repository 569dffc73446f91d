"""tests/python/tensor/repr_test.py: how tensors print."""

import adjoin as aj
import pytest


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: aj.tensor(3.0), "tensor(3.)"),
        (lambda: aj.tensor([1, -20]), "tensor([  1, -20])"),
        (lambda: aj.tensor([1.5, 2.0]), "tensor([1.5000, 2.0000])"),
        (lambda: aj.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: aj.tensor([True, False]), "tensor([ True, False])"),
        (lambda: aj.tensor([1e-8, 1.0, 1e6]), "tensor([1.0000e-08, 1.0000e+00, 1.0000e+06])"),
        (lambda: aj.tensor([float("nan"), float("inf"), 1.0]), "tensor([nan, inf, 1.])"),
        (lambda: aj.tensor([]), "tensor([])"),
        (lambda: aj.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: aj.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (lambda: aj.tensor([1.0], dtype=aj.float64), "tensor([1.], dtype=adjoin.float64)"),
        (lambda: aj.tensor([1], dtype=aj.uint8), "tensor([1], dtype=adjoin.uint8)"),
        (lambda: aj.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: aj.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: aj.tensor([1 + 2j]), "tensor([1.+2.j])"),
        (lambda: aj.tensor([0.5 - 2j]), "tensor([0.5000-2.j])"),
        (lambda: aj.zeros(2, device="meta"), "tensor(..., device='meta', size=(2,))"),
        (lambda: aj.tensor([1.0, 2000.0]), "tensor([1.0000e+00, 2.0000e+03])"),
        (lambda: aj.tensor([0.0, -0.0, 1.0]), "tensor([0., -0., 1.])"),
        (lambda: aj.tensor([]).cfloat(), "tensor([], dtype=adjoin.complex64)"),
        (lambda: aj.tensor([1.5, 0 - 1j]), "tensor([1.5000+0.j, 0.0000-1.j])"),
        (lambda: aj.max(aj.tensor([[1, 2]]), 1), "adjoin.return_types.max(\nvalues=tensor([2]),\nindices=tensor([1]))"),
    ],
)
def test_text(make, text):
    assert repr(make()) == text


def test_three_dimensions_are_parted_by_an_empty_line():
    assert repr(aj.zeros(2, 1, 2)) == "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"


def test_large_tensors_are_summarised():
    text = repr(aj.arange(2000))
    assert text == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    assert repr(aj.zeros(50, 50)).count("\n") == 6


def test_options():
    try:
        aj.set_printoptions(precision=2)
        assert repr(aj.tensor(1.23456)) == "tensor(1.23)"
        aj.set_printoptions(sci_mode=True)
        assert repr(aj.tensor(1.25)) == "tensor(1.25e+00)"
    finally:
        aj.set_printoptions(profile="default", sci_mode=None)

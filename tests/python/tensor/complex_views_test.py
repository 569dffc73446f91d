"""tests/python/tensor/complex_views_test.py: real pairs as complex numbers where memory begins in between."""

import pytest

import adjoin


def test_pairs_that_begin_in_between_are_refused():
    x = adjoin.arange(9.0)
    with pytest.raises(RuntimeError, match="storage_offset must be divisible by 2"):
        adjoin.view_as_complex(x[1:].reshape(4, 2))
    assert adjoin.view_as_complex(x[1:].reshape(4, 2).clone())[0] == 1 + 2j
    assert adjoin.view_as_complex(x[2:8].reshape(3, 2))[0] == 2 + 3j


@pytest.mark.parametrize("dtype", [adjoin.complex64, adjoin.complex128])
def test_a_gradient_may_begin_anywhere(dtype):
    z = adjoin.randn(3, dtype=dtype, requires_grad=True)
    real = adjoin.view_as_real(z).flatten()
    y = adjoin.cat([adjoin.ones(1, dtype=real.dtype), real])
    (y * adjoin.arange(7, dtype=real.dtype)).sum().backward()
    assert z.grad.tolist() == [1 + 2j, 3 + 4j, 5 + 6j]
    assert adjoin.autograd.gradgradcheck(
        adjoin.view_as_real, (adjoin.randn(3, dtype=adjoin.complex128, requires_grad=True),)
    )


def test_a_part_takes_values_and_the_history_knows():
    x = adjoin.tensor([1 + 2j, 3 + 4j])
    memory = x.data_ptr()
    x.real = adjoin.tensor([5.0, 6.0])
    x.imag = 7
    assert x.tolist() == [5 + 7j, 6 + 7j] and x.data_ptr() == memory
    whole = adjoin.tensor([1.0, 2.0])
    whole.real = adjoin.tensor([3.0, 4.0])
    assert whole.tolist() == [3, 4]
    part = adjoin.tensor([2.0, 3.0], requires_grad=True)
    y = adjoin.zeros(2, dtype=adjoin.complex64)
    y.imag = part * 2
    (y.imag * adjoin.tensor([1.0, 10.0])).sum().backward()
    assert part.grad.tolist() == [2, 20]
    with pytest.raises(RuntimeError, match="not complex"):
        whole.imag = part
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x.real

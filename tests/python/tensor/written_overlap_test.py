"""tests/python/tensor/written_overlap_test.py: one number written to memory that several elements share, and gradients given in other dtypes."""

import adjoin
import pytest


@pytest.mark.parametrize("dtype", [adjoin.float32, adjoin.int64, adjoin.bool, adjoin.complex64, adjoin.bfloat16])
def test_one_number_goes_where_elements_share_memory(dtype):
    base = adjoin.zeros(3, 1, dtype=dtype)
    base.expand(3, 4).fill_(1)
    assert base.tolist() == [[1]] * 3
    base.expand(2, 3, 5)[:, 1:].zero_()
    assert base.tolist() == [[1], [0], [0]]
    row = adjoin.zeros(20, dtype=dtype)
    row.as_strided((3, 4), (2, 1), 1).fill_(1)
    assert row.tolist() == [0] + [1] * 8 + [0] * 11
    row.as_strided((2, 3, 4), (1, 0, 1), 12)[...] = 1
    assert row[12:17].tolist() == [1] * 5 and row[17:].tolist() == [0] * 3
    large = adjoin.zeros(1, dtype=dtype)
    large.expand(300_000).fill_(1)
    assert large.item() == 1


def test_its_gradient():
    x = adjoin.ones(2, requires_grad=True)
    y = x * 3
    y.expand(4, 2).zero_()
    (y * 5).sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_what_differs_from_element_to_element_is_still_refused():
    shared = adjoin.zeros(1).expand(3)
    for write in (
        lambda: shared.add_(1),
        lambda: shared.copy_(adjoin.arange(3.0)),
        lambda: shared.fill_(adjoin.tensor(2.0)),
        lambda: shared.normal_(),
    ):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()


@pytest.mark.parametrize("dtype", [adjoin.int64, adjoin.bool, adjoin.uint8, adjoin.float64])
def test_a_gradient_takes_the_dtype_of_what_it_is_of(dtype):
    x = adjoin.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward(adjoin.tensor(1, dtype=dtype))
    assert x.grad.tolist() == [3, 3] and x.grad.dtype is adjoin.float32
    assert adjoin.autograd.grad(x * 3, x, adjoin.ones(2, dtype=dtype))[0].tolist() == [3, 3]
    with pytest.raises(TypeError, match="gradient 0 is complex64"):
        (x * 3).sum().backward(adjoin.tensor(1j))


def test_slopes_at_uneven_places_are_taken_in_their_precision():
    adjoin.manual_seed(0)
    values, places = adjoin.randn(1000) * 9, adjoin.randn(1000, dtype=adjoin.float64)
    for order in (1, 2):
        (slopes,) = adjoin.gradient(values, spacing=[places], edge_order=order)
        (exact,) = adjoin.gradient(values.double(), spacing=[places], edge_order=order)
        assert slopes.dtype is adjoin.float64 and slopes.equal(exact)


def test_values_of_a_meta_tensor_are_asked_for():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        adjoin.ones(2, device="meta").cpu()
    storage = adjoin.ones(2, device="meta").storage()
    assert repr(storage.fill_(1)).startswith("...") and len(storage) == 2
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        storage.cpu()

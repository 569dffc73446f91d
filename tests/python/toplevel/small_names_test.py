"""Small names of the top level whose effect a program can see: asarray's history, orders of dimensions, rounding as integers do."""

import enum

import numpy as np
import pytest

import adjoin


def test_asarray_leaves_the_history_behind_where_no_gradient_is_wanted():
    leaf = adjoin.tensor([1.0, 2.0], requires_grad=True)
    for source in (leaf, leaf * 2):
        for settings in ({}, {"copy": True}, {"copy": False}, {"dtype": adjoin.float64}):
            made = adjoin.asarray(source, requires_grad=False, **settings)
            assert not made.requires_grad and made.is_leaf
            assert made.tolist() == source.tolist()
            assert adjoin.asarray(source, **settings).requires_grad
        assert adjoin.asarray(source, requires_grad=False).data_ptr() == source.data_ptr()
        assert adjoin.asarray(source, requires_grad=True).requires_grad
    plain = adjoin.ones(2)
    assert adjoin.asarray(plain) is plain


def test_complex_numbers_take_the_width_of_the_default_dtype():
    try:
        for real, wanted in (("float16", "complex32"), ("float32", "complex64"), ("float64", "complex128")):
            adjoin.set_default_dtype(getattr(adjoin, real))
            assert adjoin.tensor([1.2, 3j]).dtype is getattr(adjoin, wanted)
    finally:
        adjoin.set_default_dtype(adjoin.float32)


def test_ints_of_a_class_of_their_own_are_numbers():
    class Count(enum.IntEnum):
        THREE = 3

    assert adjoin.arange(Count.THREE).tolist() == [0, 1, 2]
    assert adjoin.full((2,), Count.THREE).tolist() == [3, 3]
    assert adjoin.linspace(0, Count.THREE, 2).tolist() == [0.0, 3.0]
    assert adjoin.where(adjoin.tensor([True, False]), Count.THREE, 0).tolist() == [3, 0]
    assert (adjoin.ones(2) * Count.THREE).tolist() == [3.0, 3.0]
    with pytest.raises(OverflowError, match="64 bits"):
        adjoin.arange(type("Large", (int,), {})(1 << 80))


def test_dim_order_tries_the_formats_that_it_is_given():
    x = adjoin.empty(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        x.dim_order(ambiguity_check=True)
    formats = [adjoin.contiguous_format, adjoin.channels_last]
    assert x.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    last = adjoin.empty(1, 2, 3, 4).to(memory_format=adjoin.channels_last)
    assert last.dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    assert adjoin.empty(2, 3, 4).transpose(0, 2).dim_order(ambiguity_check=True) == (2, 1, 0)
    with pytest.raises(TypeError, match="memory format"):
        x.dim_order(ambiguity_check=["contiguous"])
    with pytest.raises(TypeError, match="ambiguity_check"):
        x.dim_order(ambiguity_check="yes")


def test_what_a_hook_after_accumulation_returns_has_no_meaning():
    v = adjoin.tensor([1.0, 2.0], requires_grad=True)
    v.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))
    (v * 3).sum().backward()
    assert v.grad.tolist() == [6.0, 6.0]


def test_hooks_on_saved_tensors_know_a_parameter():
    weight, seen = adjoin.nn.Parameter(adjoin.ones(3)), []

    def pack(t):
        seen.append((t is weight, t.requires_grad))
        return t

    with adjoin.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = ((weight * 2).exp() * weight).sum()
    assert (True, True) in seen and (False, False) in seen
    loss.backward()
    assert weight.grad.tolist() == pytest.approx([3 * np.exp(2)] * 3)


def test_named_results_and_storages_of_numbers():
    points = adjoin.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    assert repr(adjoin.histogramdd(points, bins=[2, 2])).startswith("adjoin.return_types.histogramdd(\nhist=tensor(")
    assert adjoin.is_storage(adjoin.ones(3).storage()) and adjoin.is_storage(adjoin.ones(3).untyped_storage())
    assert not adjoin.is_storage(adjoin.ones(3))


def _rounded(x, scale, zero, low, high):
    at = zero + np.rint(x * (np.float32(1) / np.float32(scale)))
    return (np.clip(at, low, high) - zero) * np.float32(scale), (low <= at) & (at <= high)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fake_quantization_rounds_and_passes_gradients_where_nothing_was_cut(dtype):
    numbers = np.random.RandomState(0).randn(5, 4).astype(dtype) * 2
    x = adjoin.tensor(numbers, requires_grad=True)
    made = adjoin.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 25)
    wanted, held = _rounded(numbers, 0.1, 3, 0, 25)
    np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=1e-6)
    assert made.dtype is x.dtype and 0 < held.sum() < held.size
    (made * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), held * 2)
    same = adjoin.fake_quantize_per_tensor_affine(x, adjoin.tensor([0.1]), adjoin.tensor([3]), 0, 25)
    assert same.equal(made)
    scales, zeros = adjoin.tensor([0.1, 0.2, 0.3, 0.05]), adjoin.tensor([0, 1, 2, 3], dtype=adjoin.int32)
    each = adjoin.fake_quantize_per_channel_affine(x, scales, zeros, 1, -8, 7)
    for c in range(4):
        np.testing.assert_allclose(
            each[:, c].detach().numpy(),
            _rounded(numbers[:, c], scales[c].item(), int(zeros[c]), -8, 7)[0],
            rtol=1e-6,
        )
    assert adjoin.fake_quantize_per_tensor_affine(adjoin.ones(0, 3), 0.1, 0, 0, 5).shape == (0, 3)


def test_fake_quantization_refuses_what_makes_no_sense():
    x, scales, zeros = adjoin.ones(2, 3), adjoin.ones(3), adjoin.zeros(3, dtype=adjoin.int32)
    per_tensor, per_channel = adjoin.fake_quantize_per_tensor_affine, adjoin.fake_quantize_per_channel_affine
    for call, words in (
        (lambda: per_tensor(x.int(), 1.0, 0, 0, 5), "floating-point"),
        (lambda: per_tensor(x, 1.0, 0, 5, 0), "quant_min"),
        (lambda: per_tensor(x, 1.0, 9, 0, 5), "zero_point"),
        (lambda: per_tensor(x, scales, 0, 0, 5), "per_channel"),
        (lambda: per_channel(x, scales, zeros, 0, 0, 5), "the 2 elements of dimension 0"),
        (lambda: per_channel(x, scales, zeros, 2, 0, 5), "axis"),
        (lambda: per_channel(x, scales.double(), zeros, 1, 0, 5), "float32"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(AttributeError, match="there are no quantized tensors"):
        adjoin.quantize_per_tensor  # noqa: B018


def test_a_place_that_nobody_names_changes_nothing():
    with adjoin.accelerator.device_index(None), adjoin.cuda.device(-1):
        assert adjoin.ones(1).device.type == "cpu"


def test_anomaly_detection_tells_that_it_is_slow():
    with pytest.warns(UserWarning, match="Anomaly Detection"), adjoin.autograd.detect_anomaly():
        pass


def test_the_masked_functions_stand_in_their_older_room_too():
    x, mask = adjoin.tensor([[1.0, 2.0], [3.0, 4.0]]), adjoin.tensor([[True, False], [True, True]])
    assert adjoin.masked._ops.sum(x, 1, mask=mask).tolist() == [1.0, 7.0]


def test_sparse_rows_are_reduced_by_short_words_too():
    a, b = adjoin.tensor([[1.0, 2.0], [0.0, 3.0]]).to_sparse_csr(), adjoin.tensor([[1.0, -1.0], [2.0, 5.0]])
    assert adjoin.sparse.mm(a, b, "max").tolist() == [[4.0, 10.0], [6.0, 15.0]]
    assert adjoin.sparse.mm(a, b, "min").tolist() == adjoin.sparse.mm(a, b, "amin").tolist()


def test_sparse_tensors_print_their_dtype_once_and_break_lines_as_others_do():
    rows = adjoin.tensor([[0.0, 1.5], [2.0, 0.0]], dtype=adjoin.float64)
    assert repr(rows.to_sparse()) == (
        "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([1.5000, 2.0000]),\n"
        "       size=(2, 2), nnz=2, dtype=adjoin.float64, layout=adjoin.sparse_coo)"
    )
    assert repr(rows.to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([1, 0]),\n"
        "       values=tensor([1.5000, 2.0000]), size=(2, 2), nnz=2,\n"
        "       dtype=adjoin.float64, layout=adjoin.sparse_csr)"
    )

"""tests/python/toplevel/aten_only_test.py: ops that PyTorch has for its compilers, by other ops and by hand."""

import math

import adjoin
import pytest
from adjoin.nn import functional as F

aten = adjoin.ops.aten


def test_resizing_by_wide_filters():
    x = adjoin.randn(2, 3, 10, 12)
    want = F.interpolate(x, size=(4, 5), mode="bilinear", align_corners=False, antialias=True)
    assert adjoin.allclose(aten._upsample_bilinear2d_aa(x, [4, 5], False), want)
    half = F.interpolate(x, scale_factor=(0.5, 0.25), mode="bilinear", align_corners=False, antialias=True)
    assert adjoin.allclose(aten._upsample_bilinear2d_aa(x, None, False, [0.5, 0.25]), half)
    moved = aten._upsample_bilinear2d_aa(x, [4, 5], False, scales_h=0.5, scales_w=0.5)
    assert moved.shape == (2, 3, 4, 5) and not adjoin.allclose(moved, want)


def test_gradients_of_what_was_kept():
    x = adjoin.randn(2, 3, 6, 6, requires_grad=True)
    out, places = F.max_pool2d_with_indices(x, 2, 2)
    g = adjoin.randn(out.shape)
    (want,) = adjoin.autograd.grad(out, x, g)
    assert adjoin.equal(
        aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places), want
    )
    kept = adjoin.tensor([True, False, True])
    assert aten.native_dropout_backward(adjoin.ones(3), kept, 2.0).tolist() == [2, 0, 2]
    y = adjoin.randn(3, 4, requires_grad=True)
    soft = y.softmax(1)
    g = adjoin.randn(3, 4)
    (want,) = adjoin.autograd.grad(soft, y, g)
    assert adjoin.allclose(aten._softmax_backward_data(g, soft, 1, adjoin.float32), want)
    assert aten._softmax_backward_data(g, soft, 1, adjoin.float64).dtype is adjoin.float64


def test_softmax_of_nothing_is_0():
    x = adjoin.tensor([[0.0, 1.0], [-math.inf, -math.inf]])
    made = aten._safe_softmax(x, 1)
    assert made[1].tolist() == [0, 0] and adjoin.allclose(made[0], x[0].softmax(0))
    assert aten._safe_softmax(x, 1, adjoin.float64).dtype is adjoin.float64
    x.requires_grad_()
    aten._safe_softmax(x, 1)[:, 0].sum().backward()
    assert x.grad[1].tolist() == [0, 0] and x.grad[0, 0] > 0


def test_indices_under_a_mask():
    x = adjoin.arange(6.0).view(2, 3)
    at, mask = adjoin.tensor([0, 99, 1]), adjoin.tensor([True, False, True])
    assert adjoin._unsafe_masked_index(x, mask, [None, at], -1).tolist() == [[0, -1, 1], [3, -1, 4]]
    made = adjoin._unsafe_masked_index_put_accumulate(x, mask, [None, at], adjoin.full((2, 3), 10.0))
    assert made.tolist() == [[10, 11, 2], [13, 14, 5]] and x[0, 0] == 0


def test_chunks_side_by_side():
    a, b = adjoin.arange(6.0).view(3, 2), adjoin.arange(10.0, 14).view(4, 1)
    made = adjoin._chunk_cat([a, b], 0, 2)
    assert made.tolist() == [[0, 1, 2, 3, 10, 11], [4, 5, 0, 0, 12, 13]]
    out = adjoin.empty(0)
    assert adjoin._chunk_cat([a, b], 0, 2, out=out) is out and adjoin.equal(out, made)
    with pytest.raises(RuntimeError, match="num_chunks"):
        adjoin._chunk_cat([a], 0, 0)


def test_normalization_with_and_without_running_numbers():
    x, mean, var = adjoin.randn(5, 3), adjoin.zeros(3), adjoin.ones(3)
    made = adjoin._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
    assert adjoin.allclose(made[0], F.batch_norm(x, None, None, training=True)) and adjoin.allclose(
        made[1], x.mean(0), atol=1e-6
    )
    updated = aten._batch_norm_with_update(x, None, None, mean, var, 0.5, 1e-5)
    assert len(updated) == 4 and adjoin.allclose(mean, x.mean(0) / 2, atol=1e-6)


def test_products_with_scales():
    a, b = adjoin.randn(4, 16).to(adjoin.float8_e4m3fn), adjoin.randn(8, 16).to(adjoin.float8_e4m3fn).t()
    two, three = adjoin.tensor(2.0), adjoin.tensor(3.0)
    want = 6 * (a.float() @ b.float())
    assert adjoin.allclose(adjoin._scaled_mm(a, b, two, three, out_dtype=adjoin.float32), want, rtol=1e-4, atol=1e-4)
    rows, columns = adjoin.rand(4, 1), adjoin.rand(1, 8)
    made = adjoin._scaled_mm(a, b, rows, columns, out_dtype=adjoin.float32)
    assert adjoin.allclose(made, want / 6 * rows * columns, rtol=1e-4, atol=1e-4)
    made = adjoin._scaled_mm_v2(a, b, [two], [0], [0], [three], [0], [0], None, adjoin.float32)
    assert adjoin.allclose(made, want, rtol=1e-4, atol=1e-4)


def test_attention_with_its_sums():
    q, k, v = (adjoin.randn(2, 2, 5, 4) for _ in range(3))
    attend = aten._scaled_dot_product_flash_attention_for_cpu
    out, sums = attend(q, k, v, is_causal=True)
    assert adjoin.allclose(out, F.scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-5)
    scores = (q @ k.mT / 2).masked_fill(adjoin.ones(5, 5, dtype=adjoin.bool).triu(1), -math.inf)
    assert adjoin.allclose(sums, scores.logsumexp(-1), atol=1e-5)
    mask = adjoin.randn(5, 5)
    out = attend(q, k, v, attn_mask=mask, scale=0.3)[0]
    assert adjoin.allclose(out, F.scaled_dot_product_attention(q, k, v, mask, scale=0.3), atol=1e-5)
    with pytest.raises(RuntimeError, match="dropout"):
        attend(q, k, v, 0.5)

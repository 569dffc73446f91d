"""tests/python/nn/flex_attention_test.py: attention with functions of places, against loops over all pairs and the plain kernel."""

import math

import adjoin
import numpy as np
import pytest
from adjoin.nn.attention import flex_attention as flex

F = adjoin.nn.functional


def inputs(b=2, h=2, q=5, kv=7, e=4, dtype=adjoin.float64, seed=0, grad=False):
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal(s) for s in ((b, h, q, e), (b, h, kv, e), (b, h, kv, e))]
    return [adjoin.tensor(x, dtype=dtype, requires_grad=grad) for x in made]


def by_loops(q, k, v, score, lets):
    """The definition, pair by pair."""
    b, h, n, e = q.shape
    m = k.shape[2]
    out, sums = np.zeros((b, h, n, v.shape[3])), np.full((b, h, n), -math.inf)
    for at in np.ndindex(b, h, n):
        scores = [
            score(q[at] @ k[at[0], at[1], j] / math.sqrt(e), *at, j) if lets(*at, j) else -math.inf for j in range(m)
        ]
        top = max(scores)
        if top == -math.inf:
            continue
        weights = np.exp(np.array(scores) - top)
        out[at] = weights @ v[at[0], at[1]] / weights.sum()
        sums[at] = top + math.log(weights.sum())
    return out, sums


def relative(s, b, h, q, kv):
    return s * (h + 1) - 0.3 * (q - kv)


def in_window(b, h, q, kv):
    return (q >= kv) & (q - kv <= 2)


def test_scores_and_mask_are_functions_of_the_places():
    q, k, v = inputs()
    block = flex.create_block_mask(in_window, None, None, 5, 7, BLOCK_SIZE=2)
    out, lse = flex.flex_attention(q, k, v, score_mod=relative, block_mask=block, return_lse=True)
    want, sums = by_loops(*(x.numpy() for x in (q, k, v)), relative, in_window)
    assert np.allclose(out.numpy(), want, atol=1e-12) and np.allclose(lse.numpy(), sums, atol=1e-12)
    out, aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True, max_scores=True))
    scores = q @ k.transpose(-1, -2) / 2
    assert adjoin.allclose(aux.max_scores, scores.amax(-1)) and adjoin.allclose(aux.lse, adjoin.logsumexp(scores, -1))


def test_a_function_may_index_with_the_places():
    q, k, v = inputs()
    bias, documents = adjoin.randn(2, 5, 7, dtype=adjoin.float64), adjoin.tensor([0, 0, 1, 1, 2, 2, 2])
    same = lambda b, h, i, j: documents[i] == documents[j]  # noqa: E731
    block = flex.create_block_mask(same, 2, 2, 5, 7, BLOCK_SIZE=(2, 3))
    out = flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h, i, j], block_mask=block)
    held, names = bias.numpy(), documents.numpy()
    want, _ = by_loops(
        *(x.numpy() for x in (q, k, v)),
        lambda s, b, h, i, j: s + held[h, i, j],
        lambda b, h, i, j: names[i] == names[j],
    )
    assert np.allclose(out.numpy(), want, atol=1e-12)


def test_without_functions_it_is_the_plain_one_with_derivatives():
    q, k, v = inputs(grad=True)
    assert adjoin.allclose(flex.flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v), atol=1e-12)
    block = flex.create_block_mask(in_window, None, None, 5, 7, BLOCK_SIZE=4)
    assert adjoin.autograd.gradcheck(
        lambda *x: flex.flex_attention(*x, score_mod=relative, block_mask=block), (q, k, v)
    )
    assert adjoin.allclose(flex.flex_attention(q, k, v, scale=0.1), F.scaled_dot_product_attention(q, k, v, scale=0.1))


def test_a_query_that_sees_nothing_gives_zeros_and_no_nan_in_gradients():
    q, k, v = inputs(grad=True)
    block = flex.create_block_mask(lambda b, h, i, j: i > 1, None, None, 5, 7, BLOCK_SIZE=2)
    out = flex.flex_attention(q, k, v, block_mask=block)
    out.sum().backward()
    assert out[:, :, :2].eq(0).all() and all(x.grad.isfinite().all() for x in (q, k, v))


def test_heads_share_keys():
    q, k, v = inputs(h=4)[0], *inputs(h=2, seed=1)[1:]
    out = flex.flex_attention(q, k, v, enable_gqa=True)
    assert adjoin.allclose(out, F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex.flex_attention(q, k, v)
    with pytest.raises(ValueError, match="4D"):
        flex.flex_attention(q[0], k, v)


def causal(b, h, q, kv):
    return q >= kv


def test_blocks_are_counted():
    block = flex.create_block_mask(causal, 1, 1, 256, 300, BLOCK_SIZE=128)
    assert block.shape == (1, 1, 256, 300) and block.BLOCK_SIZE == (128, 128) and block.numel() == 76800
    assert block.kv_num_blocks.tolist() == [[[1, 1]]] and block.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert block.kv_indices[0, 0, :, 0].tolist() == [0, 1] and block.full_kv_indices[0, 0, 1, 0].item() == 0
    assert block.q_num_blocks.tolist() == [[[1, 1, 0]]] and block.full_q_num_blocks.tolist() == [[[1, 0, 0]]]
    assert block.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    assert "sparsity" in repr(block) and "██" in str(block)
    assert flex.create_block_mask(causal, 1, 1, 256, 256, BLOCK_SIZE=64).sparsity() == 37.5
    assert (
        flex.create_block_mask(causal, 1, 1, 16, 16).sparsity() == 0
        and flex.create_block_mask(causal, 1, 1, 100, 70, BLOCK_SIZE=32).sparsity() == 25
    )


def test_rows_of_blocks_can_be_taken():
    block = flex.create_block_mask(causal, 2, 3, 8, 8, BLOCK_SIZE=2)
    first = block[:, 0, :2]
    assert first.shape == (2, 1, 4, 8) and first.to_dense().tolist() == [[[[1, 0, 0, 0], [1, 1, 0, 0]]]] * 2
    parts = (block.kv_num_blocks, block.kv_indices, block.full_kv_num_blocks, block.full_kv_indices)
    again = flex.BlockMask.from_kv_blocks(*parts, BLOCK_SIZE=2, mask_mod=causal)
    assert again.to_dense().equal(block.to_dense()) and again.q_num_blocks.equal(block.q_num_blocks)


def test_masks_are_joined():
    both = flex.and_masks(causal, in_window)
    either = flex.or_masks(causal, lambda b, h, q, kv: kv == 3)
    q, kv = np.indices((4, 4))
    assert np.array_equal(flex.create_mask(both, None, None, 4, 4)[0, 0].numpy(), (q >= kv) & (q - kv <= 2))
    assert np.array_equal(flex.create_mask(either, None, None, 4, 4)[0, 0].numpy(), (q >= kv) | (kv == 3))
    assert flex.create_mask(flex.noop_mask, 2, 1, 2, 2).all()
    with pytest.raises(RuntimeError, match="callable"):
        flex.and_masks(causal, 3)


def test_a_mask_for_fewer_keys_is_refused():
    q, k, v = inputs()
    with pytest.raises(ValueError, match="5 queries and 6 keys"):
        flex.flex_attention(q, k, v, block_mask=flex.create_block_mask(causal, 1, 1, 5, 6))

"""tests/python/nn/attention_bias_test.py: causal masks that are known by their sizes."""

import adjoin
import pytest
from adjoin.nn import functional as F
from adjoin.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("queries, keys", [(5, 5), (3, 7), (1, 4)])
def test_a_bias_is_its_mask(make, queries, keys):
    adjoin.manual_seed(queries)
    q, k, v = adjoin.randn(2, 3, queries, 4), adjoin.randn(2, 3, keys, 4), adjoin.randn(2, 3, keys, 4)
    mask = make(queries, keys)._materialize()
    moved = keys - queries if make is causal_lower_right else 0
    assert mask.tolist() == [[j <= i + moved for j in range(keys)] for i in range(queries)]
    results = []
    for given in (mask, make(queries, keys)):
        parts = [x.clone().requires_grad_() for x in (q, k, v)]
        out = F.scaled_dot_product_attention(*parts, attn_mask=given, scale=0.3)
        out.sin().sum().backward()
        results.append([out.detach(), *(x.grad for x in parts)])
    for by_mask, by_bias in zip(*results, strict=True):
        assert type(by_bias) is adjoin.Tensor and adjoin.allclose(by_mask, by_bias, atol=1e-6)


def test_what_a_bias_refuses():
    q = adjoin.randn(1, 1, 3, 4)
    with pytest.raises(ValueError, match="for 4 queries and 3 keys, there are 3 and 3"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=causal_upper_left(4, 3))
    with pytest.raises(ValueError, match="causal=True"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=causal_upper_left(3, 3), is_causal=True)
    with pytest.raises(NotImplementedError, match="only supports scaled_dot_product_attention"):
        adjoin.add(causal_upper_left(3, 3), 1)
    with pytest.raises(TypeError, match="no CausalVariant"):
        CausalBias(1, 3, 3)
    with pytest.raises(ValueError, match="two sizes"):
        causal_lower_right(3)
    with pytest.warns(UserWarning, match="NaNs in the output"):
        assert causal_lower_right(4, 2).variant is CausalVariant.LOWER_RIGHT

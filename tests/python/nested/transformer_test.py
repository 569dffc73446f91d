"""tests/python/nested/transformer_test.py: attention and transformers on ragged batches, beside padded ones."""

import adjoin
import pytest
from adjoin import nested, nn
from adjoin.nn import functional as F

LENGTHS = (3, 7, 1, 5)


def batch(width, lengths=LENGTHS, layout=adjoin.jagged):
    adjoin.manual_seed(0)
    return nested.nested_tensor([adjoin.randn(n, width) for n in lengths], layout=layout, requires_grad=True)


def padding(lengths=LENGTHS):
    """True where a padded batch has nothing."""
    return adjoin.arange(max(lengths)) >= adjoin.tensor(lengths).unsqueeze(1)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_equals_the_padded_one(norm_first):
    adjoin.manual_seed(1)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=norm_first)
    encoder, mask = nn.TransformerEncoder(layer, 2), padding()
    ragged = batch(16)
    made = encoder(ragged)
    padded = ragged.detach().to_padded_tensor(0.0).requires_grad_()
    want = encoder(padded, src_key_padding_mask=mask)
    assert made.is_nested and all(
        (a - b[: len(a)]).abs().max() < 1e-6 for a, b in zip(made.unbind(), want, strict=True)
    )
    weights = adjoin.randn(4, 7, 16).masked_fill(mask.unsqueeze(-1), 0)
    (want * weights).sum().backward()
    grads = [p.grad for p in encoder.parameters()]
    encoder.zero_grad(set_to_none=True)
    (made.to_padded_tensor(0.0) * weights).sum().backward()
    assert adjoin.allclose(ragged.grad.to_padded_tensor(0.0), padded.grad, atol=2e-6)
    assert all(adjoin.allclose(p.grad, g, atol=1e-5) for p, g in zip(encoder.parameters(), grads, strict=True))


def peak_of(f):
    """The bytes that f has at once."""
    adjoin.memory.reset_peak_memory_stats()
    before = adjoin.memory.memory_allocated()
    f()
    return adjoin.memory.max_memory_allocated() - before


def test_no_padding_is_made():
    lengths, width = (512, *(16,) * 31), 256
    layer = nn.TransformerEncoderLayer(width, 4, 256, dropout=0.0, batch_first=True)
    ragged = batch(width, lengths).detach()
    of_elements, one_padded = 4 * width * sum(lengths), 4 * width * len(lengths) * max(lengths)
    with adjoin.no_grad():
        layer(ragged)  # what is kept for later calls is there
        peak = peak_of(lambda: layer(ragged))
        assert of_elements <= peak < one_padded  # less than one activation with padding
        assert peak_of(lambda: ragged.to_padded_tensor(0.0)) >= one_padded


def test_the_encoder_packs_a_padded_batch():
    adjoin.manual_seed(1)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    with_padding = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    packed = nn.TransformerEncoder(layer, 2).eval()
    packed.load_state_dict(with_padding.state_dict())
    x, mask = adjoin.randn(4, 7, 16), padding()
    with adjoin.no_grad():
        made, want = packed(x, src_key_padding_mask=mask), with_padding(x, src_key_padding_mask=mask)
        assert not made.is_nested and adjoin.allclose(made[~mask], want[~mask], atol=1e-6)
        assert bool((made[mask] == 0).all()) and bool((want[mask] != 0).any())  # the padding was left out
        inside = mask.flip(1)  # padding before the sequences: as if nothing was asked
        assert adjoin.equal(packed(x, src_key_padding_mask=inside), with_padding(x, src_key_padding_mask=inside))
    assert packed(x, src_key_padding_mask=mask)[mask].abs().max() > 0  # gradients may be asked for


@pytest.mark.parametrize("causal", [False, True])
def test_attention_within_each_sequence(causal):
    q = batch(8).unflatten(-1, (2, 4)).transpose(1, 2)
    made = F.scaled_dot_product_attention(q, q, q, is_causal=causal)
    for one, part in zip(made.unbind(), q.unbind(), strict=True):
        assert adjoin.allclose(one, F.scaled_dot_product_attention(part, part, part, is_causal=causal), atol=1e-6)
    k = batch(8, (2, 2, 4, 1)).unflatten(-1, (2, 4)).transpose(1, 2)
    cross = F.scaled_dot_product_attention(q, k, k)
    for one, x, y in zip(cross.unbind(), q.unbind(), k.unbind(), strict=True):
        assert adjoin.allclose(one, F.scaled_dot_product_attention(x, y, y), atol=1e-6)
    with pytest.raises(RuntimeError, match="takes no attn_mask"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=adjoin.ones(7, 7))
    with pytest.raises(RuntimeError, match="must all be nested"):
        F.scaled_dot_product_attention(q, adjoin.ones(4, 2, 7, 4), adjoin.ones(4, 2, 7, 4))


@pytest.mark.parametrize("layout", [adjoin.jagged, adjoin.strided])
def test_multi_head_attention(layout):
    adjoin.manual_seed(1)
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    x = batch(16, layout=layout)
    made, weights = attention(x, x, x, need_weights=False)
    assert weights is None
    for one, part in zip(made.unbind(), x.unbind(), strict=True):
        assert adjoin.allclose(one, attention(part, part, part)[0], atol=1e-6)
    with pytest.raises(RuntimeError, match="need_weights=False"):
        attention(x, x, x)
    with pytest.raises(RuntimeError, match="takes no mask"):
        attention(x, x, x, key_padding_mask=padding(), need_weights=False)


def test_layers_learn_on_ragged_batches():
    adjoin.manual_seed(2)
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 1))
    x = batch(8).detach()
    target = adjoin.tensor([1.0, -1.0, 0.5, 2.0])
    optimizer = adjoin.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(120):
        loss = ((net(x).mean(1).squeeze(-1) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.02 * losses[0]
    words = nested.nested_tensor([adjoin.tensor([1, 2, 3]), adjoin.tensor([4])], layout=adjoin.jagged)
    table = nn.Embedding(5, 3)
    made = table(words)
    assert made.dim() == 3 and adjoin.equal(made[1], table.weight[4:])

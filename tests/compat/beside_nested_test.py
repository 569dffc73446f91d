"""tests/compat/beside_nested_test.py: jagged tensors beside PyTorch's: values, gradients, shapes, files, layers."""

import random
import warnings

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
warnings.filterwarnings("ignore", message=".*nested.*")

import adjoin
from beside import copy_weights, near, ours

# Each takes the library, its functional module and a jagged tensor (B, j, 4).
OPS = {
    "exp": lambda lib, f, t: t.exp(),
    "gelu": lambda lib, f, t: f.gelu(t),
    "mul": lambda lib, f, t: t * t + 1,
    "row": lambda lib, f, t: t * lib.arange(4.0),
    "linear": lambda lib, f, t: f.linear(t, lib.arange(12.0).reshape(3, 4) / 12),
    "matmul": lambda lib, f, t: t @ (lib.arange(12.0).reshape(4, 3) / 12),
    "layer_norm": lambda lib, f, t: f.layer_norm(t, (4,)),
    "softmax": lambda lib, f, t: lib.softmax(t, -1),
    "ragged softmax": lambda lib, f, t: lib.softmax(t, 1),
    "sum": lambda lib, f, t: t.sum(),
    "ragged sum": lambda lib, f, t: t.sum(1),
    "ragged sum kept": lambda lib, f, t: t.sum(1, keepdim=True),
    "last sum": lambda lib, f, t: t.sum(-1),
    "mean": lambda lib, f, t: t.mean(),
    "ragged mean": lambda lib, f, t: t.mean(1),
    "ragged amax": lambda lib, f, t: t.amax(1),
    "last amin": lambda lib, f, t: t.amin(2),
    "batch and ragged sum": lambda lib, f, t: t.sum((0, 1)),
    "transpose": lambda lib, f, t: t.transpose(1, 2) * 2,
    "unsqueeze": lambda lib, f, t: t.unsqueeze(-1),
    "unflatten": lambda lib, f, t: t.unflatten(-1, (2, 2)).transpose(1, 2),
    "flatten": lambda lib, f, t: t.unflatten(-1, (2, 2)).flatten(-2),
    "cat": lambda lib, f, t: lib.cat([t, t * 2], -1),
    "chunk": lambda lib, f, t: t.chunk(2, -1)[1],
    "padded": lambda lib, f, t: t.to_padded_tensor(-1.0),
    "attention": lambda lib, f, t: f.scaled_dot_product_attention(*[t.unflatten(-1, (2, 2)).transpose(1, 2)] * 3),
    "select": lambda lib, f, t: t[..., 1],
    "where": lambda lib, f, t: lib.where(t > 0, t, t * 0.1),
    "zeros_like": lambda lib, f, t: lib.zeros_like(t) + t,
    "clone": lambda lib, f, t: t.clone().double().float(),
}
# PyTorch has no gradient of these, and one of softmax over the ragged dimension that differences do not confirm.
# tests/python/nested compares ours with differences.
VALUES_ALONE = {
    "ragged softmax",
    "ragged sum",
    "ragged sum kept",
    "last sum",
    "ragged mean",
    "batch and ragged sum",
    "select",
}


def both(lengths, seed):
    """PyTorch's and Adjoin's jagged leaf of the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(n, 4, generator=generator) for n in lengths]
    theirs = torch.nested.nested_tensor(values, layout=torch.jagged, requires_grad=True)
    return theirs, adjoin.nested.nested_tensor([ours(v) for v in values], layout=adjoin.jagged, requires_grad=True)


def alike(made, want, tolerance=1e-5):
    if not want.is_nested:
        return near(made, want, tolerance)
    assert made.is_nested and made.dim() == want.dim()
    assert [s if type(s) is int else "j" for s in made.shape] == [s if type(s) is int else "j" for s in want.shape]
    for a, b in zip(made.unbind(), want.unbind(), strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        near(a, b, tolerance)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("lengths", [(3, 1, 5), (2, 2), (4,)])
def test_values_and_gradients(name, lengths):
    theirs, mine = both(lengths, len(lengths))
    want = OPS[name](torch, torch.nn.functional, theirs)
    made = OPS[name](adjoin, adjoin.nn.functional, mine)
    alike(made, want)
    if name in VALUES_ALONE:
        return
    flat = (want.values() if want.is_nested else want, made.values() if made.is_nested else made)
    (flat[0] * flat[0]).sum().backward()
    (flat[1] * flat[1]).sum().backward()
    alike(mine.grad, theirs.grad, 1e-4)


def test_random_programs():
    """Chains of ops over tensors of random lengths."""
    rng = random.Random(27)
    names = ("exp", "gelu", "mul", "row", "layer_norm", "softmax", "ragged softmax", "where", "clone", "zeros_like")
    for case in range(60):
        theirs, mine = both([rng.randint(1, 6) for _ in range(rng.randint(1, 5))], case)
        a, b = theirs, mine
        for name in (rng.choice(names) for _ in range(4)):
            a, b = (
                OPS[name](torch, torch.nn.functional, a).clamp(-3, 3),
                OPS[name](adjoin, adjoin.nn.functional, b).clamp(-3, 3),
            )
        alike(b, a, 1e-4)


def test_a_transformer_of_both():
    layers = [
        lib.nn.TransformerEncoder(lib.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), 2).eval()
        for lib in (torch, adjoin)
    ]
    copy_weights(*layers)
    x, lengths = torch.randn(3, 6, 16), (6, 2, 3)
    mask = torch.arange(6) >= torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad(), adjoin.no_grad():
        want = layers[0](x, src_key_padding_mask=mask)
        made = layers[1](ours(x), src_key_padding_mask=ours(mask))
    assert want[1, 2:].abs().max() == 0  # PyTorch's fast path leaves the padding out, too
    near(made, want)


def test_files(tmp_path):
    theirs, _ = both((3, 1, 5), 0)
    holes = torch.nested.nested_tensor_from_jagged(
        torch.arange(5.0), torch.tensor([0, 2, 5]), lengths=torch.tensor([1, 2])
    )
    strided = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 1)])
    torch.save({"a": theirs, "holes": holes, "strided": strided}, tmp_path / "nested.pt")
    read = adjoin.load(tmp_path / "nested.pt")
    alike(read["a"], theirs)
    alike(read["holes"], holes)
    assert read["a"].requires_grad
    assert [tuple(p.shape) for p in read["strided"].unbind()] == [(2, 3), (4, 1)]

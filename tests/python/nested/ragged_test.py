"""tests/python/nested/ragged_test.py: jagged tensors against the same function of each of their parts."""

import copy
import io
import pickle

import adjoin
import pytest
from adjoin import nested
from adjoin.nn import functional as F

LENGTHS = (3, 1, 5, 2)


def batch(*rest, lengths=LENGTHS, dtype=adjoin.float64, grad=False, seed=0):
    """A jagged tensor (len(lengths), j, *rest)."""
    adjoin.manual_seed(seed)
    return nested.nested_tensor(
        [adjoin.randn(n, *rest, dtype=dtype) for n in lengths], layout=adjoin.jagged, requires_grad=grad
    )


def alike(made, parts):
    """Whether a nested tensor has these parts."""
    found = made.unbind()
    assert len(found) == len(parts)
    for a, b in zip(found, parts, strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype
        assert adjoin.allclose(a, b, atol=1e-12, rtol=1e-12, equal_nan=True)


def test_parts_and_facts():
    nt = batch(4)
    assert nt.is_nested and nt.layout is adjoin.jagged and nt.dim() == 3 and len(nt) == 4 and nt.numel() == 44
    assert nt.offsets().tolist() == [0, 3, 4, 9, 11] and nt.lengths() is None and nt.values().shape == (11, 4)
    assert nt.size(0) == 4 and nt.size(-1) == 4 and str(nt.size(1)).startswith("j") and nt.shape[1] == nt.size(1)
    assert str(nt.stride()[0]).startswith("4*j") and nt.is_contiguous()
    number = nt.size(1).ragged.number
    assert repr(nt) == f"NestedTensor(size=(4, j{number}, 4), offsets=tensor([ 0,  3,  4,  9, 11]), contiguous=True)"
    assert not adjoin.ones(2).is_nested


def test_a_ragged_size_is_no_number():
    size = batch(4).size(1)
    for wrong in (lambda: size + 1, lambda: int(size), lambda: size > 2, lambda: bool(size), lambda: size * size):
        with pytest.raises(TypeError, match="ragged"):
            wrong()
    assert size == batch(7).size(1) and size != batch(4, lengths=(3, 1, 5, 3)).size(1) and size != -1
    assert f"{2 * size}".startswith("2*j")


ONE = {
    "exp": lambda t: t.exp(),
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "neg": lambda t: -t,
    "pow": lambda t: t**2,
    "rsub": lambda t: 1 - t,
    "clamp": lambda t: t.clamp(-0.5, 0.5),
    "gt": lambda t: t > 0,
    "float": lambda t: t.float(),
    "to": lambda t: t.to(adjoin.float32),
    "clone": lambda t: t.clone(),
    "detach": lambda t: t.detach(),
    "zeros_like": adjoin.zeros_like,
    "masked_fill": lambda t: t.masked_fill(t > 0, 7.0),
    "where": lambda t: adjoin.where(t > 0, t, -t),
    "layer_norm": lambda t: F.layer_norm(t, (4,)),
    "linear": lambda t: F.linear(t, adjoin.arange(12.0, dtype=adjoin.float64).reshape(3, 4)),
    "matmul": lambda t: t @ adjoin.arange(12.0, dtype=adjoin.float64).reshape(4, 3),
    "dropout of nothing": lambda t: F.dropout(t, 0.0),
    "chained": lambda t: (t.sigmoid() * t + 2).abs().sqrt(),
}


@pytest.mark.parametrize("name", ONE)
def test_each_part_alone(name):
    nt = batch(4)
    alike(ONE[name](nt), [ONE[name](p) for p in nt.unbind()])


def test_two_tensors_and_dense_ones():
    a, b = batch(4), batch(4, seed=1)
    assert a.offsets() is not b.offsets()  # equal numbers are enough
    alike(a * b, [x * y for x, y in zip(a.unbind(), b.unbind(), strict=True)])
    row = adjoin.arange(4.0, dtype=adjoin.float64)
    alike(a + row, [x + row for x in a.unbind()])
    alike(row - a, [row - x for x in a.unbind()])
    each = adjoin.arange(16.0, dtype=adjoin.float64).reshape(4, 1, 4)
    alike(a * each, [x * e for x, e in zip(a.unbind(), each, strict=True)])
    alike(a.transpose(1, 2) * each.transpose(1, 2), [x.T * e.T for x, e in zip(a.unbind(), each, strict=True)])
    with pytest.raises(RuntimeError, match="add with inputs of shapes"):
        a + batch(4, lengths=(3, 1, 5, 3))
    with pytest.raises(RuntimeError, match="a dense tensor must have 1 where the sequences are ragged"):
        a + adjoin.ones(4, 3, 4, dtype=adjoin.float64)


@pytest.mark.parametrize("name", "sum mean amax amin logsumexp var argmax prod".split())
@pytest.mark.parametrize("dim", [1, 2, 3, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(name, dim, keepdim):
    nt = batch(4, 2, lengths=(3, 2, 5, 2))
    made = getattr(nt, name)(dim, keepdim=keepdim)
    want = [getattr(p, name)(dim - 1 if dim > 0 else dim, keepdim=keepdim) for p in nt.unbind()]
    if dim == 1:
        assert not made.is_nested and adjoin.allclose(made.double(), adjoin.stack(want).double(), atol=1e-12)
    else:
        alike(made, want)


def test_reductions_of_several_dimensions():
    nt = batch(4, 2)
    alike(nt.sum((2, 3)), [p.sum((1, 2)) for p in nt.unbind()])
    assert adjoin.allclose(nt.sum((0, 1)), nt.values().sum(0))
    assert adjoin.allclose(nt.sum((1, 3)), adjoin.stack([p.sum((0, 2)) for p in nt.unbind()]))
    assert adjoin.allclose(nt.mean(), nt.values().mean()) and nt.sum((0, 1), keepdim=True).shape == (1, 1, 4, 2)
    found = nt.max(1)
    assert adjoin.equal(found.values, nt.amax(1)) and found.indices.shape == (4, 4, 2)
    with pytest.raises(RuntimeError, match="batch dimension but not the ragged"):
        nt.sum(0)
    with pytest.raises(IndexError, match="out of range"):
        nt.sum(4)
    with pytest.raises(IndexError, match="sequence 1 is empty"):
        batch(4, lengths=(2, 0)).amax(1)
    assert batch(4, lengths=(2, 0)).sum(1)[1].tolist() == [0] * 4


@pytest.mark.parametrize("dim", [1, 2, -1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax(dim, log):
    f = adjoin.log_softmax if log else adjoin.softmax
    nt = batch(4, lengths=(3, 0, 5))
    alike(f(nt, dim), [f(p, dim - 1 if dim > 0 else dim) if p.numel() else p for p in nt.unbind()])


SHAPES = {
    "transpose": (lambda t: t.transpose(1, 2), lambda p: p.transpose(0, 1)),
    "twice": (lambda t: t.transpose(1, 2).transpose(2, 3), lambda p: p.transpose(0, 1).transpose(1, 2)),
    "permute": (lambda t: t.permute(0, 3, 1, 2), lambda p: p.permute(2, 0, 1)),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda p: p.unsqueeze(0)),
    "unsqueeze and squeeze": (lambda t: t.unsqueeze(1).squeeze(1), lambda p: p),
    "unflatten": (lambda t: t.unflatten(2, (2, 2)), lambda p: p.unflatten(1, (2, 2))),
    "flatten": (lambda t: t.flatten(2), lambda p: p.flatten(1)),
    "view": (lambda t: t.view(4, -1, 8), lambda p: p.reshape(-1, 8)),
    "view by size": (lambda t: t.view(t.size(0), t.size(1), 2, -1), lambda p: p.reshape(-1, 2, 4)),
    "select": (lambda t: t[..., 1], lambda p: p[..., 1]),
    "slice": (lambda t: t[:, :, 1:3], lambda p: p[:, 1:3]),
    "chunk": (lambda t: t.chunk(2, 2)[1], lambda p: p.chunk(2, 1)[1]),
    "split": (lambda t: t.split([1, 3], 2)[1], lambda p: p.split([1, 3], 1)[1]),
    "cat": (lambda t: adjoin.cat([t, t * 2], 2), lambda p: adjoin.cat([p, p * 2], 1)),
    "contiguous": (lambda t: t.transpose(1, 2).contiguous(), lambda p: p.transpose(0, 1)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    of_all, of_one = SHAPES[name]
    nt = batch(4, 2)
    made = of_all(nt)
    alike(made, [of_one(p) for p in nt.unbind()])
    assert made.dim() == made.unbind()[0].dim() + 1


def test_batches_are_joined_and_taken_apart():
    a, b = batch(4), batch(4, lengths=(2, 6), seed=1)
    alike(adjoin.cat([a, b]), [*a.unbind(), *b.unbind()])
    assert adjoin.equal(a[2], a.unbind()[2]) and adjoin.equal(a[-1, 0], a.unbind()[3][0]) and len(list(a)) == 4
    with pytest.raises(IndexError, match="out of bounds"):
        a[4]
    for wrong in (lambda: a[1:], lambda: a[:, 1:], lambda: a.unbind(1), lambda: a.flatten(0, 1), lambda: a.view(-1)):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(NotImplementedError, match="sort: not there for nested tensors.*use values"):
        adjoin.sort(a)


def test_products_by_sequence():
    a, m = batch(4), adjoin.randn(4, 4, 3, dtype=adjoin.float64)
    alike(a @ m, [p @ w for p, w in zip(a.unbind(), m, strict=True)])
    gram = a.transpose(1, 2) @ a
    assert adjoin.allclose(gram, adjoin.stack([p.T @ p for p in a.unbind()]))
    with pytest.raises(RuntimeError, match="not supported between inputs of shapes"):
        a @ a.transpose(1, 2)


def test_made_of_values():
    values = adjoin.arange(10.0).view(5, 2)
    nt = nested.nested_tensor_from_jagged(values, adjoin.tensor([0, 2, 5]))
    alike(nt, [values[:2], values[2:]])
    nt.values().mul_(2)
    assert values[4, 1] == 18  # the same memory
    alike(nested.nested_tensor_from_jagged(values, lengths=adjoin.tensor([1, 4])), [values[:1], values[1:]])
    last = nested.nested_tensor_from_jagged(values.T, adjoin.tensor([0, 2, 5]), jagged_dim=2)
    alike(last, [values[:2].T, values[2:].T])
    holes = nested.nested_tensor_from_jagged(values, adjoin.tensor([0, 2, 5]), lengths=adjoin.tensor([1, 2]))
    alike(holes, [values[:1], values[2:4]])
    alike(holes + 1, [values[:1] + 1, values[2:4] + 1])
    assert not holes.is_contiguous() and holes.contiguous().is_contiguous() and holes.numel() == 6
    assert holes.sum() == values[:1].sum() + values[2:4].sum()
    alike(holes.softmax(1), [p.softmax(0) for p in holes.unbind()])
    for offsets, lengths in (
        ([0, 2, 6], None),
        ([0, 3, 2], None),
        ([-1, 2, 5], None),
        ([0, 2, 5], [1, 4]),
        ([0], None),
    ):
        with pytest.raises(ValueError, match="nested tensor: "):
            lengths = lengths and adjoin.tensor(lengths)
            nested.nested_tensor_from_jagged(values, adjoin.tensor(offsets), lengths=lengths)
    with pytest.raises(RuntimeError, match="At least one of offsets or lengths"):
        nested.nested_tensor_from_jagged(values)


def test_narrow_and_masked_select():
    t = adjoin.arange(12.0).view(2, 6)
    made = nested.narrow(t, 1, adjoin.tensor([0, 1]), adjoin.tensor([3, 2]), layout=adjoin.jagged)
    alike(made, [t[0, :3], t[1, 1:3]])
    assert made.offsets().tolist() == [0, 7, 9]
    alike(nested.narrow(t, 1, 1, 2, layout=adjoin.jagged), [t[0, 1:3], t[1, 1:3]])
    with pytest.raises(IndexError, match="stay within 6"):
        nested.narrow(t, 1, 4, 3, layout=adjoin.jagged)
    mask = adjoin.tensor([[1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]]).bool()
    alike(nested.masked_select(t, mask), [t[0, [0, 2]], t[1, [5]]])


def test_padded():
    nt = batch(2)
    made = nested.to_padded_tensor(nt, -1.0)
    for row, part in zip(made, nt.unbind(), strict=True):
        assert adjoin.equal(row[: len(part)], part) and bool((row[len(part) :] == -1).all())
    assert nt.to_padded_tensor(0.0, (4, 7, 2)).shape == (4, 7, 2)
    swapped = nt.transpose(1, 2).to_padded_tensor(-1.0)
    assert adjoin.equal(swapped, made.transpose(1, 2))
    with pytest.raises(RuntimeError, match="output_size"):
        nt.to_padded_tensor(0.0, (4, 4, 2))


GRADIENTS = {
    "pointwise": lambda t: (t.sigmoid() * t).sum(),
    "a row": lambda t: (t * adjoin.arange(4.0, dtype=t.dtype)).sum(),
    "softmax over the ragged dimension": lambda t: (t.softmax(1) ** 2 * t).sum(),
    "means": lambda t: (t.mean(1) ** 2).sum(),
    "extrema": lambda t: (t.amax(1) ** 2).sum(),
    "padded": lambda t: (t.to_padded_tensor(0.0) ** 3).sum(),
    "parts": lambda t: (t.unbind()[2] ** 2).sum() + t[1].sum(),
    "layer_norm": lambda t: (F.layer_norm(t, (4,)) ** 3).sum(),
    "attention": lambda t: (F.scaled_dot_product_attention(*[t.unflatten(-1, (2, 2)).transpose(1, 2)] * 3) ** 2).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_differences(name):
    lengths = adjoin.tensor([3, 1, 2])
    values = batch(4, lengths=(3, 1, 2)).values().clone().requires_grad_()
    f = GRADIENTS[name]
    assert adjoin.autograd.gradcheck(lambda v: f(nested.nested_tensor_from_jagged(v, lengths=lengths)), (values,))


def test_gradients_of_leaves_and_of_parts():
    nt = batch(4, grad=True)
    (nt * nt).sum().backward()
    assert nt.is_leaf and nt.grad.is_nested
    alike(nt.grad, [2 * p for p in nt.detach().unbind()])
    nt.grad = None
    assert nt.grad is None
    (found,) = adjoin.autograd.grad((nt * nt).sum(), nt)
    alike(found, [2 * p for p in nt.detach().unbind()])
    weight = adjoin.ones(4, dtype=adjoin.float64, requires_grad=True)
    found = adjoin.autograd.grad((nt * weight).sum(), [weight, nt])
    assert not found[0].is_nested and found[1].is_nested
    parts = [adjoin.ones(2, 3, requires_grad=True), adjoin.ones(4, 3, requires_grad=True)]
    made = nested.as_nested_tensor(parts, layout=adjoin.jagged)
    (made * 3).sum().backward()
    assert [p.grad.unique().tolist() for p in parts] == [[3.0], [3.0]]
    assert not nested.nested_tensor(parts, layout=adjoin.jagged).requires_grad
    seen = []
    nt.register_hook(lambda g: seen.append(g.is_nested))
    (nt * 2).backward(nt.detach())
    assert seen == [True]
    alike(nt.grad, [2 * p for p in nt.detach().unbind()])


def test_in_place():
    nt = batch(4)
    want = [p * 2 + 1 for p in nt.unbind()]
    assert nt.mul_(2).add_(1) is nt
    alike(nt, want)
    nt += nt
    alike(nt, [2 * w for w in want])
    other = adjoin.zeros_like(nt)
    other.copy_(nt)
    assert adjoin.equal(other, nt) and adjoin.allclose(other, nt) and not adjoin.equal(other, nt + 1)


def test_copies_and_files():
    nt = batch(4, grad=True)
    holes = nested.nested_tensor_from_jagged(
        adjoin.arange(5.0), adjoin.tensor([0, 2, 5]), lengths=adjoin.tensor([1, 2])
    )
    file = io.BytesIO()
    adjoin.save({"a": nt, "holes": holes, "list": nested.nested_tensor([adjoin.ones(2, 3), adjoin.ones(1, 4)])}, file)
    file.seek(0)
    read = adjoin.load(file)
    assert read["list"].size(0) == 2 and read["list"].unbind()[1].shape == (1, 4)
    alike(read["holes"], holes.unbind())
    for made in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt)), read["a"]):
        alike(made, nt.unbind())
        assert made.requires_grad and made.is_leaf and made.values().data_ptr() != nt.values().data_ptr()


def test_a_file_cannot_claim_other_offsets():
    nt = batch(4)
    nt._ragged = type(nt._ragged)(adjoin.tensor([0, 900]))
    file = io.BytesIO()
    adjoin.save(nt, file)
    file.seek(0)
    with pytest.raises(Exception, match="offsets must ascend and end in the values"):
        adjoin.load(file)


def test_what_is_refused():
    nt = batch(4)
    for wrong in (nt.numpy, nt.tolist, lambda: bool(nt), nt.item):
        with pytest.raises(RuntimeError):
            wrong()
    for parts in (
        [adjoin.ones(2, 3), adjoin.ones(3, 4)],
        [adjoin.ones(2), adjoin.ones(2, 2)],
        [],
        [adjoin.tensor(1.0)],
    ):
        with pytest.raises(RuntimeError):
            nested.nested_tensor(parts, layout=adjoin.jagged)
    with pytest.raises(TypeError, match="Only lists"):
        nested.nested_tensor(adjoin.ones(3), layout=adjoin.jagged)
    with pytest.raises(RuntimeError, match="layout is unsupported"):
        nested.nested_tensor([adjoin.ones(3)], layout=adjoin.sparse_coo)


def test_a_nested_tensor_is_taken_apart_by_the_names_that_libraries_use():
    parts = [adjoin.arange(2.0 * n).view(n, 2) for n in (3, 1)]
    x = adjoin.nested.nested_tensor(parts, layout=adjoin.jagged)
    assert x._values.tolist() == adjoin.cat(parts).tolist() and x._offsets.tolist() == [0, 3, 4]
    assert x._max_seqlen_tensor is x._min_seqlen_tensor is None and (x._get_max_seqlen(), x._get_min_seqlen()) == (3, 1)
    assert x._lengths is None and x._ragged_idx == 1 and x.transpose(1, 2)._ragged_idx == 2
    again = adjoin.nested.nested_tensor_from_jagged(x._values, x._offsets)
    assert [p.tolist() for p in again.unbind()] == [p.tolist() for p in parts]
    short = adjoin.nested.nested_tensor_from_jagged(adjoin.ones(4, 2), adjoin.tensor([0, 3, 4]), adjoin.tensor([2, 1]))
    assert short._lengths.tolist() == [2, 1] and short._lengths is short.lengths()


def test_a_tensor_becomes_sequences_of_one_length():
    t = adjoin.arange(24.0).view(2, 3, 4).requires_grad_()
    nested = adjoin.nested.as_nested_tensor(t, layout=adjoin.jagged)
    assert nested.values().data_ptr() == t.data_ptr()  # its own memory
    assert [p.tolist() for p in nested.unbind()] == t.tolist()
    (nested * nested).sum().backward()
    assert adjoin.equal(t.grad, 2 * t)
    turned = adjoin.nested.as_nested_tensor(t.detach().transpose(0, 1), dtype=adjoin.float64, layout=adjoin.jagged)
    assert turned.dtype is adjoin.float64 and [p.tolist() for p in turned.unbind()] == t.transpose(0, 1).tolist()
    assert adjoin.nested.as_nested_tensor(adjoin.empty(0, 3, 2), layout=adjoin.jagged).unbind() == ()
    for few, layout in ((adjoin.tensor(3.0), adjoin.jagged), (adjoin.ones(3), adjoin.strided)):
        with pytest.raises(RuntimeError, match="Expected tensor argument to have dim"):
            adjoin.nested.as_nested_tensor(few, layout=layout)


def test_the_ragged_size_is_known_by_its_class():
    nested = adjoin.nested.nested_tensor([adjoin.ones(2, 3), adjoin.ones(4, 3)], layout=adjoin.jagged)
    assert [isinstance(n, adjoin.SymInt) for n in nested.shape] == [False, True, False]
    flat = adjoin.nested.nested_tensor([adjoin.ones(2), adjoin.ones(4)], layout=adjoin.jagged)
    with pytest.raises(RuntimeError, match="2 or fewer dimensions"):
        adjoin.nn.functional.layer_norm(flat, (4,))

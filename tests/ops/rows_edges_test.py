"""tests/ops/rows_edges_test.py: numbers without dimensions, sizes of 0, no indices: every row writes all of its results, and
nothing else than what PyTorch gives."""

import random
import time

import adjoin
import pytest
import samples
from rows import ROWS, TENSOR_ROWS, flat, name_of, on, run, same, some

RAISED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)
SIZES = (1, 8, 40, 64, 100, 190, 250, 500, 700, 1000, 2000, 5000)


def dirty_memory(byte):
    """What is allocated next finds this byte in its memory."""
    kept = [adjoin.full((n,), byte, dtype=adjoin.uint8) for n in SIZES for _ in range(4)]
    kept.clear()


def emptied(shape, at):
    return [0 if i == at % max(len(shape), 1) else n for i, n in enumerate(shape)]


def is_shape(s):
    return s is not None and all(isinstance(n, int) for n in s)


def edges(shapes):
    """The shapes with one tensor, or all, made a number or empty."""
    for change in (lambda s: [], lambda s: emptied(s, 0), lambda s: emptied(s, -1)):
        yield [change(s) if is_shape(s) else s for s in shapes]
        for i, s in enumerate(shapes):
            if is_shape(s):
                yield [*shapes[:i], change(s), *shapes[i + 1 :]]


def smaller(other):
    """The other arguments, and with each number 0."""
    yield other
    for name, v in other.items():
        if isinstance(v, int) and not isinstance(v, bool):
            yield {**other, name: 0}


def outcome(row, given, other):
    try:
        return [(str(t.dtype), list(t.shape), repr(t.tolist())) for t in run(row, given, other)]
    except RAISED as error:
        return str(error)


@pytest.mark.parametrize("row", [r for r in ROWS if r.tensors and r.test is not None], ids=str)
def test_every_result_is_written(row):
    if not row.test.get("values", True):
        pytest.skip("its memory is nobody's")
    dtype = next((d for d in ("float32", "int64", *row.dtypes()) if d in row.dtypes()), "float32")
    for shapes, base in list(row.samples())[:2]:
        for shape in edges(shapes):
            for other in smaller(base):
                given = samples.tensors(random.Random(5), row, shape, dtype)
                seen = []
                for byte in (0x55, 0xAA):
                    dirty_memory(byte)
                    seen.append(outcome(row, given, other))
                assert seen[0] == seen[1], (shape, other)


NONE, NUMBER = "t.tensor([], dtype=t.int64)", "t.tensor(5.)"
CASES = {
    f"{NUMBER}.movedim(0, 0)": 5.0,
    f"{NUMBER}.moveaxis(-1, 0)": 5.0,
    f"{NUMBER}.movedim((), ())": 5.0,
    f"{NUMBER}.adjoint()": 5.0,
    f"{NUMBER}.topk(0)": [5.0, 0],
    "t.tensor(7).topk(0, largest=False)": [7, 0],
    f"{NUMBER}.index_fill(0, {NONE}, -1.0)": 5.0,
    f"{NUMBER}.index_fill_(0, {NONE}, -1.0)": 5.0,
    f"{NUMBER}.index_fill(0, t.tensor([0]), -1.0)": -1.0,
    f"{NUMBER}.index_copy(0, {NONE}, t.tensor([]))": 5.0,
    f"{NUMBER}.index_copy(0, t.tensor([0]), t.tensor([3.0]))": 3.0,
    f"{NUMBER}.index_copy(0, t.tensor(0), t.tensor(3.0))": 3.0,
    "t.ones(2, 3).any(dim=[])": [[True] * 3] * 2,
    "t.zeros(2).all(dim=())": [False, False],
    "t.ones(2, 2).logsumexp([])": 2.386294364929199,
    "t.diff(t.ones(2), n=0, prepend=t.ones(1))": [1.0, 1.0],
    "t.linalg.matrix_norm(t.ones(2, 0, 4), float('inf'))": [0.0, 0.0],
    "t.linalg.matrix_norm(t.ones(2, 4, 0), 1)": [0.0, 0.0],
    "t.linalg.vecdot(t.arange(3.0), t.ones(2, 3))": [3.0, 3.0],
    "t.linalg.vecdot(t.arange(3.0), t.ones(2, 3), dim=0)": [0.0, 2.0, 4.0],
    f"t.unravel_index({NONE}, (0, 2))": [[], []],
    "t.linalg.vector_norm(t.ones(0, 3), float('inf'), 1)": [],
    "t.linalg.vector_norm(t.ones(0, 3), 1)": 0.0,
}
REFUSED = {
    f"{NUMBER}.movedim((0, 0), (0, 0))": "named twice",
    f"{NUMBER}.index_fill(0, t.tensor([1]), -1.0)": "out of range",
    f"{NUMBER}.index_copy(0, t.tensor([2]), t.tensor([3.0]))": "out of range",
    "t.unravel_index(t.tensor(3), (0,))": "no elements",
    "t.linalg.vector_norm(t.ones(0, 3), float('inf'))": "size 0",
    "t.linalg.vector_norm(t.ones(0, 3), -1, 0)": "size 0",
}


@pytest.mark.parametrize("call", CASES)
def test_edges_give_what_pytorch_gives(call):
    got = [r.tolist() for r in flat(eval(call, {"t": adjoin}))]
    assert (got if len(got) > 1 else got[0]) == CASES[call]


@pytest.mark.parametrize("call", REFUSED)
def test_edges_are_refused(call):
    with pytest.raises((RuntimeError, IndexError), match=REFUSED[call]):
        eval(call, {"t": adjoin})


FURTHER = {
    "f.hardtanh(t.tensor([0, 1, 5, 200], dtype=t.uint8)).tolist()": [0, 1, 1, 1],
    "f.hardtanh(t.tensor([0, 1, 5, 200], dtype=t.uint8), -1, 300).tolist()": [0, 1, 5, 200],
    "f.hardtanh(t.tensor([-128, 3], dtype=t.int8), -1e9, 1e9).tolist()": [-128, 3],
    "f.celu(t.tensor([-1.0, 2.0]), 0.5).tolist()": [-0.4323323667049408, 2.0],
    "f.softshrink(t.tensor([-1.0, 2.0]), 0.0).tolist()": [-1.0, 2.0],
    "t.triu_indices(2**31 - 1, 0).shape": [2, 0],
    "t.tril_indices(2**31 - 1, 0).shape": [2, 0],
    "t.triu_indices(2**31 - 1, 0, 5).shape": [2, 0],
    "t.triu_indices(2**31 - 1, 3, offset=2).tolist()": [[0], [2]],
    "t.tril_indices(2**31 - 1, 3, offset=-(2**31 - 3)).tolist()": [[2147483645, 2147483646, 2147483646], [0, 0, 1]],
    "t.empty(2**62, 0).shape": [2**62, 0],
    "t.zeros(2**62, 0, 2**62).numel()": 0,
    "t.ones(0, 2**62).t().stride()": (1, 2**62),
    "(t.zeros(2**62, 0) + 1).clone().unsqueeze(0).nbytes": 0,
    "t.zeros(2**62, 0)[0].shape": [0],
    "t.zeros(2**62, 0).sum().item()": 0.0,
    "t.zeros(2**62, 0).flatten().shape": [0],
}
FURTHER_REFUSED = {
    "f.hardtanh(t.ones(2), 2, 1)": "min_val 2 is above max_val 1",
    "f.celu(t.ones(2), alpha=0)": "alpha must not be 0",
    "t.nn.CELU(0.0)(t.ones(2))": "alpha must not be 0",
    "f.softshrink(t.ones(2), -0.5)": "lambd must not be negative: -0.5",
    "t.triu_indices(2**31 - 1, 2**31 - 1)": "2.31 places",
    "t.empty(2**62, 2**62)": "more bytes",
}


@pytest.mark.parametrize("call", FURTHER)
def test_absurd_sizes_and_bounds(call):
    begin = time.process_time()
    got = eval(call, {"t": adjoin, "f": adjoin.nn.functional})
    assert (list(got) if isinstance(got, adjoin.Size) else got) == FURTHER[call]
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("call", FURTHER_REFUSED)
def test_absurd_sizes_and_bounds_are_refused(call):
    with pytest.raises(RuntimeError, match=FURTHER_REFUSED[call]):
        eval(call, {"t": adjoin, "f": adjoin.nn.functional})


def test_a_resize_to_its_own_shape_changes_nothing():
    x = adjoin.arange(4.0).reshape(2, 2).t()
    assert x.resize_(2, 2).tolist() == [[0, 2], [1, 3]]
    assert adjoin.ones(1).expand(1000).resize_(1000).sum().item() == 1000


def test_convolutions_without_channels_give_nothing_or_refuse():
    for weight, x in (((0, 1, 2, 2), (1, 1, 3, 3)), ((0, 1, 2), (1, 1, 3))):
        try:
            out = (adjoin.conv2d if len(x) == 4 else adjoin.conv1d)(adjoin.ones(*x), adjoin.ones(*weight))
        except RuntimeError:
            continue
        assert out.numel() == 0


@pytest.mark.parametrize("scale", [float("nan"), 5e-324, -1.0, float("inf")])
def test_scales_that_are_none_are_refused(scale):
    with pytest.raises(RuntimeError, match="scale"):
        adjoin._C.find_op("_::resample")(adjoin.ones(1, 2, 6, 7), [1, 2, 3, 9], "linear-smooth", False, [scale, 1.0])


def other_bytes(t):
    """A view of bytes as bools, true where t is, by bytes that are not 1 as a rule."""
    if t is None or t.dtype != adjoin.bool:
        return t
    factors = adjoin.tensor([2, 128, 255, 1, 6], dtype=adjoin.uint8, device=t.device)
    return (t.to(adjoin.uint8).flatten() * factors.repeat(t.numel() // 5 + 1)[: t.numel()]).view(t.shape).view(t.dtype)


def decided(results):
    return [t.logical_not().logical_not() if t.dtype == adjoin.bool else t for t in results]


ELEMENTWISE = [r for r in TENSOR_ROWS if r.kind.startswith(("pointwise", "reduce"))]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_every_byte_but_0_is_true(row, device):
    """Bools may be a view of bytes: what walks over elements takes every byte but 0 for true."""
    dtype = "bool" if "bool" in row.dtypes() else row.dtypes()[0]
    for given, other in some(row, dtype, 3, "bytes"):
        given = on(given, device)
        try:
            plain = decided(run(row, given, other))
        except RAISED:
            continue  # no op of bools
        same(row, decided(run(row, samples.moved(given, other_bytes), other)), plain, name_of(plain[0].dtype))

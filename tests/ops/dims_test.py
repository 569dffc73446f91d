"""tests/ops/dims_test.py: parameters that are dimensions or sizes say so in their rows, so the core checks and wraps them the same everywhere."""

import adjoin
import pytest
from samples import every_row

ROWS = every_row()
NAMES = (
    "dim",
    "dims",
    "dim0",
    "dim1",
    "dim2",
    "axis",
    "axis0",
    "axis1",
    "axes",
    "dimension",
    "source",
    "destination",
    "start_dim",
    "end_dim",
)
# The core counts from the dimensions of the first tensor, or of a list's tensor with the most. These count from another's:
OTHERWISE = {
    "linalg::vecdot": "of the shape that x and y broadcast to",
    "cosine_similarity": "of the shape that x1 and x2 broadcast to",
    "_::unreduce": "of `shape`; grad lacks what was reduced",
    "_::unreduce_at": "of `shape`; grad lacks what was reduced",
    "_::share_ties": "of input; grad lacks what was reduced",
    "_::var_backward": "of input; grad lacks what was reduced",
    "unfold_backward": "of input_shape; grad has one more, and -1 is not that one",
    "tensordot": "how many dimensions, no dimension",
    "tile": "how often each dimension is repeated, no dimension",
}
SIZES = {  # one size: what the core says of -1
    "topk": lambda x, n: x.topk(n),
    "kthvalue": lambda x, n: x.kthvalue(n),
    "narrow": lambda x, n: x.narrow(0, 0, n),
    "split": lambda x, n: x.split(n),
    "chunk": lambda x, n: x.chunk(n),
    "tensor_split": lambda x, n: x.tensor_split(n),
    "unfold": lambda x, n: x.unfold(0, n, 1),
    "linspace": lambda x, n: adjoin.linspace(0, 1, n),
    "eye": lambda x, n: adjoin.eye(2, n),
    "randperm": lambda x, n: adjoin.randperm(n),
    "bincount": lambda x, n: x.long().bincount(minlength=n),
    "histc": lambda x, n: x.histc(n),
    "multinomial": lambda x, n: x.multinomial(n),
    "repeat_interleave": lambda x, n: x.repeat_interleave(n),
    "tril_indices": lambda x, n: adjoin.tril_indices(n, 2),
    "vander": lambda x, n: adjoin.vander(x, n),
    "nonzero_static": lambda x, n: x.nonzero_static(size=n),
}


def named_so(p):
    return p.name in NAMES and not p.tensor


@pytest.mark.parametrize("row", [r for r in ROWS if any(named_so(p) for p in r.params)], ids=str)
def test_a_dimension_is_of_the_type_dim(row):
    wrong = [p.name for p in row.params if named_so(p) and p.base != "dim"]
    assert bool(wrong) == (row.name.partition(".")[0] in OTHERWISE), (
        f"{row.name}: {wrong}: type them dim, or say here why not"
    )


def test_the_list_has_no_rows_of_the_past():
    assert {r.name.partition(".")[0] for r in ROWS} >= set(OTHERWISE)


@pytest.mark.parametrize("name", SIZES)
def test_a_negative_size_is_refused_by_the_core(name):
    with pytest.raises(RuntimeError, match=rf"^{name}: the size \w+ is -1 but must be >= 0: "):
        SIZES[name](adjoin.ones(3), -1)


def test_a_default_is_allowed_where_a_size_is_not_given():
    assert all(
        p.default is None or not p.default.startswith("-")
        for r in ROWS
        for p in r.params
        if p.base == "size" and not p.list
    )


@pytest.mark.parametrize(
    "call, dims",
    [
        (lambda d: adjoin.ones(2, 3).unsqueeze(d), 3),
        (lambda d: adjoin.stack([adjoin.ones(2, 3)] * 2, d), 3),
        (lambda d: adjoin.cat([adjoin.ones(0), adjoin.ones(2, 3)], d), 2),  # a vector without elements does not count
        (lambda d: adjoin.cat([adjoin.ones(2, 3), adjoin.ones(0)], d), 2),
        (lambda d: adjoin.concatenate([adjoin.ones(2, 3)] * 2, axis=d), 2),
        (lambda d: adjoin.diag_embed(adjoin.ones(2, 3), 0, d, 0 if d not in (0, -3) else 1), 3),
        (lambda d: adjoin.rot90(adjoin.ones(2, 3), 1, [d, 0 if d not in (0, -2) else 1]), 2),
        (lambda d: adjoin.linalg.matrix_norm(adjoin.ones(2, 3), dim=(d, 0 if d not in (0, -2) else 1)), 2),
        (lambda d: adjoin.cross(adjoin.ones(3, 3), adjoin.ones(3, 3), d), 2),
        (
            lambda d: (
                adjoin.gather(adjoin.ones(2, 3, requires_grad=True), d, adjoin.zeros(1, 1).long()).sum().backward()
            ),
            2,
        ),
    ],
)
def test_every_dimension_from_both_ends(call, dims):
    for d in range(dims):
        a, b = call(d), call(d - dims)
        assert a is b is None or a.shape == b.shape and (a == b).all()
    for d in (dims, -dims - 1):
        words = rf"Dimension out of range \(expected to be in range of \[-{dims}, {dims - 1}\], but got {d}\)"
        with pytest.raises(IndexError, match=words):
            call(d)

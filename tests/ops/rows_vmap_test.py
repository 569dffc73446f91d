"""tests/ops/rows_vmap_test.py: every row under func.vmap against a loop over the samples, for every choice of batched arguments."""

import itertools
import random

import adjoin
import coverage_table as table
import pytest
import samples
from adjoin.func import vmap
from closed_forms_random import SEED as PHILOX_SEED
from rows import TENSOR_ROWS, flat, same

# Results of a sample's own shape, or numbers of Python's: the message says what to do instead.
REFUSED = {"nonzero", "masked_select", "unique", "unique_consecutive", "unique_dim", "repeat_interleave.places", "equal", "allclose",
           "is_nonzero", "item", "argwhere", "index_put_", "repeat_interleave.Tensor", "where.nonzero"}  # fmt: skip


# Their strides are those of one sample: where samples lie along another dimension than the first, a view may not exist.
STRIDED = {
    "view",
    "view_as",
    "view_copy",
    "view.dtype",
    "view_copy.dtype",
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
}


def families(row, dtype, count):
    """(samples of equal shapes, other arguments): as many samples as a batch has."""
    drawn = [list(samples.all_samples(row, dtype, f"{table.SEED}{i}")) for i in range(count)]
    for at in zip(*drawn, strict=True):
        yield [given for given, _ in at], at[0][1]


def leaves_of(given):
    """Places of tensors: (name,) or (name, item)."""
    for name, value in given.items():
        if isinstance(value, list):
            yield from ((name, i) for i, t in enumerate(value) if t is not None)
        else:
            yield (name,)


def leaf(given, place):
    return given[place[0]] if len(place) == 1 else given[place[0]][place[1]]


def put(given, places, tensors):
    made = {k: list(v) if isinstance(v, list) else v for k, v in given.items()}
    for place, t in zip(places, tensors, strict=True):
        if len(place) == 1:
            made[place[0]] = t
        else:
            made[place[0]][place[1]] = t
    return made


def call(row, given, other):
    written = [p.name for p in row.params if p.written and given.get(p.name) is not None]
    given = {**given, **samples.moved({k: given[k] for k in written}, lambda t: t.clone())}
    result = row.call(**given, **other)
    return tuple(flat(result) if result is not None else flat([given[k] for k in written]))


def chosen_subsets(places, salt):
    """Every choice of batched arguments; of many, all, each alone and a few more."""
    subsets = [s for n in range(1, len(places) + 1) for s in itertools.combinations(places, n)]
    if len(subsets) <= 7 or table.FULL:
        return subsets
    ends = [s for s in subsets if len(s) in (1, len(places))]
    return ends + random.Random(f"{table.SEED}{salt}").sample(subsets, 3)


def loop(row, family, other, places):
    """The results sample by sample; None where a sample is refused."""
    adjoin.manual_seed(PHILOX_SEED)
    results = []
    for given in family:
        results.append(call(row, put(family[0], places, [leaf(given, p) for p in places]), other))
    return [adjoin.stack(column) for column in zip(*results, strict=True)]


def check(row, family, other, places, dims, dtype):
    """dims: where each batched argument has its samples."""
    try:
        expected = loop(row, family, other, places)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return False  # these samples are refused one by one, too, or have results of different shapes

    def function(*tensors):
        return call(row, put(family[0], places, tensors), other)

    stacked = [adjoin.stack([leaf(given, p) for given in family], d) for p, d in zip(places, dims, strict=True)]
    adjoin.manual_seed(PHILOX_SEED)
    got = vmap(function, tuple(dims), randomness="different")(*stacked)
    same(row, list(got), expected, dtype, 10)
    return True


def checked_rows():
    return [r for r in TENSOR_ROWS if r.name not in REFUSED and not r.name.startswith("fused_")]


@pytest.mark.parametrize("row", checked_rows(), ids=str)
def test_vmap_is_a_loop(row):
    dtype = next((d for d in ("float64", "complex128") if d in row.dtypes()), row.dtypes()[0])
    for family, other in table.pick(families(row, dtype, 3), 2, row.name + "vmap"):
        places = list(leaves_of(family[0]))
        # What must agree with other arguments is batched with them.
        for subset in [places] if row.name in samples.DEPENDENT else chosen_subsets(places, row.name):
            check(row, family, other, subset, [0] * len(subset), dtype)
        if row.name in STRIDED:
            continue
        ends = [-1 if i % 2 else leaf(family[0], p).ndim // 2 for i, p in enumerate(places)]
        check(row, family, other, places, ends, dtype)


@pytest.mark.parametrize("row", checked_rows(), ids=str)
def test_batches_of_one_and_of_none(row):
    dtype = next((d for d in ("float64", "complex128") if d in row.dtypes()), row.dtypes()[0])
    for family, other in table.pick(families(row, dtype, 1), 1, row.name + "one"):
        places = list(leaves_of(family[0]))
        if not check(row, family, other, places, [0] * len(places), dtype) or row.name == "bincount":
            continue  # bincount's result is as long as the largest number
        one = loop(row, family, other, places)

        def function(*tensors, family=family, other=other, places=places):
            return call(row, put(family[0], places, tensors), other)

        none = [leaf(family[0], p).unsqueeze(0)[:0] for p in places]
        for got, want in zip(vmap(function, randomness="different")(*none), one, strict=True):
            assert got.shape == (0, *want.shape[1:]) and got.dtype == want.dtype


@pytest.mark.parametrize("row", checked_rows(), ids=str)
def test_nested(row):
    """Two levels: the outer one maps the first argument, the inner one all others."""
    dtype = next((d for d in ("float64", "complex128") if d in row.dtypes()), row.dtypes()[0])
    for family, other in table.pick(families(row, dtype, 2), 1, row.name + "nest"):
        if row.params[0].written or row.name in DRAWS:
            break  # what is one at the outer level has no room for the inner one
        places = list(leaves_of(family[0]))
        first, rest = places[:1], places[1:]
        try:
            expected = [loop(row, [put(g, first, [leaf(h, first[0])]) for g in family], other, places) for h in family]
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            continue
        expected = [adjoin.stack(column) for column in zip(*expected, strict=True)]
        if not rest:
            continue

        def function(x, *others, family=family, other=other, first=first, rest=rest):
            def inner(*tensors):
                return call(row, put(put(family[0], first, [x]), rest, tensors), other)

            return vmap(inner, randomness="different")(*others)

        xs = adjoin.stack([leaf(g, first[0]) for g in family])
        others = [adjoin.stack([leaf(g, p) for g in family]) for p in rest]
        got = vmap(function, (0, *[None] * len(others)), randomness="different")(xs, *others)
        same(row, list(got), expected, dtype, 10)


DRAWS = {"normal", "normal.float_Tensor", "bernoulli", "multinomial", "poisson", "nn::dropout"}

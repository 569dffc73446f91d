"""tests/ops/rows_test.py: values, dtypes, layouts and forms of every row of the op tables. A new row brings its own tests."""

import itertools
import random

import adjoin
import coverage_table as table
import numpy as np
import pytest
import references
import samples
from rows import ROWS, TENSOR_ROWS, close, flat, name_of, numbers, on, run, same, some


def refused(row, given, other):
    """Results, or None where the op says that it does not take this dtype."""
    try:
        return run(row, given, other)
    except (NotImplementedError, RuntimeError, TypeError):
        return None


def check_reference(row, given, other, dtype, scale):
    """Does the row give what NumPy or its closed form gives? False where there is none for these arguments."""
    try:
        with np.errstate(all="ignore"):
            expected = references.compute(row, given, other)
    except TypeError:
        return False  # NumPy's function has other parameters: the backends are compared instead
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    for g, e in zip(run(row, given, other), expected, strict=False):
        close(numbers(g), np.asarray(e), name_of(g.dtype) if name_of(g.dtype) == "float32" else dtype, scale)
    return True


@pytest.mark.parametrize("row", [r for r in ROWS if r.test is not None and references.known(r)], ids=str)
def test_value(row):
    dtype = row.dtypes()[0]
    compared = [check_reference(row, *sample, dtype, 10) for sample in some(row, dtype, 12, "")]
    assert any(compared)
    table.mark(row, "value")


@pytest.mark.parametrize("row", [r for r in ROWS if r.test is not None and not references.known(r)], ids=str)
def test_value_beside_reference(row):
    """Rows without NumPy's word: the plain loops of the reference backend, or only the shape."""
    if row.tensors:
        dtype = row.dtypes()[0]
        for given, other in some(row, dtype, 12, ""):
            same(row, run(row, given, other), run(row, on(given, "reference"), other), dtype, 4)
    else:
        for _, other in some(row, "float32", 12, ""):
            same(row, run(row, {}, other), run(row, {}, {**other, "device": "reference"}), "float32")
    table.mark(row, "value", "r" if row.test.get("values", True) else "s")


@pytest.mark.parametrize("row", [r for r in ROWS if r.other_name_of], ids=str)
def test_other_name(row):
    """Another name of a row gives the same bits."""
    first = samples.Row(adjoin._C.op_info(row.other_name_of)[0])
    for given, other in some(row, row.dtypes()[0], 6, "name"):
        for a, b in zip(run(row, given, other), run(first, given, other), strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b))


@pytest.mark.parametrize(
    "row", [r for r in TENSOR_ROWS if "also" in r.test is not None and references.known(r)], ids=str
)
def test_special(row):
    """Infinities, NaN, signed zeros and the like, one element at a time."""
    for special in row.test["also"]:
        group = special if isinstance(special, list) else [special]
        given = {
            p.name: adjoin.tensor([float(v)], dtype=adjoin.float64) for p, v in zip(row.tensors, group, strict=False)
        }
        other = next(iter(row.arguments()))
        if row.params[-1].name == "alpha":  # NumPy's has none
            other = {}
        check_reference(row, given, other, "float64", 1)
    table.mark(row, "special")


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_backends_agree(row):
    """cpu and reference, for every dtype that either takes."""
    agreed = table.dtypes.setdefault(row.name, set())
    for dtype in row.dtypes():
        for given, other in some(row, dtype, 2, dtype):
            got = refused(row, given, other)
            expected = refused(row, on(given, "reference"), other)
            assert (got is None) == (expected is None), f"{dtype}: only one backend takes it"
            if got is None:
                continue
            agreed.add(dtype)
            for g, e in zip(got, expected, strict=True):
                same(row, [g], [e], name_of(g.dtype), 4)
    assert agreed
    table.mark(row, "dtypes")


FACTORIES = [r for r in ROWS if not r.tensors and any(p.name == "dtype" for p in r.params)]


@pytest.mark.parametrize("row", FACTORIES, ids=str)
def test_factory_dtypes(row):
    """What makes a tensor makes it in every dtype that it takes, alike on both backends, on meta, and empty."""
    agreed = table.dtypes.setdefault(row.name, set())
    for dtype in table.DTYPES:
        for _, other in some(row, dtype, 3, dtype):
            other = {**other, "dtype": getattr(adjoin, dtype)}
            got = refused(row, {}, other)
            expected = refused(row, {}, {**other, "device": "reference"})
            assert (got is None) == (expected is None), f"{dtype}: only one backend takes it"
            if got is None:
                continue
            agreed.add(dtype)
            assert got[0].dtype == other["dtype"] and expected[0].device.type == "reference"
            same(row, got, expected, dtype, 4)
            meta = run(row, {}, {**other, "device": "meta"})[0]
            assert meta.dtype == got[0].dtype and list(meta.shape) == list(got[0].shape)
    assert agreed
    table.mark(row, "dtypes")
    table.mark(row, "meta")


def layouts(t):
    """The same values as t in other places of memory."""
    if t is None or not t.ndim:
        return t, t
    wide = adjoin.zeros([*t.shape[:-1], t.shape[-1] * 2 + 1], dtype=t.dtype)
    part = wide[..., 1::2][..., : t.shape[-1]]
    part.copy_(t)
    return t.transpose(0, -1).contiguous().transpose(0, -1), part


LAYOUT_IS_MEANING = ("view", "view_copy", "view_as", "view_as_complex", "view_as_complex_copy", "as_strided", "as_strided_copy",
                     "unflatten")  # fmt: skip


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_layouts(row):
    """The same values for tensors that lie otherwise: transposed, and as every second element of another."""
    if row.ident in LAYOUT_IS_MEANING:
        table.mark(row, "layout", "-")
        return
    dtype = row.dtypes()[0]
    for given, other in some(row, dtype, 3, ""):
        plain = run(row, given, other)
        for which in range(2):
            same(row, run(row, samples.moved(given, lambda t, w=which: layouts(t)[w]), other), plain, dtype)
    table.mark(row, "layout")


def resized(shapes, old, new):
    """The shapes with every size `old` replaced: sizes that had to agree still do."""
    if isinstance(shapes, list):
        return [resized(s, old, new) for s in shapes]
    return new if shapes == old and not isinstance(shapes, bool) else shapes


def largest(shapes):
    if all(isinstance(s, int) for s in shapes):
        return samples.count_of(shapes)
    return max(largest(s) for s in shapes if s not in (None, "none"))


def outcome(row, given, other):
    """Results, or the class of what it raised."""
    try:
        return run(row, given, other)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__


def sized(row, shapes, other, check, dtype):
    """One call with these sizes: against NumPy where it has a word, and between the backends."""
    given = samples.complete(row, samples.tensors(random.Random(check), row, shapes, dtype), other)
    got, expected = outcome(row, given, other), outcome(row, on(given, "reference"), other)
    if isinstance(got, str) or isinstance(expected, str):
        assert got == expected
        return "e"
    same(row, got, expected, dtype, 100)
    try:
        small = row.name not in references.SMALL_ONLY or largest(shapes) < 300
        known = small and references.known(row) and check_reference(row, given, other, dtype, 100)
    except (ValueError, IndexError, ZeroDivisionError):  # NumPy refuses these sizes
        known = False
    return "x" if known else "s" if not row.test.get("values", True) else "r"


SIZES = {"reduce": ([[3, 0]], [[23, 3049]]), 1: ([[3, 0]], [[70_001]]), 2: ([[0, 3], [3]], [[70_001], [1]])}
LINEAR_SIZES = (
    "size",
    "input_shape",
    "shape",
    "src_shape",
    "num_weights",
    "repeats",
    "normalized_shape",
    "num_classes",
    "split_size",
)


def sizes_in(shapes):
    """The sizes that occur, the first first."""
    if isinstance(shapes, int):
        return [shapes]
    return list(dict.fromkeys(n for s in shapes if s not in (None, "none") for n in sizes_in(s)))


def cases_of_size(row, new):
    """The row's samples with one size replaced, every size in turn: the first that is taken shall do."""
    for shapes, other in row.samples():
        for size in [row.test["size"]] if "size" in row.test else sizes_in(shapes):
            n = (
                new
                if not new
                else next(n for n in (1_201, 131, 37, 11, size) if largest(resized(shapes, size, n)) < 50_000)
            )
            yield (
                resized(shapes, size, n),
                {k: resized(v, size, n) if k in LINEAR_SIZES else v for k, v in other.items()},
            )


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_empty_and_large(row):
    """One size 0, and one size large: NumPy's values, and both backends alike in values or in refusing."""
    dtype = row.dtypes()[0]
    own = "shapes" in row.test or "cases" in row.test
    count = "reduce" if row.kind.startswith(("reduce", "scan")) else len(row.shapes()[0]) if not own else 0
    for new, check in ((0, "empty"), (1, "large")):
        table.mark(row, check, "-")  # only numbers are taken
        if not own:
            fixed = SIZES.get(count, ([[3, 0]] * len(row.shapes()[0]), [[70_001]] * len(row.shapes()[0])))[new]
            cases = [(fixed, other) for _, other in row.samples()][:1]
        else:
            cases = itertools.islice(cases_of_size(row, new), 24)
        for shapes, other in cases:
            found = sized(row, shapes, other, check, dtype)
            table.mark(row, check, found)
            if found != "e":
                break


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_meta(row):
    """Shapes and dtypes without data are those with data."""
    dtype = row.dtypes()[0]
    for given, other in some(row, dtype, 2, "meta"):
        other = {**other, "device": "meta"} if other.get("device") == "cpu" else other
        try:
            got = run(row, on(given, "meta"), other)
        except (NotImplementedError, RuntimeError):
            table.mark(row, "meta", "-")  # the shape depends on the data
            return
        for g, e in zip(got, run(row, given, other), strict=True):
            assert list(g.shape) == list(e.shape) and g.dtype == e.dtype
    table.mark(row, "meta")


@pytest.mark.parametrize("row", [r for r in ROWS if table.applies(r, "out")], ids=str)
def test_out(row):
    dtype = row.dtypes()[0]
    for given, other in some(row, dtype, 2, "out"):
        plain = run(row, given, other)
        outs = [adjoin.empty(list(t.shape), dtype=t.dtype) for t in plain]
        back = run(row, given, {**other, "out": outs[0] if len(outs) == 1 else tuple(outs)})
        assert flat(back)[0] is outs[0]
        same(row, outs, plain, dtype)
    table.mark(row, "out")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.info["in_place"]], ids=str)
def test_in_place(row):
    dtype = row.dtypes()[0]
    method = adjoin._C.find_op((row.space + "::" if row.space else "") + row.ident + "_")
    assert method is not None
    done = False
    for given, other in some(row, dtype, 3, "in"):
        plain = run(row, given, other)[0]
        first = next(iter(given))
        if plain.dtype != given[first].dtype or plain.shape != given[first].shape:
            continue
        target = given[first].clone()
        version = target._version
        assert method(target, **{k: v for k, v in given.items() if k != first}, **other) is target
        assert target._version > version
        close(numbers(target), numbers(plain), dtype)
        done = True
    table.mark(row, "in-place", "x" if done else "-")


def test_every_row_has_samples():
    assert [r.name for r in ROWS if r.test is None] == []
    assert [r.name for r in ROWS if r.test is not None and r.lacks_arguments] == []

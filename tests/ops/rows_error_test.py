"""tests/ops/rows_error_test.py: what every row says to wrong types, shapes, dimensions, indices, dtypes and devices.

An error says what was asked, what was found and what to do: `op: what is wrong: values seen; what to do`.
"""

import re

import adjoin
import coverage_table as table
import pytest
import samples
from rows import ROWS, TENSOR_ROWS, on, run, same

RAISED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)
BROADCASTING = ("binary", "binary_float", "compare", "pointwise")
# Integers that are no places: any value is right, or a large one.
NO_PLACE = {"repeat_interleave.Tensor": "repeats", "repeat_interleave.places": "repeats", "bincount": "input",
            "nn::one_hot": "input"}  # fmt: skip

# Words that programs look for in PyTorch's errors keep its capitals.
PYTORCHS = (
    "Boolean value of Tensor with more than one value",
    "Dimension out of range",
    "Expected ",
    "Input must be >= ",
    "Negative strides are not supported",
)


def check_form(row, error):
    """One line that begins with the op's name, in lower case but for PyTorch's words, without a full stop, and shows what it found."""
    text = str(error)
    names = {row.ident, *(["amax", "logsumexp", "mean", "var"] if row.name in samples.DEPENDENT else [])}
    name, _, rest = text.partition(": ")
    assert name in names, text
    assert "\n" not in text and not text.endswith("."), text
    assert rest and (not rest[0].isupper() or rest.startswith(PYTORCHS)), text
    assert "std::" not in text and "0x" not in text, text


def refusal(row, given, other):
    """The error of a call, or None where it is taken; then the reference backend must take it, too, and say the same."""
    try:
        got = run(row, given, other)
    except RAISED as error:
        check_form(row, error)
        return error
    there = run(row, on(given, "reference"), other)
    if row.test.get("repeats", True):
        same(row, got, there, "float64", 100)
    return None


def tensor_like(t, shape):
    return adjoin.ones(shape).to(t.dtype)


def other_shapes(t):
    """Shapes that t does not have: fewer and more dimensions, other sizes."""
    sizes = list(t.shape)
    yield []
    yield [3] * 7
    yield [*sizes, 2]
    yield [s + 1 for s in sizes] if sizes else [2]
    if sizes:
        yield [*sizes[:-1], sizes[-1] + 1]
        yield sizes[1:]


def with_list(other, param, value):
    """A list parameter has as many values as its sample."""
    sample = other.get(param.name)
    return [value] * (len(sample) if isinstance(sample, list) else 1) if param.list else value


def wrong_shapes(row, given, other):
    """Calls that may be wrong: (what, tensors, other arguments)."""
    for p in row.tensors:
        value = given.get(p.name)
        if isinstance(value, list):
            yield f"{p.name}=[]", {**given, p.name: []}, other
            if value and value[0] is not None:
                yield (
                    f"{p.name}: one other shape",
                    {**given, p.name: [tensor_like(value[0], [2, 3, 4, 5]), *value[1:]]},
                    other,
                )
        elif value is not None:
            for shape in other_shapes(value):
                yield f"{p.name}={shape}", {**given, p.name: tensor_like(value, shape)}, other
    for p in row.params:
        if p.base in ("int", "size") and p.name not in ("seed", "offset"):
            for v in (-7, 0):
                yield f"{p.name}={v}", given, {**other, p.name: with_list(other, p, v)}
            if p.list:
                for v in ([], [1] * 9):
                    yield f"{p.name}={v}", given, {**other, p.name: v}


def first_sample(row):
    return next(iter(samples.all_samples(row, row.dtypes()[0], 0)))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_wrong_shapes(row):
    """Whatever the shapes and sizes: a result that both backends give, or an error in the project's form."""
    given, other = first_sample(row)
    refused = sum(refusal(row, g, o) is not None for _, g, o in wrong_shapes(row, given, other))
    table.mark(row, "shapes", str(refused) if refused else "-")  # -: every shape and size is right


@pytest.mark.parametrize(
    "row", [r for r in TENSOR_ROWS if r.kind in BROADCASTING and len(first_sample(r)[0]) > 1], ids=str
)
def test_sizes_that_do_not_broadcast(row):
    given, other = first_sample(row)
    names = list(given)
    bad = {**given, names[0]: tensor_like(given[names[0]], [2, 3]), names[1]: tensor_like(given[names[1]], [4, 5])}
    for name in names[2:]:
        bad[name] = tensor_like(given[name], [1])
    with pytest.raises(RuntimeError, match=rf"{row.ident}: .*\[2, 3\].*\[4, 5\]") as error:
        run(row, bad, other)
    check_form(row, error.value)


@pytest.mark.parametrize("row", [r for r in ROWS if any(p.base == "dim" for p in r.params)], ids=str)
def test_dimension_out_of_range(row):
    given, other = first_sample(row)
    for p in row.params:
        for v in (9, -9) if p.base == "dim" else ():
            with pytest.raises(IndexError, match=str(v)) as error:
                run(row, given, {**other, p.name: with_list(other, p, v)})
            check_form(row, error.value)
    table.mark(row, "dims")


def places(row):
    return [n for n in (row.test or {}).get("ints", {}) if NO_PLACE.get(row.name) != n]


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if places(r)], ids=str)
def test_index_out_of_range(row):
    given, other = first_sample(row)
    for name in places(row):
        for far in (10**6, -(10**6)):
            value = given[name]
            bad = [value[0] * 0 + far, *value[1:]] if isinstance(value, list) else value * 0 + far
            with pytest.raises(IndexError) as error:
                run(row, {**given, name: bad}, other)
            check_form(row, error.value)
            with pytest.raises(IndexError):
                run(row, on({**given, name: bad}, "reference"), other)
    table.mark(row, "index")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.name in NO_PLACE], ids=str)
def test_integers_that_are_no_places(row):
    """Large ones are right; negative ones are not."""
    given, other = first_sample(row)
    with pytest.raises(RAISED) as error:
        run(row, {**given, NO_PLACE[row.name]: given[NO_PLACE[row.name]] * 0 - 7}, other)
    check_form(row, error.value)
    table.mark(row, "index")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if "dtypes" not in r.test], ids=str)
def test_wrong_dtypes(row):
    """A dtype that the row does not take is named, with what to do."""
    refused = 0
    for dtype in table.DTYPES:
        given, other = next(iter(samples.all_samples(row, dtype, 0)))
        try:
            run(row, given, other)
        except RAISED as error:
            check_form(row, error)
            assert dtype in str(error) or re.search("complex|floating|integer|bool|dtype|minus", str(error)), error
            refused += 1
    table.mark(row, "types", str(refused) if refused else "-")  # -: every dtype is right


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.tensors[0].base == "Tensor"], ids=str)
def test_wrong_type(row):
    given, other = first_sample(row)
    with pytest.raises((TypeError, RuntimeError), match=row.ident):
        row.call(**{**given, row.tensors[0].name: "text"}, **other)
    with pytest.raises(TypeError, match=row.ident):
        row.call(**given, **other, no_such_argument=1)


def devices_mixed(given, device, made):
    """One tensor elsewhere, every one in turn; 0-dim ones may stay on the CPU."""
    wide = [(k, None) for k, v in given.items() if isinstance(v, adjoin.Tensor) and v.ndim]
    wide += [
        (k, i) for k, v in given.items() if isinstance(v, list) for i, t in enumerate(v) if t is not None and t.ndim
    ]
    wide = [(k, i) for k, i in wide if k not in made]
    for k, i in wide if len(wide) > 1 else ():
        moved = given[k].to(device) if i is None else [t.to(device) if i == j else t for j, t in enumerate(given[k])]
        yield {**given, k: moved}


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_wrong_devices(row):
    """A tensor of the reference backend, or without data, among those of the CPU."""
    given, other = first_sample(row)
    crosses = "crosses-devices" in row.info["tags"] or row.name in ("type_as", "view_as", "reshape_as", "expand_as")
    made = samples.DEPENDENT[row.name](given, other) if row.name in samples.DEPENDENT else ()
    for device in ("reference", "meta"):
        for mixed in devices_mixed(given, device, made) if not crosses else ():
            with pytest.raises(RuntimeError, match=rf"cpu.*{device}|{device}.*cpu") as error:
                run(row, mixed, other)
            check_form(row, error.value)
            table.mark(row, "devices")
    if "devices" not in table.rows.get(row.name, {}):
        table.mark(row, "devices", "-")  # takes them from anywhere, or has one tensor that is no number

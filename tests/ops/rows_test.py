"""Runs every row of the op tables: values, dtypes, layouts, forms, derivatives, errors. A new row brings its own tests."""

import random

import adjoin
import coverage_table as table
import numpy as np
import pytest
import references
import samples

ROWS = [r for r in samples.every_row() if not r.name.startswith("_::")]
TENSOR_ROWS = [r for r in ROWS if r.tensors and r.test is not None and not r.lacks_arguments]
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 5e-3, "bfloat16": 4e-2, "complex128": 1e-9, "complex64": 5e-5}
NO_DERIVATIVE = {"dropout_philox", "zero_"}  # random; constant


def flat(result):
    """The tensors of a result, in order."""
    if isinstance(result, adjoin.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in flat(r)]
    return [adjoin.tensor(result)]


def run(row, given, other):
    return flat(row.call(**given, **other))


def close(a, b, dtype, scale=1.0):
    """Same shape, same values within the dtype's tolerance, NaN where NaN is."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
    tol = TOLERANCE.get(dtype, 0) * scale
    if a.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol, equal_nan=True)


def numbers(t):
    """As NumPy's; bfloat16, which NumPy lacks, as float32."""
    t = t.detach().to("cpu")
    return (t.float() if t.dtype == adjoin.bfloat16 else t).numpy()


def usable(row, given, other):
    """Results, or None where the op says that it does not take this dtype."""
    try:
        return run(row, given, other)
    except (NotImplementedError, RuntimeError, TypeError):
        return None


@pytest.mark.parametrize("row", [r for r in ROWS if r.test and "ref" in r.test and not r.lacks_arguments], ids=str)
def test_value(row):
    dtype = row.dtypes()[0]
    compared = 0
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 12, row.name):
        try:
            expected = references.compute(row, given, other)
        except TypeError:
            continue  # NumPy's function has other parameters: the backends are compared instead
        if expected is None:
            continue
        got = run(row, given, other)
        expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
        for g, e in zip(got, expected, strict=False):
            close(numbers(g), np.asarray(e), dtype, 10)
        compared += 1
    table.mark(row, "value", "x" if compared else "r")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if "also" in r.test and "ref" in r.test], ids=str)
def test_special(row):
    """Infinities, NaN, signed zeros and the like, one element at a time."""
    for special in row.test["also"]:
        group = special if isinstance(special, list) else [special]
        given = {p.name: adjoin.tensor([float(v)], dtype=adjoin.float64) for p, v in zip(row.tensors, group, strict=False)}
        other = next(iter(row.arguments()))
        if row.params[-1].name == "alpha":  # NumPy's has none
            other = {}
        with np.errstate(all="ignore"):
            expected = references.compute(row, given, other)
        if expected is not None:
            close(numbers(run(row, given, other)[0]), np.asarray(expected), "float64")
    table.mark(row, "special")


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_backends_agree(row):
    """cpu and reference, for every dtype that either takes."""
    agreed = table.dtypes.setdefault(row.name, set())
    for dtype in row.dtypes():
        for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 2, row.name + dtype):
            got = usable(row, given, other)
            there = {k: [t.to("reference") for t in v] if isinstance(v, list) else v.to("reference") for k, v in given.items()}
            expected = usable(row, there, other)
            assert (got is None) == (expected is None), f"{dtype}: only one backend takes it"
            if got is None:
                continue
            agreed.add(dtype)
            for g, e in zip(got, expected, strict=True):
                assert g.dtype == e.dtype
                close(numbers(g), numbers(e), str(g.dtype).split(".")[-1], 4)
    table.mark(row, "dtypes", "x" if agreed else ".")


def layouts(t):
    """The same values as t in other places of memory."""
    yield "transposed", t.transpose(0, -1).contiguous().transpose(0, -1) if t.ndim > 1 else t
    if t.ndim:
        wide = adjoin.zeros([*t.shape[:-1], t.shape[-1] * 2 + 1], dtype=t.dtype)
        part = wide[..., 1::2][..., : t.shape[-1]]
        part.copy_(t)
        yield "strided", part


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_layouts(row):
    dtype = row.dtypes()[0]
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 3, row.name):
        plain = run(row, given, other)
        if row.ident in ("view", "view_as", "view_as_complex", "as_strided", "unflatten"):
            continue  # their meaning is the layout
        for which in range(2):
            moved = {k: v if isinstance(v, list) else list(layouts(v))[min(which, max(0, v.ndim - 1))][1] if v.ndim else v
                     for k, v in given.items()}  # fmt: skip
            for g, e in zip(run(row, moved, other), plain, strict=True):
                close(numbers(g), numbers(e), dtype)
    table.mark(row, "layout")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if "shapes" not in r.test], ids=str)
def test_empty_and_large(row):
    dtype = row.dtypes()[0]
    tensors = [p for p in row.tensors if not p.optional]
    for size, check in ((0, "empty"), (70_001, "large")):
        rng = random.Random(size)
        shape = [3, size] if size == 0 else [size]
        other = next(iter(row.arguments()), {})
        given = {p.name: samples.make(rng, p, shape, dtype, row.test, "cpu") for p in tensors if p.name not in other}
        if row.kind.startswith(("reduce", "scan")) or "dim" in other:
            continue
        got = run(row, given, other)
        expected = run(row, {k: v.to("reference") for k, v in given.items()}, other)
        for g, e in zip(got, expected, strict=True):
            close(numbers(g), numbers(e), dtype)
        table.mark(row, check)


def resized(shapes, old, new):
    """The shapes with every size `old` replaced: sizes that had to agree still do."""
    if isinstance(shapes, list):
        return [resized(s, old, new) for s in shapes]
    return new if shapes == old else shapes


def largest(shapes):
    if all(isinstance(s, int) for s in shapes):
        return samples.count_of(shapes)
    return max(largest(s) for s in shapes if s is not None)


def outcome(row, given, other):
    """Results, or the class of what it raised."""
    try:
        return run(row, given, other)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if any(map(any, r.test.get("shapes", [])))], ids=str)
def test_given_shapes_empty_and_large(row):
    """The row's own shapes with one size 0, and with one size large: both backends agree, in values or in refusing."""
    dtype = row.dtypes()[0]
    shapes = next(s for s in row.shapes() if any(s))  # not only of 0-dim tensors
    first = next(s for s in shapes if s)
    size = first[0][0] if isinstance(first[0], list) else first[0]
    other = next(iter(row.arguments()), {})
    large = next(n for n in (1_201, 131, 37, 11, size) if largest(resized(shapes, size, n)) < 50_000)
    for new, check in ((0, "empty"), (large, "large")):
        given = samples.tensors(random.Random(new), row, resized(shapes, size, new), dtype)
        there = {k: [t.to("reference") for t in v] if isinstance(v, list) else v.to("reference") for k, v in given.items()}
        got, expected = outcome(row, given, other), outcome(row, there, other)
        if isinstance(got, str) or isinstance(expected, str):
            assert got == expected
            table.mark(row, check, "e")
            continue
        for g, e in zip(got, expected, strict=True):
            assert g.dtype == e.dtype
            close(numbers(g), numbers(e), dtype, 100)
        table.mark(row, check)


@pytest.mark.parametrize("row", TENSOR_ROWS, ids=str)
def test_meta(row):
    """Shapes and dtypes without data are those with data."""
    dtype = row.dtypes()[0]
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 2, row.name + "meta"):
        meta = {k: [t.to("meta") for t in v] if isinstance(v, list) else v.to("meta") for k, v in given.items()}
        try:
            got = run(row, meta, other)
        except (NotImplementedError, RuntimeError):
            table.mark(row, "meta", "-")  # the shape depends on the data
            return
        for g, e in zip(got, run(row, given, other), strict=True):
            assert list(g.shape) == list(e.shape) and g.dtype == e.dtype
    table.mark(row, "meta")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.info["out"]], ids=str)
def test_out(row):
    dtype = row.dtypes()[0]
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 2, row.name + "out"):
        plain = run(row, given, other)
        outs = [adjoin.empty(list(t.shape), dtype=t.dtype) for t in plain]
        back = row.call(**given, **other, out=outs[0] if len(outs) == 1 else tuple(outs))
        assert flat(back)[0] is outs[0]
        for g, e in zip(outs, plain, strict=True):
            close(numbers(g), numbers(e), dtype)
    table.mark(row, "out")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.info["in_place"]], ids=str)
def test_in_place(row):
    dtype = row.dtypes()[0]
    method = adjoin._C.find_op((row.space + "::" if row.space else "") + row.ident + "_")
    assert method is not None
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 3, row.name + "in"):
        plain = run(row, given, other)[0]
        first = next(iter(given))
        if plain.dtype != given[first].dtype or plain.shape != given[first].shape:
            continue
        target = given[first].clone()
        version = target._version
        assert method(target, **{k: v for k, v in given.items() if k != first}, **other) is target
        assert target._version > version
        close(numbers(target), numbers(plain), dtype)
    table.mark(row, "in-place")


def differentiable(row):
    return row.info["differentiable"] and row.name not in NO_DERIVATIVE


def gradient_sample(row, given, other):
    """A function of the floating inputs alone, and those inputs; None if nothing of it can be differentiated."""
    statistics = {p.name for p in row.params[1:] if p.written}  # written beside the result: not differentiable
    inputs = []
    for name, value in given.items():
        for t in value if isinstance(value, list) else [value]:
            if (t.dtype.is_floating_point or t.dtype.is_complex) and name not in statistics:
                inputs.append(t.detach().clone().requires_grad_())
    if not inputs or sum(t.numel() for t in inputs) > 160:
        return None

    def function(*args):
        args = list(args)
        fill = {}
        for k, v in given.items():
            def take(t):
                return args.pop(0) if t.dtype.is_floating_point or t.dtype.is_complex else t
            fill[k] = v.clone() if k in statistics else [take(t) for t in v] if isinstance(v, list) else take(v)
        if row.params[0].written:
            fill[row.params[0].name] = fill[row.params[0].name] * 1  # a leaf may not be written
        results = run(row, fill, other)
        if not kept:
            exact = (adjoin.float64, adjoin.complex128)  # differences say nothing of a cast to fewer bits
            kept.extend(i for i, t in enumerate(results) if t.requires_grad and t.dtype in exact)
        return tuple(results[i] for i in kept)

    kept = []  # results that depend on the inputs: gradcheck asks for them with recording off, too
    return (function, inputs) if function(*inputs) else None


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if differentiable(r)], ids=str)
def test_gradients(row):
    """First and second derivatives against finite differences in float64."""
    dtype = "float64" if "float64" in row.dtypes() else "complex128"
    if dtype not in row.dtypes():
        pytest.skip("no floating dtype")
    done = False
    for given, other in table.pick(samples.all_samples(row, dtype, table.SEED), 3, row.name + "grad"):
        sample = gradient_sample(row, given, other)
        if sample is None:
            continue
        function, inputs = sample
        assert adjoin.autograd.gradcheck(function, inputs)
        assert adjoin.autograd.gradgradcheck(function, inputs)
        done = True
    table.mark(row, "grad", "x" if done else "-")
    table.mark(row, "grad2", "x" if done else "-")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if r.tensors[0].base == "Tensor" and not r.tensors[0].list], ids=str)
def test_errors(row):
    """Wrong types, shapes and devices raise, and say whose fault it is."""
    given, other = next(iter(samples.all_samples(row, row.dtypes()[0], 0)))
    first = next(iter(given))
    with pytest.raises((TypeError, RuntimeError), match=row.ident):
        row.call(**{**given, first: "text"}, **other)
    if row.kind in ("binary", "binary_float", "compare") and len(given) == 2:
        bad = dict(zip(given, (adjoin.ones(2, 3), adjoin.ones(4, 5)), strict=True))
        with pytest.raises(RuntimeError, match=rf"{row.ident}: .*\[2, 3\].*\[4, 5\]"):
            row.call(**bad, **other)
    both = [k for k, v in given.items() if isinstance(v, adjoin.Tensor) and v.ndim]
    if len(both) > 1 and "crosses-devices" not in row.info["tags"]:
        mixed = {**given, both[1]: given[both[1]].to("reference")}
        with pytest.raises(RuntimeError, match="cpu.*reference|reference.*cpu"):
            row.call(**mixed, **other)
    table.mark(row, "errors")


def test_every_row_is_tested_or_says_why():
    """Rows without samples are internal, random, or aliases: nothing else may lack them."""
    untested = [r.name for r in ROWS if r.test is None]
    assert len(untested) < len(ROWS) / 3, untested

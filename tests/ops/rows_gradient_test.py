"""tests/ops/rows_gradient_test.py: first and second derivatives of every row against finite differences in float64."""

import adjoin
import coverage_table as table
import pytest
import samples
from rows import ROWS, TENSOR_ROWS, run

DRAWN = {"normal", "normal.float_Tensor"}  # numbers drawn from a distribution have no derivative by its parameters
UNSERVED = {"heaviside", "unique", "unique_consecutive"}  # rows that record, and refuse the backward pass


def differentiable(row):
    left_out = row.name in DRAWN or row.name in UNSERVED
    return row.info["differentiable"] and not left_out and not row.info["schema"].endswith("-> ()")


def exact(t):
    return t is not None and (t.dtype.is_floating_point or t.dtype.is_complex)


def small(given):
    """Differences take one call for every element."""
    tensors = [t for v in given.values() for t in (v if isinstance(v, list) else [v])]
    return sum(t.numel() for t in tensors if exact(t)) <= 160


def gradient_sample(row, given, other):
    """A function of the floating inputs alone, and those inputs; None if nothing of it can be differentiated."""
    fixed = {p.name for p in row.params[1:] if p.written}  # written beside the result: not differentiable
    fixed |= set(samples.complete(row, given, other)) - set(given) if row.name in samples.DEPENDENT else set()
    fixed |= set(samples.DEPENDENT[row.name](given, other)) if row.name in samples.DEPENDENT else set()
    fixed |= set(row.test.get("signs", [])) | set(row.test.get("fixed", []))
    fixed |= {"running_mean", "running_var"} if other.get("training") else set()
    inputs = []
    for name, value in given.items():
        for t in value if isinstance(value, list) else [value]:
            if exact(t) and name not in fixed:
                inputs.append(t.detach().clone().requires_grad_())
    if not inputs:
        return None

    def function(*args):
        args = list(args)
        fill = {}
        for k, v in given.items():

            def take(t):
                return args.pop(0) if exact(t) else t

            fill[k] = v if k in fixed else [take(t) for t in v] if isinstance(v, list) else take(v)
        if row.params[0].written:
            fill[row.params[0].name] = fill[row.params[0].name] * 1  # a leaf may not be written
        results = run(row, fill, other)
        if not kept:
            wide = (adjoin.float64, adjoin.complex128)  # differences say nothing of a cast to fewer bits
            kept.extend(i for i, t in enumerate(results) if t.requires_grad and t.dtype in wide)
        return tuple(results[i] for i in kept)

    kept = []  # results that depend on the inputs: gradcheck asks for them with recording off, too
    return (function, inputs) if function(*inputs) else None


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if differentiable(r)], ids=str)
def test_gradients(row):
    dtype = "float64" if "float64" in row.dtypes() else "complex128"
    done = False
    fit = [s for s in samples.all_samples(row, dtype, table.SEED) if small(s[0])]
    for given, other in table.pick(fit, 3, row.name + "grad"):
        sample = gradient_sample(row, given, other)
        if sample is None:
            continue
        function, inputs = sample
        assert adjoin.autograd.gradcheck(function, inputs)
        assert adjoin.autograd.gradgradcheck(function, inputs)
        done = True
    table.mark(row, "grad", "x" if done else "-")
    table.mark(row, "grad2", "x" if done else "-")


@pytest.mark.parametrize("row", [r for r in ROWS if r.name in DRAWN], ids=str)
def test_what_is_drawn_has_gradient_zero(row):
    given, other = next(iter(samples.all_samples(row, "float64", table.SEED)))
    first = next(iter(given))
    asking = {**given, first: given[first].clone().requires_grad_()}
    run(row, asking, other)[0].sum().backward()
    assert not asking[first].grad.any()
    table.mark(row, "grad", "0")
    table.mark(row, "grad2", "0")


@pytest.mark.parametrize("row", [r for r in TENSOR_ROWS if not differentiable(r) and r.name not in DRAWN], ids=str)
def test_rows_without_derivative_say_so(row):
    """Their results ask for no gradient, or the derivative names the row."""
    given, other = next(iter(samples.all_samples(row, row.dtypes()[0], table.SEED)))
    written = {p.name for p in row.params if p.written}
    read = {k: v for k, v in given.items() if k not in written}
    asking = {**given, **samples.moved(read, lambda t: t.clone().requires_grad_() if exact(t) else t)}
    for t in run(row, asking, other):
        if t.requires_grad:
            with pytest.raises(NotImplementedError, match=row.ident):
                t.sum().backward()
    table.mark(row, "grad", "-")
    table.mark(row, "grad2", "-")


def test_every_row_with_a_derivative_has_a_sample():
    assert [r.name for r in ROWS if differentiable(r) and r.tensors and r.test is None] == []

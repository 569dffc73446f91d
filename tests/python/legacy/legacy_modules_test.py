"""tests/python/legacy/legacy_modules_test.py: every module and criterion of adjoin.legacy.nn: its values in other words, its gradients by
finite differences, in float64."""

import copy
import pickle
import re
import zlib

import adjoin as torch
import pytest
from adjoin.legacy import nn
from adjoin.legacy.nn._record import differs, each, flat

import legacy_cases as cases

STEP = 1e-6
REVERSED = {"GradientReversal": lambda m, x, g: -0.5 * g, "L1Penalty": lambda m, x, g: g + 0.1 * x.sign()}


def r(*shape):
    return torch.randn(shape, dtype=torch.float64)


def p(*shape):
    return torch.rand(shape, dtype=torch.float64) + 0.5


def lin(m, x):
    return torch.einsum("...i,oi->...o", x, m.weight) + m.bias


def conv(m, x):
    return torch.conv2d(x[None], m.weight, m.bias)[0]


def around(x, power):
    """Sums of powers in windows of 3 by 3 over all planes, and how many numbers each has."""
    x = x.reshape(-1, *x.shape[-3:])
    out, count = torch.zeros_like(x[:, :1]), torch.zeros_like(x[:, :1])
    for i in range(5):
        for j in range(5):
            part = x[:, :, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            out[:, 0, i, j], count[:, 0, i, j] = (part**power).sum((1, 2, 3)), part[0].numel()
    return out, count


def subtracted(x):
    sums, count = around(x, 1)
    return x - (sums / count).reshape(*x.shape[:-3], 1, 5, 5)


def divided(x):
    sums, count = around(x, 2)
    inside = count / (9 * x.shape[-3])
    return x / ((sums / (9 * x.shape[-3])) ** 0.5 / inside).reshape(*x.shape[:-3], 1, 5, 5)


def contrast(x):
    return divided(subtracted(x))


def local(m, x):
    x = torch.nn.functional.pad(x, (m.padW, m.padW, m.padH, m.padH))
    out = x.new_zeros(x.shape[0], m.nOutputPlane, m.oH, m.oW)
    for i in range(m.oH):
        for j in range(m.oW):
            part = x[:, :, i * m.dH : i * m.dH + m.kH, j * m.dW : j * m.dW + m.kW]
            out[:, :, i, j] = torch.einsum("bihw,oihw->bo", part, m.weight[i, j]) + m.bias[:, i, j]
    return out


WORDS = {"torch": torch, "nn": nn, "r": r, "p": p, "lin": lin, "conv": conv, "local": local, "contrast": contrast,
         "subtracted": subtracted, "divided": divided}  # fmt: skip


def made(text):
    return eval(f"nn.{text}", WORDS)


def close(got, wanted, rel=1e-9):
    got, wanted = flat(got), flat(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.shape == b.shape
        assert torch.allclose(a.to(b.dtype), b, rtol=rel, atol=rel), (a, b)


def numeric(function, tensor):
    """The gradient of a number that depends on a tensor, element by element."""
    slope = torch.zeros_like(tensor)
    places = tensor.reshape(-1) if tensor.is_contiguous() else tensor.t().reshape(-1)
    found = slope.reshape(-1) if tensor.is_contiguous() else slope.t().reshape(-1)
    assert places.data_ptr() == tensor.data_ptr()
    for i in range(places.numel()):
        kept = places[i].item()
        places[i] = kept + STEP
        above = function()
        places[i] = kept - STEP
        found[i] = (above - function()) / (2 * STEP)
        places[i] = kept
    return slope


def seed(text):
    torch.manual_seed(zlib.crc32(text.encode()))


@pytest.mark.parametrize(("text", "given", "wanted"), cases.MODULES, ids=[c[0][:60] for c in cases.MODULES])
def test_module(text, given, wanted):
    seed(text)
    m, x = made(text).double(), eval(given, WORDS)

    def forward():
        torch.manual_seed(3)
        return m.forward(x)

    out = each(lambda t: t.clone(), forward())
    if wanted:
        first = flat(out)[0]
        close(out, eval(wanted, {**WORDS, "x": x, "m": m, "full": lambda v: torch.full_like(first, v)}))
    g = each(lambda t: r(*t.shape), out)
    weigh = lambda: sum((a * b).sum().item() for a, b in zip(flat(forward()), flat(g)))
    m.zeroGradParameters()
    inside = m.backward(x, g)
    if m.__class__.__name__ in REVERSED:
        close(inside, REVERSED[m.__class__.__name__](m, x, g))
    else:
        slopes = [numeric(weigh, t) if differs(t) else torch.zeros_like(t) for t in flat(x)]
        close(flat(inside), slopes, 1e-6)
    assert [t.shape for t in flat(m.gradInput)] == [t.shape for t in flat(x)]
    if m.parameters() is None:
        return
    weights, gradients = m.parameters()
    if "LookupTable(6, 3, 1)" in text:  # padding learns nothing
        assert not gradients[0][1].any() and gradients[0][2].any()
    for weight, gradient in zip(weights, gradients):
        close(gradient, numeric(weigh, weight), 1e-6)
    # Another way to the same: each step by itself, with a scale, added.
    once = [t.clone() for t in gradients]
    forward()
    m.updateGradInput(x, g)
    m.accGradParameters(x, g, 2)
    close(gradients, [3 * t for t in once])
    before = [w.clone() for w in weights]
    m.updateParameters(0.1)
    close(weights, [w - 0.3 * t for w, t in zip(before, once)])
    m.zeroGradParameters()
    assert not any(t.any() for t in gradients)
    # And at once, without keeping the gradients.
    for w, b in zip(weights, before):
        w.copy_(b)
    forward()
    m.backwardUpdate(x, g, 0.1)
    close(weights, [b - 0.1 * t for b, t in zip(before, once)])
    assert not any(t.any() for t in gradients)


@pytest.mark.parametrize(
    ("text", "given", "target", "wanted"), cases.CRITERIONS, ids=[c[0][:60] for c in cases.CRITERIONS]
)
def test_criterion(text, given, target, wanted):
    seed(text)
    c, x, t = made(text).double(), eval(given, WORDS), eval(target, WORDS)
    value = c.forward(x, t)
    assert isinstance(value, float) and value == c.output == c(x, t)
    assert value == pytest.approx(eval(wanted, {**WORDS, "x": x, "t": t, "c": c}).item(), rel=1e-9)
    gradient = c.backward(x, t)
    assert gradient is c.gradInput
    close(flat(gradient), [numeric(lambda: c.forward(x, t), part) for part in flat(x)], 1e-6)
    table = nn.CriterionTable(c)  # the same as a module
    assert table.forward([x, t]) == value
    close(table.backward([x, t], None), gradient)


def test_every_module_is_here():
    texts = " ".join(c[0] for c in (*cases.MODULES, *cases.CRITERIONS))
    named = set(re.findall(r"(?:^| )(\w+)\(", texts))
    assert set(nn.__all__) == named | cases.ELSEWHERE and len(nn.__all__) >= 143


@pytest.mark.parametrize(("text", "given", "wanted"), cases.MODULES[::3], ids=[c[0][:60] for c in cases.MODULES[::3]])
def test_copies_files_types_and_forgetting(text, given, wanted):
    seed(text)
    m, x = made(text).double(), eval(given, WORDS)
    m.forward(x)
    m.backward(x, m.output)
    torch.manual_seed(1)
    out = each(lambda t: t.clone(), m.forward(x))
    for other in (m.clone(), pickle.loads(pickle.dumps(m)), copy.copy(m)):
        torch.manual_seed(1)
        close(other.forward(x), out, 0)
    m.clearState()
    assert all(not t.numel() for t in [*flat(m.output), *flat(m.gradInput)])
    torch.manual_seed(1)
    close(m.forward(x), out, 0)
    m.float()
    if m.parameters():
        assert {t.dtype for part in m.parameters() for t in part} == {torch.float32} and m.type() == "torch.FloatTensor"
    small = each(lambda t: t.float() if differs(t) else t, x)
    torch.manual_seed(1)
    got = flat(m.forward(small))
    if "Copy" not in text and not hasattr(m, "noise"):
        close(got, [t.to(s.dtype) for t, s in zip(flat(out), got)], 1e-4)


@pytest.mark.parametrize("text", ["ReLU", "ReLU6", "Threshold(0.1, 3, ", "ELU(1.0, ", "LeakyReLU(0.1, ", "HardTanh(-1, 1, ",
                                  "AddConstant(2, ", "MulConstant(3, ", "RReLU(0.1, 0.2, ", "Dropout(0.5, "])  # fmt: skip
def test_in_place_writes_into_the_input(text):
    text = text if "(" in text else text + "("
    plain, inside = made(text + "False)"), made(text + "True)")
    x, g = r(3, 4), r(3, 4)
    torch.manual_seed(5)
    wanted, y = plain.forward(x), x.clone()
    torch.manual_seed(5)
    assert inside.forward(y) is y and torch.equal(y, wanted) and not torch.equal(y, x)
    close(inside.backward(y, g), plain.backward(x, g), 0)
    net = nn.Sequential().add(nn.Linear(4, 4)).add(inside).double()
    assert net.forward(x) is net.get(0).output
    net.backward(x, g)
    assert net.gradInput.shape == x.shape


def test_in_place_of_a_table():
    m, x = nn.CAddTable(True), [r(3), r(3)]
    first = x[0].clone()
    assert m.forward(x) is x[0] and torch.equal(x[0], first + x[1])
    assert torch.equal(m.backward(x, x[1])[0], x[1])


@pytest.mark.parametrize(("pool", "back", "shape"), [("SpatialMaxPooling(2, 2)", "SpatialMaxUnpooling", (2, 2, 4, 4)),
                                                     ("VolumetricMaxPooling(2, 2, 2)", "VolumetricMaxUnpooling", (1, 2, 4, 4, 4))])  # fmt: skip
def test_unpooling(pool, back, shape):
    pool = made(pool)
    m, x = getattr(nn, back)(pool), r(*shape)
    small = pool.forward(x)
    out = m.forward(small)
    assert (
        out.shape == x.shape and torch.equal(torch.where(out != 0, x, out), out) and (out != 0).sum() == small.numel()
    )
    g = r(*shape)
    close(m.backward(small, g), numeric(lambda: (m.forward(small) * g).sum().item(), small), 1e-6)


def test_parts_of_a_wide_layer():
    m, x = nn.PartialLinear(4, 6).double(), r(3, 4)
    m.setPartition(torch.tensor([4, 1]))
    assert torch.allclose(m.forward(x), lin(m, x)[:, [4, 1]])
    m.zeroGradParameters()
    m.backward(x, r(3, 2))
    assert m.gradWeight.abs().sum(1).nonzero().flatten().tolist() == [1, 4]
    m.resetPartition()
    assert m.forward(x).shape == (3, 6)


def test_lookup_counts_and_bounds():
    m, x = nn.LookupTable(4, 2).double().scaleGradByFreq(), torch.tensor([1, 1, 3])
    m.forward(x)
    m.backward(x, torch.ones(3, 2, dtype=torch.float64))
    assert m.gradWeight.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    m = nn.LookupTable(4, 2, -1, 0.5)
    m.weight.fill_(3)
    assert torch.allclose(m.forward(x).norm(2, 1), torch.full((3,), 0.5)) and m.weight[0, 0] == 3


def test_other_ways_to_evaluate():
    x = r(4, 3, 2, 2)
    norm = nn.SpatialBatchNormalization(3).double()
    norm.forward(x)
    assert torch.allclose(norm.running_mean, 0.1 * x.mean((0, 2, 3)))
    norm.evaluate()
    close(norm.forward(x), (x - norm.running_mean[:, None, None]) / (norm.running_var[:, None, None] + 1e-5).sqrt()
          * norm.weight[:, None, None])  # fmt: skip
    for drop in (nn.Dropout(), nn.SpatialDropout(), nn.VolumetricDropout()):
        drop.evaluate()
        assert torch.equal(drop.forward(x), x)
    drop = nn.SpatialDropout(0.5)
    planes = (drop.forward(torch.ones(20, 20, 2, 2)) == 0).flatten(2)
    assert torch.equal(planes.any(2), planes.all(2)) and 100 < planes.all(2).sum() < 300
    slope = nn.RReLU(0.1, 0.3)
    slope.evaluate()
    close(slope.forward(x), torch.where(x > 0, x, 0.2 * x))
    penalty = nn.L1Penalty(0.5)
    penalty.forward(x)
    assert penalty.loss == pytest.approx(0.5 * x.abs().sum().item())
    pool = nn.SpatialFractionalMaxPooling(2, 2, 0.5).fixPoolingRegions()
    big = r(1, 2, 9, 9)
    assert torch.equal(pool.forward(big).clone(), pool.forward(big))
    simplex = nn.ClassSimplexCriterion(5)
    assert torch.allclose(simplex.simplex @ simplex.simplex.t(), torch.eye(5) * 1.25 - 0.25, atol=1e-6)
    assert simplex.getTopPrediction(simplex.simplex).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: nn.MultiMarginCriterion(3), "p is 3, wanted 1 or 2"),
        (lambda: nn.Dropout(1.5), "wanted a share"),
        (lambda: nn.BatchNormalization(3).forward(torch.ones(2, 3, 4)), "wanted 2 dimensions"),
        (lambda: nn.SpatialSubtractiveNormalization(1, torch.ones(2, 2)), "wanted one or two odd sizes"),
        (lambda: nn.Linear(2, 2).type("torch.LongTensor"), "a type of floating numbers is wanted"),
        (lambda: nn.SpatialFractionalMaxPooling(2, 2, 3, 0.5), "wanted two sizes"),
        (lambda: nn.SpatialUpSamplingNearest(1.5), "wanted a whole number"),
        (lambda: nn.ClassSimplexCriterion(1), "wanted 2 or more"),
        (lambda: nn.Module().forward(torch.ones(1)), "a module defines updateOutput"),
        (
            lambda: nn.Linear(2, 2).backward(r(3, 2).float(), r(2, 2)),
            r"gradOutput has shape \(2, 2\), the output \(3, 2\)",
        ),
        (lambda: nn.SplitTable(0).backward(r(3, 2), [r(2)]), "gradOutput has 1 tensors, the output 3"),
        (
            lambda: nn.ParallelTable().add(nn.Tanh()).forward([r(1), r(1)]),
            "has 2 parts for 1 modules; one each is wanted",
        ),
        (lambda: nn.Criterion().forward(torch.ones(1), None), "a criterion defines updateOutput"),
    ],
)
def test_wrong_uses_are_told(make, told):
    with pytest.raises((ValueError, NotImplementedError), match=told):
        make()

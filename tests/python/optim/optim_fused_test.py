"""tests/python/optim/optim_fused_test.py: steps over all parameters at once: layouts, dtypes, devices, counts, what is refused."""

import adjoin
import numpy as np
import pytest
from adjoin import _C, nn, optim

WAYS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.3, maximize=True),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: optim.Adam(p, lr=0.1, eps=1e-3, betas=(0.9, 0.8)),  # in reach of float16
    "amsgrad": lambda p: optim.Adam(p, lr=0.1, eps=1e-3, betas=(0.9, 0.8), amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.1, eps=1e-3, betas=(0.9, 0.8), maximize=True),
}
SHAPES = [(3, 4), (), (0, 2), (5,), (2, 3, 4, 5), (70_001,)]


def numbers(t):
    return t.detach().to("cpu").double().numpy().copy()


def one_by_one(monkeypatch):
    """Steps as single ops, which the fused ones are compared with."""
    for kind in (optim.SGD, optim.Adam):
        monkeypatch.setattr(kind, "_step_fused", lambda self, group: False)


def train(way, make, steps=3):
    rng = np.random.default_rng(5)
    params = [nn.Parameter(make(adjoin.tensor(rng.standard_normal(s)))) for s in SHAPES]
    optimizer = WAYS[way](params)
    for step in range(steps):
        for i, p in enumerate(params):
            grad = make(adjoin.tensor(rng.standard_normal(SHAPES[i])))
            p.grad = None if step == 1 and i == 0 else grad
        optimizer.step()
    return params, optimizer


def transposed(t):
    return t.mT.contiguous().mT if t.ndim > 1 else t


def gapped(t):
    wide = adjoin.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype) if t.ndim else t
    return wide[..., ::2].copy_(t) if t.ndim else t


MAKERS = {
    "float64": (lambda t: t, 1e-13),
    "float32": (lambda t: t.float(), 2e-5),
    "float16": (lambda t: t.half(), 2e-2),
    "bfloat16": (lambda t: t.bfloat16(), 1e-1),
    "transposed": (transposed, 1e-13),
    "gapped": (gapped, 1e-13),
    "reference": (lambda t: t.to("reference"), 1e-13),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("way", WAYS)
def test_same_as_one_by_one(way, maker, monkeypatch):
    make, tolerance = MAKERS[maker]
    fused, optimizer = train(way, make)
    with monkeypatch.context() as m:
        one_by_one(m)
        single, other = train(way, make)
    for a, b in zip(fused, single, strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=tolerance, atol=tolerance)
        for key, value in other.state[b].items():
            np.testing.assert_allclose(numbers(optimizer.state[a][key]), numbers(value), rtol=tolerance, atol=tolerance)


def test_mixed_dtypes_and_late_parameters():
    params = [nn.Parameter(adjoin.ones(3, dtype=d)) for d in (adjoin.float32, adjoin.float64)]
    late = nn.Parameter(adjoin.ones(2))
    optimizer = optim.SGD([*params, late], lr=0.5, momentum=0.5)
    for step in range(2):
        for p in [*params, late][: 2 + step]:
            p.grad = adjoin.ones_like(p)
        optimizer.step()
    assert params[0].tolist() == params[1].tolist() == [1 - 0.5 - 0.75] * 3
    assert late.tolist() == [0.5] * 2
    assert set(optimizer.state_dict()["state"]) == {0, 1, 2}


def test_complex_parameters_are_pairs():
    for kind in (optim.SGD, optim.Adam):
        z = nn.Parameter(adjoin.tensor([1 + 2j, 3 - 1j]))
        pair = nn.Parameter(adjoin.view_as_real(z.detach().clone()))
        settings = {"momentum": 0.9} if kind is optim.SGD else {}
        first, second = kind([z], lr=0.1, **settings), kind([pair], lr=0.1, **settings)
        for _ in range(3):
            z.grad = z.detach() * (1 + 1j)
            pair.grad = adjoin.view_as_real(z.grad)
            first.step()
            second.step()
        np.testing.assert_allclose(adjoin.view_as_real(z.detach()).numpy(), pair.detach().numpy(), rtol=1e-6)
        kept = first.state[z]["momentum_buffer" if settings else "exp_avg"]
        assert kept.is_complex() and kept.shape == z.shape


def test_a_step_is_a_write():
    p = nn.Parameter(adjoin.ones(3))
    loss = (p * p).sum()
    p.grad = adjoin.ones(3)
    version = p._version
    optim.SGD([p], lr=0.1).step()
    assert p._version == version + 1
    with pytest.raises(RuntimeError, match="modified|changed|version|in place"):
        loss.backward()
    step = _C.find_op("fused_scale_")
    with pytest.raises(RuntimeError, match="fused_scale_: .*requires grad.*no_grad"):
        step([p], adjoin.tensor(2.0))
    with adjoin.no_grad():
        step([p], adjoin.tensor(2.0))
    assert p.tolist() == pytest.approx([1.8] * 3)


def test_wrong_lists_are_refused():
    adam = _C.find_op("fused_adam_")
    numbers = {
        "lr": 0.1,
        "beta1": 0.9,
        "beta2": 0.9,
        "eps": 0.1,
        "weight_decay": 0.0,
        "decoupled": False,
        "maximize": False,
    }
    a, count = adjoin.ones(3), adjoin.zeros(())
    with pytest.raises(RuntimeError, match="fused_adam_: grads has 2 tensors, params 1"):
        adam([a], [a, a], [a], [a], [], [count], **numbers)
    with pytest.raises(RuntimeError, match=r"exp_avgs must be like .*\[2\]"):
        adam([a], [a], [adjoin.ones(2)], [a], [], [count], **numbers)
    with pytest.raises(RuntimeError, match="state_steps must be 0-dim"):
        adam([a], [a], [a], [a], [], [a], **numbers)
    with pytest.raises(RuntimeError, match="floating dtype"):
        adam([a.int()], [a.int()], [a.int()], [a.int()], [], [count], **numbers)


def test_ways_exclude_each_other():
    p = [nn.Parameter(adjoin.ones(2))]
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        optim.Adam(p, fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="does not support `differentiable`"):
        optim.SGD(p, fused=True, differentiable=True)


def test_differentiable_steps():
    """The derivative of two steps with respect to the start and the gradient, by differences."""
    for make in (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, differentiable=True),
        lambda p: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1, differentiable=True),
    ):

        def steps(start, grad, make=make):
            p = start * 1.0
            optimizer = make([p])
            for scale in (1.0, 0.5):
                p.grad = grad * scale
                optimizer.step()
            return p

        start = adjoin.tensor([0.3, -1.2], dtype=adjoin.float64, requires_grad=True)
        grad = adjoin.tensor([0.7, 0.4], dtype=adjoin.float64, requires_grad=True)
        assert adjoin.autograd.gradcheck(steps, (start, grad))


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf"), 3.0, 0.5])
def test_clip_grad_norm(order):
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s) for s in SHAPES if 0 not in s]
    params = [nn.Parameter(adjoin.zeros(a.shape, dtype=adjoin.float64)) for a in arrays]
    for p, a in zip(params, arrays, strict=True):
        p.grad = adjoin.tensor(a)
    total = np.linalg.norm(np.concatenate([a.ravel() for a in arrays]), order)
    norm = nn.utils.clip_grad_norm_(params, 1.5, order)
    assert norm.item() == pytest.approx(total, rel=1e-10)
    scale = min(1.5 / (total + 1e-6), 1)
    for p, a in zip(params, arrays, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), a * scale, rtol=1e-12)
    nn.utils.clip_grad_norm_(params, 1e12, order)
    np.testing.assert_allclose(params[0].grad.numpy(), arrays[0] * scale, rtol=1e-12)
    params[0].grad[0, 0] = float("nan")
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(params, 1.0, order, error_if_nonfinite=True)
    assert np.isnan(nn.utils.clip_grad_norm_(params, 1.0, order).item())


def test_norm_of_large_numbers_and_no_gradients():
    p = nn.Parameter(adjoin.zeros(3))
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 0
    p.grad = adjoin.full((3,), 1e30)
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(3**0.5 * 1e30, rel=1e-6)

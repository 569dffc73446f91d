"""tests/python/optim/outside_optimizers_test.py: an optimizer written after the pattern of PyTorch's own, with the helpers it imports."""

import math

import adjoin
import numpy as np
import pytest
from adjoin import nn
from adjoin.optim import optimizer as helpers
from adjoin.optim.optimizer import (
    Optimizer,
    _default_to_fused_or_foreach,
    _dispatch_sqrt,
    _get_scalar_dtype,
    _get_value,
    _use_grad_for_differentiable,
    _view_as_real,
)


class Rooted(Optimizer):
    """Steps of lr / sqrt(count)."""

    def __init__(self, params, lr=0.1, differentiable=False):
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @_use_grad_for_differentiable
    def step(self, closure=None):
        for group in self.param_groups:
            params, grads, counts = [], [], []
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"] = adjoin.tensor(0.0, dtype=_get_scalar_dtype())
                params.append(p)
                grads.append(p.grad)
                counts.append(state["step"])
            _view_as_real(params, grads)
            for p, g, count in zip(params, grads, counts, strict=True):
                count += 1
                p.add_(g, alpha=-group["lr"] / _dispatch_sqrt(_get_value(count)))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_it_steps_as_its_formula_says(dtype):
    p = nn.Parameter(adjoin.tensor([1.0, -2.0], dtype=getattr(adjoin, dtype)))
    wanted, steps = np.array([1.0, -2.0], dtype), Rooted([p])
    for k in range(1, 5):
        steps.zero_grad()
        (p * p.conj()).real.sum().backward()
        steps.step()
        wanted = wanted - 0.1 / math.sqrt(k) * 2 * wanted
    assert np.allclose(p.detach().numpy(), wanted) and p.is_leaf
    assert steps.state[p]["step"].item() == 4


def test_a_differentiable_step_is_recorded_and_another_is_not():
    for differentiable in (True, False):
        leaf = adjoin.ones(2, requires_grad=True)
        p = leaf.clone()
        p.retain_grad()
        (p**2).sum().backward()
        g = adjoin.ones(2, requires_grad=True)
        p.grad = g * 3 if differentiable else adjoin.ones(2)
        if differentiable:
            Rooted([p], differentiable=True).step()
            p.sum().backward()
            assert g.grad.tolist() == pytest.approx([-0.3, -0.3])
        else:
            before = adjoin.is_grad_enabled()
            q = nn.Parameter(adjoin.ones(2))
            q.grad = p.grad
            Rooted([q]).step()
            assert q.is_leaf and adjoin.is_grad_enabled() == before


def test_what_the_helpers_answer():
    p = nn.Parameter(adjoin.ones(2))
    assert _default_to_fused_or_foreach([p, None], False) == (False, False)
    assert _default_to_fused_or_foreach([p], False, use_fused=True) == (True, False)
    assert _default_to_fused_or_foreach([p], True, use_fused=True) == (False, False)
    whole = [adjoin.ones(2, dtype=adjoin.int64)]
    assert _default_to_fused_or_foreach(whole, False, use_fused=True) == (False, False)
    assert _dispatch_sqrt(4) == 2 and _dispatch_sqrt(adjoin.tensor(9.0)).item() == 3
    assert _get_scalar_dtype(True) is adjoin.float32 and _get_value(adjoin.tensor(2)) == 2 and _get_value(0.5) == 0.5
    assert helpers._to_scalar(adjoin.ones(1)).ndim == 0 and helpers._stack_if_compiling([1]) == [1]
    assert helpers._disable_dynamo_if_unsupported()(math.sqrt) is math.sqrt
    with pytest.raises(RuntimeError, match="requires all the params to be floating point"):
        helpers._device_dtype_check_for_fused(whole[0])
    helpers._device_dtype_check_for_fused(p)
    assert isinstance(helpers.required, helpers._RequiredParameter)

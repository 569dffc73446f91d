"""tests/python/autograd/make_functional_test.py: functorch's older functions: modules as functions of tuples of tensors."""

import subprocess
import sys

import adjoin
import pytest
from adjoin import nn
from adjoin._functorch.make_functional import combine_state_for_ensemble, make_functional, make_functional_with_buffers
from adjoin.func import grad, vmap

pytestmark = pytest.mark.filterwarnings("ignore:We've integrated functorch")


def test_a_module_is_a_function_of_its_parameters():
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), adjoin.randn(4, 2)
    f, params = make_functional(model)
    assert f.param_names == ("0.weight", "0.bias", "2.weight", "2.bias") and adjoin.equal(f(params, x), model(x))
    f([p * 2 for p in params], x).sum().backward()
    assert all(p.grad is not None for p in params) and all(p.grad is None for p in model.parameters())
    assert not adjoin.equal(f([p * 2 for p in params], x), model(x))
    each = vmap(grad(lambda params, x: f(params, x).sum()), (None, 0))(params, x)
    for i in range(4):
        wanted = adjoin.autograd.grad(model(x[i]).sum(), list(model.parameters()))
        assert all(adjoin.allclose(a[i], b, atol=1e-6) for a, b in zip(each, wanted, strict=True))
    assert not any(p.requires_grad for p in make_functional(model, disable_autograd_tracking=True)[1])
    with pytest.raises(RuntimeError, match="has 4 tensors .* 3 were given"):
        f(params[:3], x)


def test_buffers_are_arguments():
    model, x = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), adjoin.randn(8, 2)
    f, params, buffers = make_functional_with_buffers(model)
    f(params, buffers, x)
    assert buffers[0].abs().sum() > 0 and model[1].running_mean.abs().sum() == 0
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        make_functional(model)


def test_tied_parameters_are_one():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    f, params = make_functional(model)
    assert len(params) == 1
    assert f([adjoin.eye(2) * 3], adjoin.ones(1, 2)).tolist() == [[9, 9]]


def test_an_ensemble():
    models, x = [nn.Linear(2, 3) for _ in range(5)], adjoin.randn(4, 2)
    f, params, buffers = combine_state_for_ensemble(models)
    assert params[0].shape == (5, 3, 2) and not params[0].requires_grad
    out = vmap(f, (0, 0, None))(params, buffers, x)
    assert adjoin.allclose(out, adjoin.stack([m(x) for m in models]), atol=1e-6)
    for given, told in (
        ([], "at least one"),
        ([models[0], nn.Tanh()], "same class"),
        ([models[0], nn.Linear(2, 3).eval()], "mode"),
    ):
        with pytest.raises(RuntimeError, match=told):
            combine_state_for_ensemble(given)
    with pytest.warns(FutureWarning, match="functional_call"):
        make_functional(models[0])


def test_what_went_to_func_warns():
    """The package functorch itself, which the alias brings."""
    program = """
import warnings
import adjoin.torch
adjoin.torch.install()
import functorch, torch
x = torch.ones(2)
for name, f in dict(grad=torch.sum, vjp=None, jacrev=torch.sin, vmap=torch.sin, hessian=torch.sum).items():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = functorch.vjp(torch.sin, x)[1](x) if f is None else getattr(functorch, name)(f)(x)
    assert [w.category for w in told] == [FutureWarning] and f"functorch.{name} is deprecated" in str(told[0].message), told
assert "sin" in functorch.make_fx(torch.sin)(x).code and functorch.grad.__name__ == "grad"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr

"""tests/compat/beside_optim_test.py: steps, state and clipping beside PyTorch's, setting by setting."""

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import adjoin
from beside import near, optimizers, ours, step_both, theirs

SHAPES = [(4, 3), (7,), (), (2, 3, 5)]
SETTINGS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True, "fused": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "foreach": True}),
    ("Adam", {"betas": (0.5, 0.8), "eps": 1e-3, "maximize": True, "foreach": False}),
    ("AdamW", {"fused": True}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.5, "maximize": True}),
]


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_steps_and_state(name, settings):
    torch.manual_seed(3)
    values = [torch.randn(s, dtype=torch.float64) for s in SHAPES]
    pairs = optimizers(name, settings, values)
    for i in range(5):
        grads = [torch.randn(s, dtype=torch.float64) for s in SHAPES]
        if i == 0 and name != "SGD":  # its state begins later than the others'
            grads[1] = None
        step_both(pairs, grads)
    (their_params, their), (our_params, our) = pairs
    for a, b in zip(our_params, their_params, strict=True):
        near(a, b, 1e-10)
    mine, yours = our.state_dict(), their.state_dict()
    assert mine["state"].keys() == yours["state"].keys()
    for i, kept in yours["state"].items():
        assert list(mine["state"][i]) == list(kept)
        for key, value in kept.items():
            near(mine["state"][i][key], value, 1e-10)
    assert mine["param_groups"][0].keys() >= yours["param_groups"][0].keys() - {"decoupled_weight_decay"}


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_state_of_pytorch_is_taken_over(name, settings):
    torch.manual_seed(4)
    values = [torch.randn(s) for s in SHAPES]
    pairs = optimizers(name, settings, values)
    (their_params, their), (our_params, our) = pairs
    for p in their_params:
        p.grad = torch.randn_like(p)
    their.step()
    moved = {
        i: {k: ours(v) if isinstance(v, torch.Tensor) else v for k, v in kept.items()}
        for i, kept in their.state_dict()["state"].items()
    }
    our.load_state_dict({"state": moved, "param_groups": their.state_dict()["param_groups"]})
    with adjoin.no_grad():
        for a, b in zip(our_params, their_params, strict=True):
            a.copy_(ours(b))
    step_both(pairs, [torch.randn(s) for s in SHAPES])
    for a, b in zip(our_params, their_params, strict=True):
        near(a, b, 1e-5)


@pytest.mark.parametrize("order", [2.0, 1, float("inf"), 0, 3.5, -1])
@pytest.mark.parametrize("limit", [0.5, 1e6])
def test_clip_grad_norm(order, limit):
    torch.manual_seed(5)
    params = [torch.nn.Parameter(torch.randn(s)) for s in SHAPES]
    for p in params:
        p.grad = torch.randn_like(p)
    mine = [adjoin.nn.Parameter(ours(p)) for p in params]
    for a, b in zip(mine, params, strict=True):
        a.grad = ours(b.grad)
    near(
        adjoin.nn.utils.clip_grad_norm_(mine, limit, order),
        torch.nn.utils.clip_grad_norm_(params, limit, order),
    )
    for a, b in zip(mine, params, strict=True):
        near(a.grad, b.grad)
    assert theirs(mine[0]).shape == params[0].shape

"""tests/compat/beside_optimizers_test.py: every other optimizer's path, state and text beside PyTorch's."""

import copy

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import pathlib
import sys

import adjoin
from beside import near, optimizers, ours, step_both

sys.path.append(str(pathlib.Path(__file__).parent.parent / "programs"))
from optim_cases import MATRICES, SETTINGS, SHAPES


def states_near(mine, yours, tolerance):
    assert mine["state"].keys() == yours["state"].keys()
    for i, kept in yours["state"].items():
        assert list(mine["state"][i]) == list(kept)
        for key, value in kept.items():
            near(mine["state"][i][key], value, tolerance)
            assert str(mine["state"][i][key].dtype).split(".")[1] == str(value.dtype).split(".")[1]
    assert mine["param_groups"] == yours["param_groups"]


def draw(name, dtype):
    return [torch.randn(s, dtype=dtype) for s in (MATRICES if name == "Muon" else SHAPES)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_steps_and_state(name, settings, dtype):
    if dtype.is_complex and (name in ("Adafactor", "Muon") or "fused" in settings):
        pytest.skip("refuses complex parameters")
    torch.manual_seed(3)
    tolerance = 2e-2 if name == "Muon" else 1e-4 if dtype is torch.float32 else 1e-6
    pairs = optimizers(name, settings, draw(name, dtype))
    (their_params, their), (our_params, our) = pairs
    for i in range(8):
        grads = draw(name, dtype)
        if i == 0 and name not in ("SGD", "Adagrad"):  # its state begins later than the others'
            grads[1] = None
        step_both(pairs, grads)
    for a, b in zip(our_params, their_params, strict=True):
        near(a, b, tolerance)
    states_near(our.state_dict(), their.state_dict(), tolerance)
    assert repr(our) == repr(their)


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=str)
def test_state_goes_both_ways(name, settings):
    torch.manual_seed(4)
    pairs = optimizers(name, settings, draw(name, torch.float64))
    (their_params, their), (our_params, our) = pairs
    tolerance = 2e-2 if name == "Muon" else 1e-6
    for _ in range(3):
        for p, g in zip(their_params, draw(name, torch.float64), strict=True):
            p.grad = g
        their.step()
    our.load_state_dict(convert(their.state_dict(), torch.Tensor, ours))
    with adjoin.no_grad():
        for a, b in zip(our_params, their_params, strict=True):
            a.copy_(ours(b))
    step_both(pairs, draw(name, torch.float64))
    for a, b in zip(our_params, their_params, strict=True):
        near(a, b, tolerance)
    back = convert(our.state_dict(), adjoin.Tensor, lambda t: torch.from_numpy(t.detach().numpy().copy()))
    their.load_state_dict(back)
    step_both(pairs, draw(name, torch.float64))
    for a, b in zip(our_params, their_params, strict=True):
        near(a, b, tolerance)


def convert(tree, kind, how):
    if isinstance(tree, kind):
        return how(tree)
    if isinstance(tree, dict):
        return {k: convert(v, kind, how) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(convert(v, kind, how) for v in tree)
    return copy.copy(tree)


def rosenbrock(x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize(
    "settings",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7, "lr": 0.5},
        {"lr": 1e-3, "max_iter": 8},
        {"lr": 1e-3, "history_size": 2, "max_eval": 3, "maximize": False},
    ],
    ids=str,
)
def test_lbfgs(settings):
    start = [-1.2, 1.0, 0.7, -0.3]
    paths, optimizers = [], []
    for lib in (adjoin, torch):
        x = lib.nn.Parameter(lib.tensor(start, dtype=lib.float64))
        y = lib.nn.Parameter(lib.tensor([[0.5]], dtype=lib.float64))
        optimizer = lib.optim.LBFGS([x, y], **settings)

        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(x) + (y**4).sum()
            loss.backward()
            return loss

        path = []
        for _ in range(6):
            path += [optimizer.step(closure).item(), *x.tolist()]
        paths.append(path)
        optimizers.append(optimizer)
    assert paths[0] == pytest.approx(paths[1], rel=1e-6, abs=1e-9)
    mine, other = (o.state_dict() for o in optimizers)
    assert mine["state"][0].keys() == other["state"][0].keys()
    for key in ("func_evals", "n_iter"):
        assert mine["state"][0][key] == other["state"][0][key]
    assert repr(optimizers[0]) == repr(optimizers[1])
    optimizers[0].load_state_dict(convert(other, torch.Tensor, ours))


@pytest.mark.parametrize("name", "RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop LBFGS Adafactor Muon".split())
@pytest.mark.parametrize(
    "settings",
    [{"lr": -1}, {"eps": -1}, {"weight_decay": -1}, {"momentum": -1}, {"betas": (1.0, 0.5)}, {"betas": (0.5, -1)},
     {"alpha": -1}, {"lambd": -1}, {"t0": -1}, {"rho": 2}, {"lr_decay": -1}, {"etas": (1.5, 2)}, {"momentum_decay": -1}, {"nonsense": 1},
     {"initial_accumulator_value": -1}, {"d": 0.5}, {"beta2_decay": 1}, {"fused": True, "foreach": True},
     {"fused": True, "differentiable": True}],
    ids=str,
)  # fmt: skip
def test_refusals(name, settings):
    told = []
    for lib in (adjoin, torch):
        try:
            getattr(lib.optim, name)([lib.nn.Parameter(lib.ones(2, 2))], **settings)
            told.append(None)
        except Exception as error:
            text = "" if isinstance(error, TypeError) else str(error)
            told.append((type(error), text.split("(")[0]))
    ours, theirs = told
    assert (ours is None) == (theirs is None)
    if theirs:  # ours says, besides, what is wanted
        assert ours[0] is theirs[0] and ours[1].startswith(theirs[1])

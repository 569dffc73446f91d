"""tests/python/amp/grad_scaler_test.py: the scale of losses by its rules, on every device that is there."""

import copy
import math
import pickle

import adjoin
import pytest
from adjoin.amp import GradScaler

DEVICES = [d for d in ("cpu", "reference", "emulated") if adjoin.amp.is_autocast_available(d)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def problem(device, *values):
    params = [adjoin.tensor(v, device=device, requires_grad=True) for v in values or ([1.0, 2.0],)]
    return params, adjoin.optim.SGD(params, lr=0.5)


def one_step(scaler, optimizer, params, factor=1.0):
    optimizer.zero_grad()
    loss = sum((p * factor).sum() for p in params)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_step_is_that_of_the_unscaled_loss(device):
    params, optimizer = problem(device)
    one_step(GradScaler(device), optimizer, params)
    assert params[0].tolist() == [0.5, 1.5]


def test_the_scale_grows_and_shrinks(device):
    params, optimizer = problem(device)
    scaler = GradScaler(device, init_scale=4.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2)
    scales = []
    for factor in (1.0, 1.0, 1.0, math.inf, math.nan, 1.0, 1.0):
        before = params[0].tolist()
        one_step(scaler, optimizer, params, factor)
        assert (params[0].tolist() == before) is not math.isfinite(factor)
        scales.append(scaler.get_scale())
    assert scales == [4.0, 12.0, 12.0, 3.0, 0.75, 0.75, 2.25]


def test_the_scale_does_not_grow_beyond_float32():
    params, optimizer = problem("cpu")
    scaler = GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    one_step(scaler, optimizer, params, 1e-6)
    assert scaler.get_scale() == 2.0**127


def test_gradients_of_several_dtypes_and_shapes(device):
    params = [
        adjoin.ones(3, 4, device=device, requires_grad=True),
        adjoin.ones(4, 3, device=device).t().requires_grad_(),
        adjoin.ones(5, device=device, dtype=adjoin.bfloat16).requires_grad_(),
        adjoin.ones((), device=device, dtype=adjoin.float64).requires_grad_(),
        adjoin.ones(0, device=device, requires_grad=True),
        adjoin.ones(2, device=device, requires_grad=True),  # without a gradient
    ]
    optimizer = adjoin.optim.SGD(params, lr=1.0)
    scaler = GradScaler(device, init_scale=1024.0)
    scaler.scale(sum((p.float() * 3).sum() for p in params[:5])).backward()
    scaler.unscale_(optimizer)
    for p in params[:5]:
        assert p.grad.double().flatten().tolist() == [3.0] * p.numel()
    assert params[5].grad is None


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("at", [0, 77, 5000, 99999])
def test_one_bad_element_is_found(device, bad, at):
    if device != "cpu" and at != 77:
        pytest.skip("one place is enough")
    n = 100_000 if device == "cpu" else 100
    p = adjoin.zeros(n, device=device, requires_grad=True)
    optimizer, scaler = adjoin.optim.SGD([p], lr=1.0), GradScaler(device)
    scaler.scale(p.sum()).backward()
    p.grad[at] = bad
    scaler.step(optimizer)
    assert p.abs().sum().item() == 0
    scaler.update()
    assert scaler.get_scale() == 2.0**15


def test_an_inf_in_one_optimizer_lets_the_other_step(device):
    (a, b), _ = problem(device, [1.0], [1.0])
    first, second = adjoin.optim.SGD([a], lr=0.5), adjoin.optim.SGD([b], lr=0.5)
    scaler = GradScaler(device)
    for loss in scaler.scale([a.sum(), b.sum() * math.inf]):
        loss.backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (0.5, 1.0, 2.0**15)


@pytest.mark.skipif("emulated" not in DEVICES, reason="the emulated device was not built")
def test_found_on_one_device_counts_for_all():
    a = adjoin.ones(2, requires_grad=True)
    b = adjoin.ones(2, device="emulated", requires_grad=True)
    optimizer, scaler = adjoin.optim.SGD([a, b], lr=0.5), GradScaler("cpu")
    for factor, scale in ((1.0, 2.0**16), (math.inf, 2.0**15)):
        optimizer.zero_grad()
        for loss in scaler.scale((a.sum(), (b * factor).sum())):
            loss.backward()
        scaler.step(optimizer)
        scaler.update()
        assert a.tolist() == b.tolist() == [0.5, 0.5]
        assert scaler.get_scale() == scale


def test_a_step_that_unscales_by_itself():
    seen = []

    class Own(adjoin.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self):
            seen.append((self.grad_scale and self.grad_scale.item(), self.found_inf.item()))

    p = adjoin.ones(2, requires_grad=True)
    optimizer, scaler = Own([p], lr=1.0), GradScaler("cpu", init_scale=8.0)
    one_step(scaler, optimizer, [p])
    one_step(scaler, optimizer, [p], math.inf)
    optimizer.zero_grad()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert seen == [(8.0, 0.0), (8.0, 1.0), (None, 0.0)]
    assert not hasattr(optimizer, "grad_scale")


def test_misuse_says_so():
    (p,), optimizer = problem("cpu")
    scaler = GradScaler("cpu")
    for call in (lambda: scaler.step(optimizer), scaler.update, lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    half = adjoin.ones(2, dtype=adjoin.float16).requires_grad_()
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(adjoin.optim.SGD([half], lr=1.0))
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)
    with pytest.raises(RuntimeError, match="empty"):
        scaler.load_state_dict({})
    with pytest.raises(AssertionError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)


def test_state(tmp_path):
    params, optimizer = problem("cpu")
    scaler = GradScaler("cpu", init_scale=16.0, growth_interval=3)
    one_step(scaler, optimizer, params)
    state = scaler.state_dict()
    assert state == {"scale": 16.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3,
                     "_growth_tracker": 1}  # fmt: skip
    for twin in (pickle.loads(pickle.dumps(scaler)), GradScaler("cpu"), copy.deepcopy(scaler)):
        twin.load_state_dict(state)
        for _ in range(2):
            one_step(twin, optimizer, params)
        assert twin.get_scale() == 32.0
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(adjoin.tensor([5.0]))
    assert scaler.get_scale() == 5.0


def test_disabled_does_nothing():
    params, optimizer = problem("cpu")
    scaler = GradScaler("cpu", enabled=False)
    assert scaler.scale(params[0]) is params[0]
    one_step(scaler, optimizer, params)
    assert params[0].tolist() == [0.5, 1.5]
    assert scaler.state_dict() == {} and scaler.get_scale() == 1.0 and not scaler.is_enabled()


def test_a_device_that_is_not_there_disables():
    with pytest.warns(UserWarning, match="NOWHERE is not available"):
        assert not GradScaler("nowhere").is_enabled()


def test_a_subclass_unscales_its_own_way():
    """As the scalers of sharded training do."""
    seen = []

    class Mine(GradScaler):
        def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
            seen.append((inv_scale.item(), found_inf.item(), allow_fp16))
            return super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)

    params, optimizer = problem("cpu")
    scaler = Mine("cpu", init_scale=4.0)
    scaler.scale(params[0].sum()).backward()
    scaler.unscale_(optimizer)
    state = scaler._per_optimizer_states[id(optimizer)]
    assert seen == [(0.25, 0.0, False)] and [f.item() for f in state["found_inf_per_device"].values()] == [0.0]
    state["found_inf_per_device"][adjoin.device("cpu")].fill_(1)
    scaler.step(optimizer)
    scaler.update()
    assert params[0].tolist() == [1.0, 2.0] and scaler.get_scale() == 2.0


def test_gradients_without_a_layout_of_their_own_are_unscaled():
    places, scaler = adjoin.tensor([[0, 1, 0], [2, 0, 2]]), GradScaler("cpu", init_scale=4.0)
    for dtype, values, inf in (
        (adjoin.float32, [16.0, 32.0, 8.0], 0.0),
        (adjoin.float16, [64000.0, 32.0, 64000.0], 1.0),
    ):
        param = adjoin.zeros(2, 3, dtype=dtype).requires_grad_()
        param.grad = adjoin.sparse_coo_tensor(places, adjoin.tensor(values, dtype=dtype), (2, 3))
        found = scaler._unscale_grads_(
            adjoin.optim.SGD([param], lr=1.0), adjoin.tensor(0.25), adjoin.tensor(0.0), True
        )[param.device]  # fmt: skip
        assert found.item() == inf, "a sum that does not fit into a half is found"
        assert inf or param.grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 0]]


def test_the_functions_by_the_names_of_packages():
    grads, found = [adjoin.tensor([4.0, 8.0]), adjoin.tensor([8.0]).half()], adjoin.tensor(0.0)
    adjoin._amp_foreach_non_finite_check_and_unscale_(grads, found, adjoin.tensor(0.25))
    assert [g.tolist() for g in grads] == [[1, 2], [2]] and found.item() == 0
    scale, tracker = adjoin.tensor(4.0), adjoin.tensor(0, dtype=adjoin.int32)
    for inf, after in ((0.0, (4, 1)), (0.0, (8, 0)), (1.0, (2, 0))):
        assert adjoin._amp_update_scale_(scale, tracker, adjoin.tensor(inf), 2.0, 0.25, 2) is scale
        assert (scale.item(), tracker.item()) == after

"""tests/compat/beside_schedules_test.py: every schedule's rates and momenta beside PyTorch's for 50 steps, also when
its state is saved and loaded half-way; averages of weights."""

import copy
import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import pathlib
import sys

import adjoin
from beside import copy_weights, near, ours

sys.path.append(str(pathlib.Path(__file__).parent.parent / "programs"))
from optim_cases import SCHEDULES, flat, follow, start

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", [*SCHEDULES, "SWALR", "SWALR cos"])
def test_fifty_steps(name, kind):
    paths, states = [], []
    for lib in (adjoin, torch):
        optimizer, schedule = start(lib, kind, name)
        path = follow(optimizer, schedule, range(23))
        saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
        states.append(dict(saved[1]))  # PyTorch's CyclicLR takes a key out when it loads
        optimizer, schedule = start(lib, kind, name)  # everything anew, as after a restart
        optimizer.load_state_dict(saved[0])
        schedule.load_state_dict(saved[1])
        path += follow(optimizer, schedule, range(23, 50))
        paths.append(flat(path))
    assert paths[0] == pytest.approx(paths[1], rel=1e-9, abs=1e-12)
    assert states[0].keys() == states[1].keys()
    for key, value in states[1].items():
        if isinstance(value, (int, float, str, bool)):
            assert states[0][key] == pytest.approx(value), key


@pytest.mark.parametrize("name", [*SCHEDULES, "SWALR"])
def test_state_of_pytorch_is_taken_over(name):
    optimizer, schedule = start(torch, "SGD", name)
    follow(optimizer, schedule, range(11))
    mine, own = start(adjoin, "SGD", name)
    mine.load_state_dict(optimizer.state_dict())
    own.load_state_dict(schedule.state_dict())
    wanted = flat(follow(optimizer, schedule, range(11, 30)))
    assert flat(follow(mine, own, range(11, 30))) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_fractions_of_epochs():
    rates = []
    for lib in (adjoin, torch):
        optimizer, schedule = start(lib, "SGD", "CosineAnnealingWarmRestarts")
        path = []
        for i in range(80):
            optimizer.step()
            schedule.step(i / 4)
            path.append(optimizer.param_groups[0]["lr"])
        rates.append(path)
    assert rates[0] == pytest.approx(rates[1])


def test_rates_that_are_tensors():
    rates = []
    for lib in (adjoin, torch):
        p = lib.nn.Parameter(lib.ones(2))
        optimizer = lib.optim.Adam([p], lr=lib.tensor(0.1))
        schedule = lib.optim.lr_scheduler.StepLR(optimizer, 2)
        path = []
        for _ in range(6):
            p.grad = lib.ones(2)
            optimizer.step()
            schedule.step()
            path.append(float(optimizer.param_groups[0]["lr"]))
            assert isinstance(optimizer.param_groups[0]["lr"], lib.Tensor)
        rates.append(path)
    assert rates[0] == pytest.approx(rates[1])


BAD = {
    "max_lr": lambda s, o: s.OneCycleLR(o, [0.1], total_steps=3),
    "steps": lambda s, o: s.OneCycleLR(o, 0.1),
    "negative steps": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-3),
    "float steps": lambda s, o: s.OneCycleLR(o, 0.1, epochs=1.5, steps_per_epoch=2),
    "share": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=3, pct_start=2),
    "anneal": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=3, anneal_strategy="x"),
    "mode": lambda s, o: s.CyclicLR(o, 0.1, 1, mode="x"),
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1.5),
    "eta_min": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "x"),
    "no schedule": lambda s, o: s.ChainedScheduler([]),
    "plateau": lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    "steps passed": lambda s, o: [s.OneCycleLR(o, 0.1, total_steps=2).step() for _ in range(4)],
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name):
    told = []
    for lib in (adjoin, torch):
        optimizer, _ = start(lib, "SGD", "StepLR")
        try:
            BAD[name](lib.optim.lr_scheduler, optimizer)
            told.append(None)
        except Exception as error:
            told.append((type(error), str(error)))
    assert told[0] == told[1] if name != "steps passed" else told == [None, None]


@pytest.mark.parametrize("way", ["mean", "ema", "multi", "own", "buffers"])
def test_averaged_model(way):
    torch.manual_seed(0)
    make = lambda nn: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
    other, mine = make(torch.nn), make(adjoin.nn)
    copy_weights(other, mine)
    batches = [torch.randn(8, 4) for _ in range(6)]
    made = []
    for lib, model, data in ((adjoin, mine, [ours(b) for b in batches]), (torch, other, batches)):
        swa = lib.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": swa.get_ema_avg_fn(0.8)},
            "multi": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
            "own": {"avg_fn": lambda mean, value, count: 0.5 * mean + 0.5 * value},
            "buffers": {"use_buffers": True, "avg_fn": swa.get_ema_avg_fn(0.8)},
        }[way]
        averaged = swa.AveragedModel(model, **options)
        optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
        for x in data:
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            averaged.update_parameters(model)
        before = {k: v.clone() for k, v in averaged.state_dict().items()}
        swa.update_bn([(x, 0) for x in data], averaged)
        averaged.eval()
        made.append((before, averaged.state_dict(), averaged(data[0])))
    for mine_, other_ in zip(made[0][:2], made[1][:2], strict=True):
        assert list(mine_) == list(other_)
        for key in other_:
            near(mine_[key], other_[key], 1e-5)
    near(made[0][2], made[1][2], 1e-5)

"""tests/python/data/trainer_test.py: utils.trainer: the loop, its plugins, and runs that go on exactly."""

import glob
import io
import random

import adjoin as torch
import pytest
from adjoin import nn
from adjoin.utils import plots
from adjoin.utils.data import DataLoader, TensorDataset
from adjoin.utils.trainer import Trainer
from adjoin.utils.trainer.plugins import (
    AccuracyMonitor,
    Logger,
    LossMonitor,
    Monitor,
    Plot,
    Plugin,
    ProgressBar,
    ProgressMonitor,
    SaverPlugin,
    TensorBoard,
    TimeMonitor,
    Validation,
)


def made(optimizer=None, dropout=0.2, shuffle=True, rows=40):
    torch.manual_seed(0)
    random.seed(0)
    x = torch.randn(rows, 2)
    data = TensorDataset(x, (x[:, 0] > x[:, 1]).long())
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2))
    optimizer = optimizer or (lambda p: torch.optim.Adam(p, lr=0.05))
    loader = DataLoader(data, batch_size=10, shuffle=shuffle)
    return Trainer(model, nn.CrossEntropyLoss(), optimizer(model.parameters()), loader)


class Noted(Plugin):
    def __init__(self, *interval):
        super().__init__(list(interval))
        self.calls = []

    def batch(self, i, input, target):
        self.calls.append(("batch", i, tuple(input.shape)))

    def iteration(self, i, input, target, output, loss):
        assert not output.requires_grad and not loss.requires_grad and output.shape == (10, 2) and loss.dim() == 0
        self.calls.append(("iteration", i))

    def update(self, i, model):
        assert model is self.trainer.model
        self.calls.append(("update", i))

    def epoch(self, i):
        self.calls.append(("epoch", i))


def test_plugins_are_called_at_their_intervals():
    trainer = made()
    often, seldom = Noted((1, "batch"), (2, "update")), Noted((3, "iteration"), (2, "epoch"))
    trainer.register_plugin(often).register_plugin(seldom)
    trainer.run(2)
    assert often.calls[:3] == [("batch", 1, (10, 2)), ("batch", 2, (10, 2)), ("update", 2)]
    assert seldom.calls == [("iteration", 3), ("iteration", 6), ("epoch", 2)]
    assert trainer.iterations == 8 and trainer.epochs == 2
    trainer.run()
    assert trainer.epochs == 3 and seldom.calls[3:] == [("iteration", 9), ("iteration", 12)]
    trainer.run(until=3)
    assert trainer.epochs == 3


def test_it_trains_as_a_loop_does():
    trainer = made(dropout=0.0, shuffle=False)
    trainer.register_plugin(LossMonitor())
    trainer.run(3)
    other = made(dropout=0.0, shuffle=False)
    losses = []
    for _ in range(3):
        for x, y in other.dataset:
            other.optimizer.zero_grad()
            loss = other.criterion(other.model(x), y)
            loss.backward()
            other.optimizer.step()
            losses.append(loss.item())
    assert trainer.stats["loss"]["last"] == losses[-1]
    assert trainer.stats["loss"]["epoch_mean"] == pytest.approx(sum(losses[-4:]) / 4)
    fading = losses[0]
    for value in losses:
        fading = 0.7 * fading + 0.3 * value
    assert trainer.stats["loss"]["running_avg"] == pytest.approx(fading)
    for a, b in zip(trainer.model.parameters(), other.model.parameters()):
        assert torch.equal(a, b)


def test_optimizers_that_evaluate_again():
    trainer = made(lambda p: torch.optim.LBFGS(p, max_iter=5, line_search_fn="strong_wolfe"), dropout=0.0)
    trainer.register_plugin(LossMonitor()).register_plugin(AccuracyMonitor())
    trainer.run(4)
    assert trainer.stats["accuracy"]["epoch_mean"] > 90


def test_monitors():
    trainer = made()
    for plugin in (AccuracyMonitor(), TimeMonitor(), ProgressMonitor(), LossMonitor(running_average=False)):
        trainer.register_plugin(plugin)
    seen = []
    watch = Noted((1, "iteration"))
    watch.iteration = lambda i, *step: seen.append({k: dict(v) for k, v in trainer.stats.items()})
    trainer.register_plugin(watch)
    trainer.run(2)
    assert [s["progress"]["samples_used"] for s in seen] == [10, 20, 30, 40] * 2
    assert seen[1]["progress"]["percent"] == 50 and seen[1]["progress"]["epoch_size"] == 40
    assert all(0 <= s["accuracy"]["last"] <= 100 and s["time"]["last"] >= 0 for s in seen)
    assert "running_avg" not in trainer.stats["loss"] and "epoch_mean" in trainer.stats["loss"]


def test_a_monitor_of_ones_own_and_lines():
    class Largest(Monitor):
        stat_name = "largest"

        def _get_value(self, i, input, target, output, loss):
            return output.abs().max().item()

    trainer, log = made(), io.StringIO()
    trainer.register_plugin(Largest(precision=1, unit="x")).register_plugin(LossMonitor())
    trainer.register_plugin(Logger(["largest", "loss.last"], [(2, "iteration"), (1, "epoch")], log))
    trainer.run()
    lines = log.getvalue().splitlines()
    largest, loss = trainer.stats["largest"], trainer.stats["loss"]
    assert len(lines) == 3 and lines[0].startswith("step 2   largest: ") and lines[2].startswith("epoch 1   largest: ")
    assert (
        lines[1]
        == f"step 4   largest: {largest['last']:.1f}x ({largest['running_avg']:.1f}x)   loss.last: {loss['last']}"
    )


def test_the_bar():
    trainer, log = made(), io.StringIO()
    trainer.register_plugin(LossMonitor()).register_plugin(ProgressBar(file=log))
    trainer.run(2)
    lines = log.getvalue().splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2  4/4  100%")
    assert lines[1].endswith(f"loss {trainer.stats['loss']['running_avg']:.4f}")


def test_validation_leaves_training_alone():
    plain, watched = made(), made()
    held = [(torch.randn(6, 2), torch.zeros(6).long()), (torch.randn(2, 2), torch.ones(2).long())]
    torch.manual_seed(1)
    plain.run(2)
    watched.register_plugin(Validation(held))
    torch.manual_seed(1)
    watched.run(2)
    for a, b in zip(plain.model.parameters(), watched.model.parameters()):
        assert torch.equal(a, b)
    x, y = torch.cat([held[0][0], held[1][0]]), torch.cat([held[0][1], held[1][1]])
    watched.model.eval()
    out = watched.model(x)
    stats = watched.stats
    assert stats["validation_loss"]["last"] == pytest.approx(nn.functional.cross_entropy(out, y).item(), rel=1e-5)
    assert stats["validation_accuracy"]["last"] == pytest.approx(100 * (out.argmax(1) == y).float().mean().item())


@pytest.mark.parametrize("steps", [4, 6, 7])  # an epoch has four
def test_a_run_goes_on_exactly(tmp_path, steps):
    def watched():
        trainer = made()
        trainer.register_plugin(LossMonitor()).register_plugin(ProgressMonitor())
        return trainer

    whole = watched()
    whole.run(3)
    first = watched()
    stop = Noted((steps, "update"))
    stop.update = lambda i, model: first.stop()
    first.register_plugin(stop)
    first.run(3)
    assert first.iterations == steps
    first.plugins.pop()
    first.save(tmp_path / "state.pt")
    torch.manual_seed(99)
    second = watched()
    torch.rand(7)
    second.load(tmp_path / "state.pt").run(until=3)
    assert second.iterations == 12 and second.epochs == 3
    for a, b in zip(second.model.parameters(), whole.model.parameters()):
        assert torch.equal(a, b)
    assert second.stats["loss"] == whole.stats["loss"] and second.stats["progress"] == whole.stats["progress"]


def test_the_saver(tmp_path):
    def watched():
        trainer = made()
        saver = SaverPlugin(tmp_path / "run", keep_old_checkpoints=True, best="loss.epoch_mean")
        trainer.register_plugin(LossMonitor()).register_plugin(saver)
        return trainer, saver

    trainer, saver = watched()
    assert not saver.resume()
    means = []
    for _ in range(3):
        means.append(trainer.run()["loss"]["epoch_mean"])
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert names == {"last.pt", "best.pt", "epoch-1.pt", "epoch-2.pt", "epoch-3.pt"}
    assert torch.load(tmp_path / "run/best.pt")["stats"]["loss"]["epoch_mean"] == min(means) == saver.reached
    trainer.run()
    again, other = watched()
    again.load(tmp_path / "run/epoch-3.pt")
    assert again.epochs == 3 and other.reached == min(means)
    again.run()
    assert again.stats["loss"] == trainer.stats["loss"]
    again, other = watched()
    assert other.resume() and again.epochs == 4


def test_curves(tmp_path):
    trainer = made()
    plot, board = Plot(tmp_path / "loss.png", ["loss", "loss.running_avg"]), TensorBoard(tmp_path / "board")
    trainer.register_plugin(LossMonitor()).register_plugin(board)
    if plots.available():
        trainer.register_plugin(plot)
    trainer.run(2)
    (events,) = glob.glob(str(tmp_path / "board/*"))
    assert open(events, "rb").read().count(b"loss/epoch") == 2
    if plots.available():
        assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG" and len(plot.lines["loss"]) == 8
        assert plot.lines["loss"][-1] == trainer.stats["loss"]["last"]


def test_wrong_uses_are_told():
    trainer = made()
    with pytest.raises(ValueError, match="wanted a count from 1 and one of batch, iteration, update, epoch"):
        trainer.register_plugin(Noted((1, "week")))
    trainer.register_plugin(Logger(["loss"]))
    with pytest.raises(KeyError, match="no 'loss' in stats, which have nothing"):
        trainer.run()
    trainer = made()
    trainer.dataset = iter([])
    with pytest.raises(ValueError, match="gave no batch"):
        trainer.run()
    state = made().register_plugin(LossMonitor()).state_dict()
    with pytest.raises(ValueError, match="it has 1, here are 0"):
        made().load_state_dict(state)
    with pytest.raises(NotImplementedError, match="a monitor defines _get_value"):
        made().register_plugin(Monitor()).run()

"""adjoin.utils.trainer.plugins.monitors: numbers about steps: ``stats[name]`` has ``last``, ``running_avg`` and ``epoch_mean``."""

import time

import adjoin

from .. import processes
from .plugin import Plugin


class Monitor(Plugin):
    """A number of each step, ``_get_value(i, input, target, output, loss)``.

    ``running_avg`` is one in which older steps fade by ``smoothing``; ``epoch_mean`` that of the last epoch. Fields of stats that begin
    with log say how a Logger writes them. In several processes the number is the mean of all.
    """

    stat_name = "value"

    def __init__(
        self, running_average=True, epoch_average=True, smoothing=0.7, precision=None, number_format=None, unit=""
    ):
        super().__init__([(1, "iteration"), (1, "epoch")])
        self.with_running_average, self.with_epoch_average = running_average, epoch_average
        self.smoothing = smoothing
        self.format = number_format or f".{4 if precision is None else precision}f"
        self.unit = unit
        self.sum, self.count = 0.0, 0

    def register(self, trainer):
        super().register(trainer)
        form = ":" + self.format.lstrip(":")
        stats = trainer.stats.setdefault(self.stat_name, {})
        stats["log_iter_fields"] = [f"{{last{form}}}{self.unit}"]
        if self.with_running_average:
            stats["log_iter_fields"].append(f" ({{running_avg{form}}}{self.unit})")
        if self.with_epoch_average:
            stats["log_epoch_fields"] = [f"{{epoch_mean{form}}}{self.unit}"]

    def iteration(self, *step):
        stats = self.trainer.stats[self.stat_name]
        stats["last"] = value = processes.total(self._get_value(*step))[0] / self.trainer.size
        self.sum, self.count = self.sum + value, self.count + 1
        if self.with_running_average:
            before = stats.get("running_avg", value)
            stats["running_avg"] = self.smoothing * before + (1 - self.smoothing) * value

    def epoch(self, i):
        if self.with_epoch_average and self.count:
            stats = self.trainer.stats[self.stat_name]
            stats["epoch_mean"] = self.sum / self.count
        self.sum, self.count = 0.0, 0

    def state_dict(self):
        return {"sum": self.sum, "count": self.count}

    def load_state_dict(self, state):
        self.sum, self.count = state["sum"], state["count"]

    def _get_value(self, i, input, target, output, loss):
        raise NotImplementedError(
            f"{type(self).__name__}: a monitor defines _get_value(i, input, target, output, loss)"
        )


class LossMonitor(Monitor):
    stat_name = "loss"

    def _get_value(self, i, input, target, output, loss):
        return loss.item()


def _percent_right(output, target):
    classes = output.argmax(1) if output.dim() > 1 else (output > 0)
    return 100 * (classes == target).float().mean().item()


class AccuracyMonitor(Monitor):
    """How many in a hundred have their class: that of the greatest output, or 0 and 1 where one output is below and above 0."""

    stat_name = "accuracy"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"unit": "%", "precision": 2, **kwargs})

    def _get_value(self, i, input, target, output, loss):
        return _percent_right(output, target)


class TimeMonitor(Monitor):
    """Seconds from one step to the next."""

    stat_name = "time"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"unit": "s", **kwargs})
        self.last = None

    def register(self, trainer):
        super().register(trainer)
        self.last = time.monotonic()

    def _get_value(self, *step):
        now = time.monotonic()
        passed, self.last = now - self.last, now
        return passed


class ProgressMonitor(Plugin):
    """Samples of this epoch: ``samples_used`` of ``epoch_size``, ``percent``; those of all processes."""

    stat_name = "progress"

    def __init__(self):
        super().__init__([(1, "iteration"), (1, "epoch")])

    def register(self, trainer):
        super().register(trainer)
        loader = trainer.dataset
        if hasattr(loader, "dataset"):
            size = getattr(getattr(loader, "sampler", None), "total_size", None) or len(loader.dataset)
        else:
            size = int(processes.total(sum(len(batch[0]) for batch in loader))[0])
        fields = ["{samples_used}/{epoch_size} ({percent:.2f}%)"]
        trainer.stats[self.stat_name] = {
            "samples_used": 0,
            "epoch_size": size,
            "percent": 0.0,
            "log_iter_fields": fields,
        }

    def iteration(self, i, input, *rest):
        stats = self.trainer.stats[self.stat_name]
        if self.trainer.seen == 1:
            stats["samples_used"] = 0
        stats["samples_used"] += int(processes.total(len(input))[0])
        stats["last"] = stats["percent"] = 100.0 * stats["samples_used"] / stats["epoch_size"]

    def epoch(self, i):
        stats = self.trainer.stats[self.stat_name]
        stats.update(samples_used=0, percent=0.0)


class Validation(Plugin):
    """Loss and accuracy on other data after each epoch, the model in its mode of evaluation: ``validation_loss``,
    ``validation_accuracy``. Several processes may each have a part of the data."""

    def __init__(self, dataset, interval=(1, "epoch"), accuracy=True):
        super().__init__(interval)
        self.dataset, self.accuracy = dataset, accuracy

    def register(self, trainer):
        super().register(trainer)
        names = ["loss", "accuracy"] if self.accuracy else ["loss"]
        for name in names:
            fields = ["{epoch_mean:.2f}%" if name == "accuracy" else "{epoch_mean:.4f}"]
            trainer.stats[f"validation_{name}"] = {"log_epoch_fields": fields}

    def epoch(self, i):
        trainer, sums, count = self.trainer, [0.0, 0.0], 0
        model = processes.bare(trainer.model)  # each by itself: the parts may be of different lengths
        trained = model.training
        model.eval()
        with adjoin.no_grad():
            for input, target in self.dataset:
                output = model(input)
                sums[0] += trainer.criterion(output, target).item() * len(input)
                sums[1] += _percent_right(output, target) * len(input) if self.accuracy else 0
                count += len(input)
        model.train(trained)
        *sums, count = processes.total(*sums, count)
        for name, total in zip(["loss", "accuracy"] if self.accuracy else ["loss"], sums):
            trainer.stats[f"validation_{name}"].update(last=total / count, epoch_mean=total / count)

    iteration = update = lambda self, i, *step: self.epoch(i)

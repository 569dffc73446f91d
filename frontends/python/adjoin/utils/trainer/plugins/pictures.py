"""adjoin.utils.trainer.plugins.pictures: curves of stats, as a picture and for TensorBoard."""

from .plugin import Plugin, value_of


class Plot(Plugin):
    """Draws ``path``, a PNG with one plot for each field, after each epoch; ``lines`` has the numbers. matplotlib is wanted."""

    first_alone = True

    def __init__(self, path, fields=("loss",), interval=None, title=""):
        super().__init__(interval or [(1, "iteration"), (1, "epoch")])
        self.path, self.fields, self.title = path, [fields] if isinstance(fields, str) else list(fields), title
        self.lines = {field: [] for field in self.fields}

    def iteration(self, i, *step):
        for field in self.fields:
            value = value_of(self.trainer.stats, field)
            if value is not None:
                self.lines[field].append(value)

    update = iteration

    def epoch(self, i):
        from ... import plots

        panels = [plots.Panel(field, "step", field, {field: self.lines[field]}) for field in self.fields]
        plots.curves(self.path, panels, self.title)

    def state_dict(self):
        return {"lines": self.lines}

    def load_state_dict(self, state):
        self.lines = {field: list(state["lines"].get(field, ())) for field in self.fields}


class TensorBoard(Plugin):
    """Writes fields of stats for TensorBoard: those with a number at each step, and the means of each epoch."""

    first_alone = True

    def __init__(self, log_dir=None, fields=("loss",), interval=None):
        super().__init__(interval or [(1, "iteration"), (1, "epoch")])
        self.log_dir, self.fields = log_dir, [fields] if isinstance(fields, str) else list(fields)

    def register(self, trainer):
        from ...tensorboard import SummaryWriter

        super().register(trainer)
        self.writer = SummaryWriter(self.log_dir) if trainer.rank == 0 else None

    def iteration(self, i, *step):
        for field in self.fields:
            value = value_of(self.trainer.stats, field)
            if value is not None:
                self.writer.add_scalar(field, value, i)

    update = iteration

    def epoch(self, i):
        for field in self.fields:
            value = value_of(self.trainer.stats, field.partition(".")[0] + ".epoch_mean")
            if value is not None:
                self.writer.add_scalar(f"{field}/epoch", value, i)
        self.writer.flush()

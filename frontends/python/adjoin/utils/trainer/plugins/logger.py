"""adjoin.utils.trainer.plugins.logger: lines of text, and a progress bar."""

import sys

from ...progress import Bar
from .plugin import Plugin, value_of


class Logger(Plugin):
    """A line with fields of stats after each step (or as its interval says) and each epoch: ``Logger(["loss", "accuracy"])``.

    A field is a monitor's name, or one number of it: ``loss.running_avg``.
    """

    separator = "   "
    first_alone = True

    def __init__(self, fields, interval=None, file=None):
        super().__init__(interval or [(1, "iteration"), (1, "epoch")])
        self.fields, self.file = [fields] if isinstance(fields, str) else list(fields), file

    def _text(self, field, key):
        stats = self.trainer.stats
        value_of(stats, field)  # raises for a name that is not there
        name, _, part = field.partition(".")
        found = stats[name]
        if part or not isinstance(found, dict):
            return f"{field}: {value_of(stats, field)}"
        if key not in found:
            return ""
        return f"{name}: " + "".join(found[key]).format(**found)

    def _log(self, head, key):
        texts = [text for text in (self._text(field, key) for field in self.fields) if text]
        print(self.separator.join([head, *texts]), file=self.file or sys.stdout, flush=True)

    def iteration(self, i, *step):
        self._log(f"step {i}", "log_iter_fields")

    batch = update = iteration

    def epoch(self, i):
        self._log(f"epoch {i}", "log_epoch_fields")


class ProgressBar(Plugin):
    """A bar for each epoch, with fields of stats behind it; a line now and then where there is no terminal."""

    first_alone = True

    def __init__(self, fields=("loss.running_avg",), file=None, interval=10.0):
        super().__init__([(1, "iteration"), (1, "epoch")])
        self.fields, self.file, self.seconds, self.bar = list(fields), file, interval, None

    def _values(self):
        return {field.partition(".")[0]: value_of(self.trainer.stats, field) for field in self.fields}

    def iteration(self, i, *step):
        trainer = self.trainer
        if self.bar is None:
            label = f"epoch {trainer.epochs + 1}"
            self.bar = Bar(len(trainer.dataset), label, self.file, self.seconds)
            self.bar.done = trainer.seen - 1
        self.bar.update(**self._values())

    def epoch(self, i):
        if self.bar is not None:
            self.bar.values.update(self._values())
            self.bar.close()
        self.bar = None
